"""The strata of a quality report: all cells (image and class), grouped as audits sampled them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from annotator.indexing import find_positions
from annotator.quality import event_audit
from annotator.quality.audit_sampling import ClassSample
from annotator.records import ABSENT, PRESENT
from annotator.store.database.database import Database
from annotator.store.labels import audits
from annotator.store.labels.audits import Audit, AuditCells
from spmll.statistics.allowed_mistakes import RepeatedAnswers
from spmll.statistics.certified_recall import Strata, count_strata
from spmll.statistics.event_totals import compute_event_states, count_events
from spmll.statistics.stratified_sampling import LOOK_ABSENT, LOOK_PRESENT, NO_STRATUM, RELABEL_STRATA

# an audit is used, too, if it leaves at most this share of a class's cells more without a sample
UNCOVERED_SLACK = 0.02


@dataclass(frozen=True, eq=False)
class CellPopulation:
    """All cells of the project, read class by class to save memory.

    `image_ids` (N,) ascend. `events` (N,) int64 has each image's event number, or is None.
    """

    db: Database
    image_ids: np.ndarray
    class_ids: np.ndarray
    events: np.ndarray | None

    def read_class(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a class's labels, (N,) int8, and which cells are auto-accepted as present, (N,) bool."""
        class_id = int(self.class_ids[column])
        accepted = audits.load_class_accepted(self.db, class_id, self.image_ids) == PRESENT
        return audits.load_class_labels(self.db, class_id, self.image_ids), accepted


@dataclass(frozen=True, eq=False)
class AlignedSample:
    """One class's audit sample, in which `rows` (n,) index the current images.

    Relabels are omitted. `uncovered` counts images added after sampling.
    """

    sample: ClassSample | None
    strata: np.ndarray
    rows: np.ndarray
    uncovered: int


@dataclass(frozen=True, eq=False)
class AuditPart:
    """The h strata that one audit contributes for one class."""

    column: int
    sample: ClassSample | None
    uncovered: int
    # (h,), indexes of these strata in `Strata`
    rows: np.ndarray


def align_sample(sample: ClassSample, image_ids: np.ndarray) -> AlignedSample:
    """Return a sample whose rows index `image_ids`, (N,) int64 ascending."""
    places, known = find_positions(image_ids, sample.image_ids)
    strata = np.where(known, sample.strata[places], NO_STRATUM)
    rows, _ = find_positions(sample.image_ids[sample.rows], image_ids)
    relabel = np.isin(strata[rows], RELABEL_STRATA)
    return AlignedSample(sample, strata, rows[~relabel], int((~known).sum()))


def _make_unaudited_sample(images: int) -> AlignedSample:
    return AlignedSample(None, np.full(images, NO_STRATUM, np.uint8), np.zeros(0, np.int64), images)


def select_best_audits(
    samples: list[ClassSample], population: CellPopulation, column: int, states: np.ndarray, accepted: np.ndarray
) -> list[tuple[AlignedSample, dict[str, np.ndarray]]]:
    """Return the audits of a class whose samples leave the fewest unanswered cells uncovered.

    Each is (sample, its `Strata` columns). Without answered audits, the only entry has no sample.
    """
    class_id, images = int(population.class_ids[column]), len(population.image_ids)
    of_class = [align_sample(sample, population.image_ids) for sample in samples if sample.class_id == class_id]
    answered = [aligned for aligned in of_class if len(aligned.rows)] or [_make_unaudited_sample(images)]
    counted = [
        (aligned, count_strata(aligned.strata, states, accepted, aligned.rows, np.ones(len(aligned.rows), bool)))
        for aligned in answered
    ]
    blank = [
        int(((counts["size"] - counts["present"] - counts["absent"]) * (counts["drawn"] == 0)).sum())
        for _, counts in counted
    ]
    return [part for part, cells in zip(counted, blank, strict=True) if cells <= min(blank) + UNCOVERED_SLACK * images]


class EventCounts(NamedTuple):
    """The strata of one class counted in events, as columns of `Strata`, and its number of found events."""

    strata: dict[str, np.ndarray]
    found: int


class CellCounts(NamedTuple):
    """Numbers of cells per class, (C,)."""

    present: np.ndarray
    # auto-accepted cells among the `open` (unanswered) ones
    accepted: np.ndarray
    open: np.ndarray
    # present cells that have a second look
    confirmed: np.ndarray
    # present cells of audits that have none
    unconfirmed: np.ndarray
    # number of audits whose answers count
    audits: np.ndarray


def build_strata(
    samples: list[ClassSample], population: CellPopulation, event_audits: list[tuple[Audit, AuditCells]]
) -> tuple[Strata, list[AuditPart], CellCounts, list[EventCounts]]:
    """Return all strata, each audit's part of them, cell counts, and event counts per class ([] without events)."""
    strata: list[dict[str, np.ndarray]] = []
    counts_of_events: list[EventCounts] = []
    parts: list[AuditPart] = []
    length = 0
    cells = np.zeros((6, len(population.class_ids)), np.int64)
    seen = audits.load_confirmed_cells(population.db)
    forgotten = audits.count_forgotten_audits(population.db)
    for column, class_id in enumerate(population.class_ids.tolist()):
        states, accepted = population.read_class(column)
        is_open = (states != PRESENT) & (states != ABSENT)
        is_seen = np.isin(population.image_ids, seen[seen[:, 0] == class_id, 1])
        cells[:4, column] = (
            (states == PRESENT).sum(), (accepted & is_open).sum(), is_open.sum(), (is_seen & (states == PRESENT)).sum()
        )  # fmt: skip
        answered = sum(sample.class_id == class_id and len(sample.rows) > 0 for sample in samples)
        cells[5, column] = answered + (forgotten if answered else 0)
        if population.events is not None:
            sample = event_audit.find_largest_sample(population.db, event_audits, class_id, population.image_ids)
            found = int((compute_event_states(states, population.events) == PRESENT).sum())
            counts_of_events.append(EventCounts(count_events(sample, states, population.events), found))
        for number, (aligned, counts) in enumerate(select_best_audits(samples, population, column, states, accepted)):
            size = len(counts["code"])
            strata.append(counts | {"of_class": np.full(size, column), "audit": np.full(size, number)})
            parts.append(AuditPart(column, aligned.sample, aligned.uncovered, np.arange(length, length + size)))
            length += size
            rows = aligned.rows
            cells[4, column] += ((states[rows] == PRESENT) & ~is_seen[rows]).sum()
    empty = np.zeros(0, np.int64)
    names = Strata.__dataclass_fields__
    joined = {name: np.concatenate([empty, *(counts[name] for counts in strata)]) for name in names}
    return Strata(**joined), parts, CellCounts(*cells), counts_of_events


def count_relabels_by_class(samples: list[ClassSample]) -> dict[int, RepeatedAnswers]:
    """Return class id -> counts of blind second answers."""
    counts: dict[int, RepeatedAnswers] = {}
    for sample in samples:
        counts[sample.class_id] = counts.get(sample.class_id, RepeatedAnswers()) + count_relabels([sample])
    return counts


def count_relabels(samples: list[ClassSample], image_ids: np.ndarray | None = None) -> RepeatedAnswers:
    """Count the blind second answers to labeled cells, in all images or in `image_ids`, (n,) int64."""
    none = np.zeros(0, np.int64)
    strata = np.concatenate([none, *(sample.strata[sample.rows] for sample in samples)])
    states = np.concatenate([none, *(sample.states for sample in samples)])
    sure = states != 0
    if image_ids is not None:
        sure &= np.isin(np.concatenate([none, *(sample.image_ids[sample.rows] for sample in samples)]), image_ids)
    at_present, at_absent = (strata == LOOK_PRESENT) & sure, (strata == LOOK_ABSENT) & sure
    return RepeatedAnswers(
        present=int(at_present.sum()),
        mistaken=int((at_present & (states == ABSENT)).sum()),
        absent=int(at_absent.sum()),
        missed=int((at_absent & (states == PRESENT)).sum()),
    )
