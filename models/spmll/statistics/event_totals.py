"""Events that show a class, from a random sample of events whose images are all answered: cluster sampling.

Audits of images draw each image of a stratum with equal probability, so their intervals hold for images however alike
the images of an event are. They say little of events: of an event of thirty images that shows the class in one, a
sampled image mostly shows nothing. So events are drawn themselves, in strata by the highest probability of their
images, and all their images are asked (one-stage cluster sampling: Cochran 1977, "Sampling Techniques", ch. 9). Whether
an event shows the class is then one answer of one unit, and the exact intervals of units hold
(spmll/statistics/certified_recall.py): nothing is assumed of how alike the images of an event are.

Images of such a sample are not counted for images. Counted as if they had been drawn one by one, they would claim far
too much: `annotator bench certificate` shows it, and that both kinds of intervals hold.
"""

from dataclasses import dataclass

import numpy as np

from spmll.labels import ABSENT, PRESENT
from spmll.statistics.bounds import Bounds
from spmll.statistics.certified_recall import DEFAULT_DRAWS, LabelTotals, Strata, certify, count_strata
from spmll.statistics.stratified_sampling import NO_STRATUM, UNKNOWN_CELL, DrawnSample, draw_sample, find_usable_cells

OPEN_STATE = 2  # not known


@dataclass(frozen=True, eq=False)
class EventSample:
    """A sample of the events of one class, as far as it has been answered, for N images.

    Attributes:
        strata: (N,) uint8, the stratum of each image's event when the sample was drawn; OUTSIDE for images of events
            that were found or answered by then, and for images that were added later.
        rows: (n,) int64, the images of the sampled events.
        places: (n,) int64, the place of each in the random order: the images of an event follow each other.
        in_audit: (n,) bool, the image was answered in the audit.
    """

    strata: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    in_audit: np.ndarray

    @classmethod
    def empty(cls, images: int) -> "EventSample":
        """Return the sample of a class whose events were not sampled."""
        none = np.zeros(0, np.int64)
        return cls(np.full(images, NO_STRATUM, np.uint8), none, none, none.astype(bool))


@dataclass(frozen=True, eq=False)
class EventTotals:
    """Figures of the events of each class and of all classes together, (C + 1) each.

    Attributes:
        found: (C + 1,) int64, events of which a person labeled an image present.
        drawn: (C + 1,) int64, sampled events that count.
        recall: The share of the events showing the class that are found.
        missing: Events that show the class and are not found.
    """

    found: np.ndarray
    drawn: np.ndarray
    recall: Bounds
    missing: Bounds


def compute_event_states(states: np.ndarray, events: np.ndarray) -> np.ndarray:
    """Return the state of each event, (E,) int8: PRESENT if an image is, ABSENT if all images are, else OPEN_STATE.

    Args:
        states: (N,) int, PRESENT, ABSENT, or anything else for a cell without an answer.
        events: (N,) int64 from 0, the event of each image.
    """
    many = int(events.max(initial=-1)) + 1
    present = np.bincount(events[states == PRESENT], minlength=many) > 0
    is_open = np.bincount(events[(states != PRESENT) & (states != ABSENT)], minlength=many) > 0
    return np.where(present, PRESENT, np.where(is_open, OPEN_STATE, ABSENT)).astype(np.int8)


def draw_events(
    states: np.ndarray,
    scores: np.ndarray,
    events: np.ndarray,
    askable: np.ndarray,
    many: int,
    rng: np.random.Generator,
) -> DrawnSample:
    """Draw a sample of the events of a class that are neither found nor answered, as `draw_sample` draws cells.

    Args:
        states: (N,) int, PRESENT, ABSENT, or anything else for a cell without an answer.
        scores: (N,) float, a model's probabilities; nan without one.
        events: (N,) int64 from 0, the event of each image.
        askable: (A,) int64, the events that may be drawn; others are in no stratum.
        many: The number of events.
        rng: Draws all that is random.

    Returns:
        Strata of images, and the images without an answer of the sampled events, event by event in random order.
    """
    of_events = compute_event_states(states, events)
    likeliest = np.full(len(of_events), np.nan)
    known = np.flatnonzero(~np.isnan(scores))
    np.fmax.at(likeliest, events[known], scores[known].astype(np.float64))
    kinds = np.full(len(of_events), -1)
    kinds[askable] = np.where(of_events[askable] == OPEN_STATE, UNKNOWN_CELL, -1)
    drawn = draw_sample(kinds, likeliest, many, rng)
    rank = np.full(len(of_events), len(drawn.rows))
    rank[drawn.rows] = np.arange(len(drawn.rows))
    rows = np.flatnonzero((rank[events] < len(drawn.rows)) & (states != PRESENT) & (states != ABSENT))
    strata = np.where((states == PRESENT) | (states == ABSENT), NO_STRATUM, drawn.strata[events])
    return DrawnSample(strata.astype(np.uint8), rows[np.argsort(rank[events[rows]], kind="stable")])


def count_events(sample: EventSample, states: np.ndarray, events: np.ndarray) -> dict[str, np.ndarray]:
    """Return the rows of `Strata` for a sample of the events of a class, without `of_class` and `audit`.

    An event that was joined with others since, or split, and is no longer of one stratum and sampled as a whole, counts
    as one that was not sampled.

    Args:
        sample: The sample.
        states: (N,) int, the current decisions: PRESENT, ABSENT, or anything else for an open cell.
        events: (N,) int64 from 0, the event of each image now.
    """
    of_events = compute_event_states(states, events)
    many = len(of_events)
    drawn_from = np.flatnonzero(sample.strata != NO_STRATUM)
    lowest, highest = np.full(many, NO_STRATUM, np.uint8), np.zeros(many, np.uint8)
    np.minimum.at(lowest, events[drawn_from], sample.strata[drawn_from])
    np.maximum.at(highest, events[drawn_from], sample.strata[drawn_from])
    images = np.bincount(events[drawn_from], minlength=many)
    sampled = np.bincount(events[sample.rows], minlength=many)
    is_one = (lowest == highest) & ((sampled == 0) | (sampled == images))
    strata = np.where(is_one, lowest, NO_STRATUM).astype(np.uint8)

    rows = np.flatnonzero(is_one & (sampled > 0))
    places = np.full(many, np.iinfo(np.int64).max)
    np.minimum.at(places, events[sample.rows], sample.places)
    in_audit = np.bincount(events[sample.rows[sample.in_audit]], minlength=many) > 0
    counted = np.zeros(len(rows), bool)
    for code in np.unique(strata[rows]):
        of = np.flatnonzero(strata[rows] == code)
        counted[of] = find_usable_cells(places[rows[of]], of_events[rows[of]] != OPEN_STATE, in_audit[rows[of]])
    return count_strata(strata, of_events, np.zeros(many, bool), rows, counted)


def certify_events(
    counts: list[dict[str, np.ndarray]], found: np.ndarray, draws: int = DEFAULT_DRAWS, seed: int = 0
) -> EventTotals:
    """Return recall and missing events with 95 % intervals; only labels of people count as found.

    Args:
        counts: What `count_events` returned, of each class.
        found: (C,) int64, events of which an image is labeled present.
        draws: Monte Carlo draws of the sums.
        seed: Decides the draws.
    """
    parts = [
        of_class | {"of_class": np.full(size, column), "audit": np.zeros(size, np.int64)}
        for column, of_class in enumerate(counts)
        for size in [len(of_class["code"])]
    ]
    names = Strata.__dataclass_fields__
    strata = Strata(
        **{name: np.concatenate([np.zeros(0, np.int64), *(part[name] for part in parts)]) for name in names}
    )
    none = np.zeros(len(counts), np.int64)
    labels = LabelTotals(found, none, none.astype(float), np.full(len(counts), np.nan), none, none)
    certified = certify(strata, labels, draws, seed)
    drawn = np.bincount(strata.of_class, strata.drawn, minlength=len(counts)).astype(np.int64)
    return EventTotals(
        np.append(found, found.sum()), np.append(drawn, drawn.sum()), certified.recall, certified.missing
    )
