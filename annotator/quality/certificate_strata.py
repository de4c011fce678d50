"""The strata that a certificate is computed from: all cells of the project, aligned with the samples of its audits.

This module reads the store class by class, inside one `Database.reading()`; certificate.py and certificate_groups.py
hand what it returns to models/statistics/.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from annotator.indexing import positions
from annotator.quality import event_audit
from annotator.quality.audit import Sample
from annotator.quality.certificate_records import Relabels
from annotator.records import ABSENT, PRESENT
from annotator.store.database.database import Database
from annotator.store.labels import audits
from annotator.store.labels.audits import Audit, AuditCells
from models.statistics.certificate import Strata, count
from models.statistics.event_totals import count_events, states_of_events
from models.statistics.stratified_sampling import LOOK_ABSENT, LOOK_PRESENT, OUTSIDE

SLACK = 0.02  # an audit is used, too, if it leaves at most this share of a class's cells more without a sample


@dataclass(frozen=True, eq=False)
class Population:
    """All cells of the project, whose labels are read class by class: N bytes at a time instead of N x C.

    Attributes:
        image_ids: (N,) int64, ascending.
        class_ids: (C,) int64.
        events: (N,) int64 from 0, the event of each image; None in a project without events.
    """

    db: Database
    image_ids: np.ndarray
    class_ids: np.ndarray
    events: np.ndarray | None

    def of_class(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of one class, (N,) int8, and which cells are auto-accepted as present, (N,) bool."""
        class_id = int(self.class_ids[column])
        accepted = audits.class_accepted(self.db, class_id, self.image_ids) == PRESENT
        return audits.class_labels(self.db, class_id, self.image_ids), accepted


@dataclass(frozen=True, eq=False)
class Aligned:
    """A sample of one class in rows of the current images.

    Attributes:
        sample: None without an audit.
        strata: (N,) uint8.
        rows: (n,) sampled rows, without relabels.
        uncovered: Images that were added after the sample was drawn.
    """

    sample: Sample | None
    strata: np.ndarray
    rows: np.ndarray
    uncovered: int


@dataclass(frozen=True, eq=False)
class Part:
    """The strata that one audit contributes to one class; rows (h,) are places in `Strata`."""

    column: int
    sample: Sample | None
    uncovered: int
    rows: np.ndarray


def aligned_with(sample: Sample, image_ids: np.ndarray) -> Aligned:
    """Return a sample in rows of these images, (N,) int64 ascending."""
    places, known = positions(image_ids, sample.image_ids)
    strata = np.where(known, sample.strata[places], OUTSIDE)
    rows, _ = positions(sample.image_ids[sample.rows], image_ids)
    relabel = np.isin(strata[rows], (LOOK_PRESENT, LOOK_ABSENT))
    return Aligned(sample, strata, rows[~relabel], int((~known).sum()))


def _unaudited(images: int) -> Aligned:
    return Aligned(None, np.full(images, OUTSIDE, np.uint8), np.zeros(0, np.int64), images)


def sharpest(
    samples: list[Sample], population: Population, column: int, states: np.ndarray, accepted: np.ndarray
) -> list[tuple[Aligned, dict[str, np.ndarray]]]:
    """Return the audits of one class that leave the fewest open cells without a sample, within SLACK.

    Args:
        samples: Of all classes.
        population: All cells.
        column: The class.
        states: Its labels, (N,), as `Population.of_class` returns them.
        accepted: Its auto-accepted cells, (N,) bool.

    Returns:
        Each with its rows of `Strata`, as `count` returns them. A class without answers has one without a sample.
    """
    class_id, images = int(population.class_ids[column]), len(population.image_ids)
    of_class = [aligned_with(sample, population.image_ids) for sample in samples if sample.class_id == class_id]
    answered = [aligned for aligned in of_class if len(aligned.rows)] or [_unaudited(images)]
    counted = [
        (aligned, count(aligned.strata, states, accepted, aligned.rows, np.ones(len(aligned.rows), bool)))
        for aligned in answered
    ]
    blank = [
        int(((counts["size"] - counts["present"] - counts["absent"]) * (counts["drawn"] == 0)).sum())
        for _, counts in counted
    ]
    return [part for part, cells in zip(counted, blank, strict=True) if cells <= min(blank) + SLACK * images]


class EventCounts(NamedTuple):
    """The events of one class: the rows of `Strata` of its sample, and how many events are found."""

    strata: dict[str, np.ndarray]
    found: int


class CellCounts(NamedTuple):
    """Counts of cells by class, (C,) each.

    present: labeled present; open: without a present or absent label; accepted: those of `open` that are auto-accepted
    as present.
    """

    present: np.ndarray
    accepted: np.ndarray
    open: np.ndarray


def strata_of(
    samples: list[Sample], population: Population, of_events: list[tuple[Audit, AuditCells]]
) -> tuple[Strata, list[Part], CellCounts, list[EventCounts]]:
    """Return all strata of all classes, the part of each audit in them, and the counts of cells by label.

    And what is known of the events of each class, from audits of events; [] in a project without events.
    """
    strata: list[dict[str, np.ndarray]] = []
    counts_of_events: list[EventCounts] = []
    parts: list[Part] = []
    length = 0
    cells = np.zeros((3, len(population.class_ids)), np.int64)
    for column, class_id in enumerate(population.class_ids.tolist()):
        states, accepted = population.of_class(column)
        is_open = (states != PRESENT) & (states != ABSENT)
        cells[:, column] = (states == PRESENT).sum(), (accepted & is_open).sum(), is_open.sum()
        if population.events is not None:
            sample = event_audit.largest_sample(population.db, of_events, class_id, population.image_ids)
            found = int((states_of_events(states, population.events) == PRESENT).sum())
            counts_of_events.append(EventCounts(count_events(sample, states, population.events), found))
        for number, (aligned, counts) in enumerate(sharpest(samples, population, column, states, accepted)):
            size = len(counts["code"])
            strata.append(counts | {"of_class": np.full(size, column), "audit": np.full(size, number)})
            parts.append(Part(column, aligned.sample, aligned.uncovered, np.arange(length, length + size)))
            length += size
    empty = np.zeros(0, np.int64)
    names = Strata.__dataclass_fields__
    joined = {name: np.concatenate([empty, *(counts[name] for counts in strata)]) for name in names}
    return Strata(**joined), parts, CellCounts(*cells), counts_of_events


def relabels_of(samples: list[Sample], image_ids: np.ndarray | None = None) -> Relabels:
    """Return the counts of relabels, of all images or of some, (n,) int64."""
    none = np.zeros(0, np.int64)
    strata = np.concatenate([none, *(sample.strata[sample.rows] for sample in samples)])
    states = np.concatenate([none, *(sample.states for sample in samples)])
    sure = states != 0
    if image_ids is not None:
        sure &= np.isin(np.concatenate([none, *(sample.image_ids[sample.rows] for sample in samples)]), image_ids)
    at_present, at_absent = (strata == LOOK_PRESENT) & sure, (strata == LOOK_ABSENT) & sure
    return Relabels(
        present=int(at_present.sum()),
        mistaken=int((at_present & (states == ABSENT)).sum()),
        absent=int(at_absent.sum()),
        missed=int((at_absent & (states == PRESENT)).sum()),
    )
