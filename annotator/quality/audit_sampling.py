"""Audits: random samples of cells (image and class), answered blind, that measure recall and precision of all labels.

Second answers to labeled cells are called relabels.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from annotator.errors import AnnotatorError
from annotator.indexing import CellIndex, find_positions
from annotator.quality import event_audit
from annotator.records import ABSENT, PRESENT
from annotator.snapshot.run_predictions import AlignedRows, Predictions, read_predictions
from annotator.store.classes import classes
from annotator.store.database.database import Database, get_newest_decision_id
from annotator.store.labels import audits, project_counts
from annotator.store.labels.audits import OPEN, Audit, AuditCells
from spmll.rows import Rows
from spmll.statistics.allowed_mistakes import allocate_second_looks
from spmll.statistics.stratified_sampling import (
    ACCEPTED_ABSENT,
    ACCEPTED_PRESENT,
    CONFIRM_PRESENT,
    LOOK_ABSENT,
    LOOK_PRESENT,
    NO_STRATUM,
    RELABEL_STRATA,
    UNKNOWN_CELL,
    allocate,
    draw_sample,
)

# default size of an audit: so many cells of each class, and at least so many in all
CELLS_PER_CLASS, MIN_CELLS = (30, 200)
RELABEL_SHARE = 0.1  # share of an audit that are relabels: cells that people have decided, half of them "present"
SECOND_LOOK_SHARE = 0.2  # share of an audit, at most, that are second looks at present labels of rare classes
DECIDED_CELL = -1
COLUMNS_PER_READ = 8  # of all probabilities: reading one column of them takes as long as reading eight
MAX_PEOPLE_PER_CELL = 9  # people who may answer the same cell


@dataclass(frozen=True)
class OpenAuditCell:
    """A cell of an audit that is still to be answered."""

    audit_id: int
    class_id: int
    image_id: int
    # run_id, score: model and probability when the audit was drawn. Annotators never see them
    run_id: int | None
    score: float | None


@dataclass(frozen=True, eq=False)
class ClassSample:
    """One class's cells of an audit, with those that were answered."""

    audit: Audit
    class_id: int
    # image_ids, strata, scores: (N,), all cells of the class when the audit was drawn
    image_ids: np.ndarray
    strata: np.ndarray
    scores: np.ndarray
    # (n,) int64, indexes of the answered cells that count, in random order within each stratum
    rows: np.ndarray
    # (n,) int64, their answers: 1 present, -1 absent, 0 unsure
    states: np.ndarray


def get_default_size(db: Database) -> int:
    return max(MIN_CELLS, CELLS_PER_CLASS * len(classes.load_active_classes(db)))


def estimate_cells(db: Database, labeled: np.ndarray, undecided: int) -> np.ndarray:
    """Return the expected cells per class of a default audit, (C, 3): labeled present, labeled absent, undecided.

    Args:
        labeled: (C, 2), cells labeled present and absent per class.
        undecided: Cells without a label, in all classes together.
    """
    size, in_all = get_default_size(db), labeled.sum(0)
    drawn = np.minimum(_count_relabels_per_state(size, undecided), in_all)
    rest = min(size - int(drawn.sum()), undecided) / max(len(labeled), 1)
    return np.column_stack([labeled / np.maximum(in_all, 1) * drawn, np.full(len(labeled), rest)])


def draw_audit(
    db: Database,
    size: int | None = None,
    seed: int | None = None,
    class_ids: Sequence[int] | None = None,
    people: int = 1,
    *,
    by_event: bool = False,
) -> Audit:
    """Draw an audit from the current labels.

    Unanswered cells are stratified by the model's probabilities, auto-accepted cells separately. Relabels are a simple
    random sample of decided cells. Present labels of rare classes, which may be false alarms, get a second look.

    Args:
        size: Maximum of cells, relabels included.
        class_ids: Classes with equally many cells each. None selects all.
        people: Annotators per cell, blind to each other.
        by_event: Draw `size` events with all their images, without relabels.

    Raises:
        AnnotatorError: For nothing to draw, or an invalid `size` or `people`.
        DiskFull: If the audit cannot be written.
    """
    size = get_default_size(db) if size is None else size
    if size < 1:
        raise AnnotatorError(f"An audit needs 1 or more image-class pairs, such as {get_default_size(db)}, not {size}.")
    if not 1 <= people <= MAX_PEOPLE_PER_CELL:
        raise AnnotatorError(f"Each pair of an audit is answered by 1 to {MAX_PEOPLE_PER_CELL} people, not {people}.")
    with db.reading():  # labels are read class by class, as of one moment
        rng = np.random.default_rng(seed)
        if by_event:
            drawn = event_audit.draw_cells(db, size, rng, None if class_ids is None else list(class_ids))
        else:
            drawn = _draw_cells(db, size, rng, class_ids)
    audit_id = audits.publish(db, *drawn, people=people, by_event=by_event)
    return next(audit for audit in audits.load_audits(db) if audit.id == audit_id)


def _draw_cells(
    db: Database, size: int, rng: np.random.Generator, chosen_ids: Sequence[int] | None
) -> tuple[CellIndex, np.ndarray, Rows, list[tuple[int, int, int, int]], int | None, int]:
    newest = get_newest_decision_id(db.sql)
    all_ids = np.array([class_.id for class_ in classes.load_active_classes(db)], np.int64)
    chosen = np.ones(len(all_ids), bool) if chosen_ids is None else np.isin(all_ids, list(chosen_ids))
    image_ids = audits.load_readable_image_ids(db)
    if not len(image_ids) or not chosen.any():
        what = (
            "images" if not len(image_ids) else "classes" if not len(all_ids) else f"classes {list(chosen_ids or ())}"
        )
        raise AnnotatorError(f"There are no {what} to audit in {db.paths.project}.")
    predictions = read_predictions(db)
    scores = AlignedRows(predictions, image_ids, all_ids)
    # written, and read, class by class
    strata = np.full((len(image_ids), len(all_ids)), NO_STRATUM, np.uint8, order="F")
    counts = np.zeros((2, len(all_ids)), np.int64)  # cells that are present, and absent
    for column in np.flatnonzero(chosen).tolist():
        states = audits.load_class_labels(db, int(all_ids[column]), image_ids)
        strata[states == PRESENT, column], strata[states == ABSENT, column] = LOOK_PRESENT, LOOK_ABSENT
        counts[:, column] = (states == PRESENT).sum(), (states == ABSENT).sum()
    open_counts = np.where(chosen, len(image_ids) - counts.sum(0), 0)
    relabels = _draw_relabels(strata, counts, _count_relabels_per_state(size, int(open_counts.sum())), rng)
    seen = _find_seen_cells(db, strata, relabels, image_ids, all_ids)
    looks = _draw_second_looks(strata, counts, seen, min(round(SECOND_LOOK_SHARE * size), size - len(relabels)), rng)
    relabels = np.concatenate([relabels, looks])
    sizes = allocate(min(size - len(relabels), int(open_counts.sum())), open_counts > 0, open_counts)
    cells: list[tuple[int, int, int, int]] = []
    for column, class_id in enumerate(all_ids.tolist()):
        if column % COLUMNS_PER_READ == 0:
            some = get_probabilities(predictions, image_ids, all_ids[column : column + COLUMNS_PER_READ])
        of_class = relabels[relabels[:, 1] == column, 0]
        if chosen[column]:
            is_decided = strata[:, column] != NO_STRATUM
            kinds = np.where(is_decided, DECIDED_CELL, _load_cell_kinds(db, class_id, image_ids))
            drawn = draw_sample(kinds, some[:, column % COLUMNS_PER_READ], int(sizes[column]), rng)
            strata[:, column] = np.where(is_decided, strata[:, column], drawn.strata)
            of_class = np.concatenate([drawn.rows, of_class])
        rows = rng.permutation(of_class)
        ids_and_strata = zip(image_ids[rows].tolist(), strata[rows, column].tolist(), strict=True)
        cells += [(class_id, image_id, stratum, place) for place, (image_id, stratum) in enumerate(ids_and_strata)]
    if not cells:
        raise AnnotatorError(f"There is nothing to audit: {db.paths.project} has no image-class pair to ask about.")
    run_id = predictions.run.id if predictions else None
    return CellIndex(image_ids, all_ids), strata, scores, cells, run_id, newest


def load_open_cells(db: Database, class_id: int | None = None) -> list[OpenAuditCell]:
    """Return the unanswered audit cells, newest audit first, by class, in random asking order.

    The answers to a class count once all are given.
    """
    open_: dict[tuple[int, int], OpenAuditCell] = {}
    for audit in audits.load_audits(db):
        cells, population = audits.load_cells(db, audit), audits.load_population(db, audit.id)
        keep = (cells.state == OPEN) & cells.shown
        if class_id is not None:
            keep &= cells.class_id == class_id
        rows, columns, _ = population.find_cells(cells.image_id[keep], cells.class_id[keep])
        scores = population.scores[rows, columns].astype(float).tolist()
        ids = zip(cells.class_id[keep].tolist(), cells.image_id[keep].tolist(), strict=True)
        for (cell_class, image_id), score in zip(ids, scores, strict=True):
            logged = None if np.isnan(score) else score
            open_.setdefault(
                (cell_class, image_id), OpenAuditCell(audit.id, cell_class, image_id, audit.run_id, logged)
            )
    return list(open_.values())


def load_open_cells_for(db: Database, annotator: str) -> list[OpenAuditCell]:
    """Return the audit cells to ask one annotator: unanswered ones, then those that need more annotators' answers."""
    unanswered = load_open_cells(db)
    return unanswered + load_cells_to_repeat(db, annotator, {(cell.class_id, cell.image_id) for cell in unanswered})


def load_cells_to_repeat(
    db: Database, annotator: str | None, excluded: Collection[tuple[int, int]] = ()
) -> list[OpenAuditCell]:
    """Return the answered audit cells that need more answers, in asking order.

    Each needs `people` annotators. Where that is 1, "present" gets a second look, by the same one if there is no other.

    Args:
        annotator: Omit cells answered by this annotator, except for second looks of a single annotator.
        excluded: Omit these (class id, image id).
    """
    wanted: dict[tuple[int, int], OpenAuditCell] = {}
    is_alone = len({*project_counts.list_annotators(db)} - {"import"}) < 2
    for audit in audits.load_audits(db):
        people, cells = audits.load_annotators_by_cell(db, audit), audits.load_cells(db, audit)
        if audit.people == 1 and ((cells.state == OPEN) & cells.shown).any():
            continue  # second looks come together, and not right after the first ones
        needs_look = (cells.state == PRESENT) & ~np.isin(cells.stratum, RELABEL_STRATA)
        needs_look &= audit.people == 1 and not audit.by_event
        for class_id, image_id, is_asked, is_present in zip(
            cells.class_id.tolist(), cells.image_id.tolist(), cells.shown, needs_look, strict=True
        ):
            cell = class_id, image_id
            had = people.get(cell, [])
            is_other = annotator not in had or (is_present and is_alone)
            if (
                is_asked
                and had
                and len(had) < (2 if is_present else audit.people)
                and is_other
                and cell not in excluded
            ):
                # The model's probability is logged with the first answer only, so that a cell tests it once.
                wanted.setdefault(cell, OpenAuditCell(audit.id, class_id, image_id, audit.run_id, None))
    return list(wanted.values())


def load_samples(db: Database, audit: Audit, cells: AuditCells) -> list[ClassSample]:
    """Return an audit's samples, one per class, or [] if its arrays are missing.

    Unreadable images are removed from population and sample alike. The answers to a class count once all are given.
    """
    try:
        population = audits.load_population(db, audit.id)
    except FileNotFoundError:
        return []
    samples = []
    for column, class_id in enumerate(population.class_ids.tolist()):
        counted = np.flatnonzero((cells.class_id == class_id) & cells.shown)
        if (cells.state[counted] == OPEN).any():  # each audit is one look, after its last answer to the class
            counted = counted[:0]
        rows, _ = population.find_rows(cells.image_id[counted])
        strata, scores = population.strata[:, column], population.scores[:, column]
        samples.append(ClassSample(audit, class_id, population.image_ids, strata, scores, rows, cells.state[counted]))
    return samples


def get_probabilities(predictions: Predictions | None, image_ids: np.ndarray, class_ids: np.ndarray) -> np.ndarray:
    """Return the current model's probabilities, (N, C) float16 for N images and C classes, nan without a model."""
    if predictions is None:
        return np.full((len(image_ids), len(class_ids)), np.nan, np.float16)
    return predictions.align(predictions.probabilities, image_ids, class_ids)


def _load_cell_kinds(db: Database, class_id: int, image_ids: np.ndarray) -> np.ndarray:
    accepted = audits.load_class_accepted(db, class_id, image_ids)
    kinds = np.full(len(accepted), UNKNOWN_CELL, np.int8)
    kinds[accepted == PRESENT], kinds[accepted == ABSENT] = ACCEPTED_PRESENT, ACCEPTED_ABSENT
    return kinds


def _count_relabels_per_state(size: int, undecided: int) -> int:
    return round((RELABEL_SHARE if undecided else 1.0) * size / 2)


def _find_seen_cells(
    db: Database, strata: np.ndarray, relabels: np.ndarray, image_ids: np.ndarray, class_ids: np.ndarray
) -> np.ndarray:
    """Return rows and columns, (n, 2), of present cells that have a second look, or are among the relabels."""
    confirmed = audits.load_confirmed_cells(db)
    columns, is_class = find_positions(confirmed[:, 0], class_ids)
    rows, is_image = find_positions(confirmed[:, 1], image_ids)
    confirmed = np.stack([rows, columns], 1)[is_class & is_image]
    cells = np.unique(np.concatenate([relabels, confirmed]), axis=0)
    return cells[strata[cells[:, 0], cells[:, 1]] == LOOK_PRESENT]


def _draw_second_looks(
    strata: np.ndarray, counts: np.ndarray, seen: np.ndarray, most: int, rng: np.random.Generator
) -> np.ndarray:
    """Mark in `strata` at most `most` present cells of rare classes for a second look. Returns rows and columns."""
    left = counts[0] - np.bincount(seen[:, 1], minlength=counts.shape[1])
    looks = [np.zeros((0, 2), np.int64)]
    for column, many in enumerate(allocate_second_looks(left, counts[1], max(most, 0)).tolist()):
        if many:
            rows = np.setdiff1d(np.flatnonzero(strata[:, column] == LOOK_PRESENT), seen[seen[:, 1] == column, 0])
            rows = rng.choice(rows, many, replace=False)
            strata[rows, column] = CONFIRM_PRESENT
            looks.append(np.stack([rows, np.full(many, column)], 1))
    return np.concatenate(looks)


def _draw_relabels(strata: np.ndarray, counts: np.ndarray, per_state: int, rng: np.random.Generator) -> np.ndarray:
    """Draw at most `per_state` labeled cells per state for a second answer. Returns (n, 2) rows and columns."""
    drawn = [np.zeros((0, 2), np.int64)]
    for stratum, of_classes in zip((LOOK_PRESENT, LOOK_ABSENT), counts, strict=True):
        cells, ends = int(of_classes.sum()), np.cumsum(of_classes)
        # Cells are numbered class by class. Their rows are looked up only for the classes that are drawn from.
        numbers = rng.choice(cells, min(per_state, cells), replace=False)
        columns = np.searchsorted(ends, numbers, "right")
        for column in np.unique(columns).tolist():
            places = numbers[columns == column] - (ends[column] - of_classes[column])
            rows = np.flatnonzero(strata[:, column] == stratum)[places]
            drawn.append(np.stack([rows, np.full(len(rows), column)], 1))
    return np.concatenate(drawn)
