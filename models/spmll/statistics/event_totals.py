"""Recall of events that show a class, from a random sample of completely answered events.

Image audits say little of events. So events are sampled in strata by their highest probability and all images are asked
(cluster sampling, Cochran 1977, ch. 9), and the exact intervals of certified_recall.py hold. They do not count as image
samples, because similar images would make intervals too narrow.
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
    """A random sample of events for one class, stored by image (N images).

    Attributes:
        strata: (N,) uint8, stratum of each image's event when sampled, or NO_STRATUM.
        rows: (n,), images of sampled events.
        places: (n,), place in the random order, event by event.
        in_audit: (n,) bool, answered in the audit.
    """

    strata: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    in_audit: np.ndarray

    @classmethod
    def empty(cls, images: int) -> "EventSample":
        none = np.zeros(0, np.int64)
        return cls(np.full(images, NO_STRATUM, np.uint8), none, none, none.astype(bool))


@dataclass(frozen=True, eq=False)
class EventTotals:
    """Recall and missing events per class, then over all classes, (C + 1,) each.

    Attributes:
        found: Events with an image labeled present.
        drawn: Sampled events that count.
        recall: Share of the class's events that were found.
        missing: Estimated events of the class that were not found.
    """

    found: np.ndarray
    drawn: np.ndarray
    recall: Bounds
    missing: Bounds


def compute_event_states(states: np.ndarray, events: np.ndarray) -> np.ndarray:
    """Return event states (E,) int8: PRESENT if any image is, ABSENT if all are, else OPEN_STATE.

    Args:
        states: (N,), PRESENT, ABSENT or others.
        events: (N,), event of each image, numbered from 0.
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
    """Sample events for one class that have no present image and some unanswered images.

    Args:
        states: (N,), PRESENT, ABSENT or others.
        scores: (N,), probabilities or nan.
        events: (N,) from 0.
        askable: (A,), events that may be drawn.
        many: Maximum number of sampled events.

    Returns:
        Strata of images, and the sampled events' unanswered images, event by event.
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
    """Return the `Strata` rows of an event sample, without `of_class` and `audit`.

    Events merged or split after sampling count as unsampled.

    Args:
        states: (N,), PRESENT, ABSENT or open.
        events: (N,) from 0, current.
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
    """Return recall and missing events with 95% intervals, counting only people's labels as found.

    Args:
        counts: From `count_events`, per class.
        found: (C,).
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
