"""Drawing cells at random, so that people's answers to them say how complete and how correct all labels are.

They are answered blind: whoever answers is told neither what the model thinks nor what was said before.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from annotator.errors import AnnotatorError
from annotator.records import ABSENT, PRESENT
from annotator.snapshot.predictions import Predictions, read_predictions
from annotator.store import audits, classes
from annotator.store.audits import OPEN, Audit, AuditCells, Population
from annotator.store.database import Database
from models.statistics.stratified_sampling import (
    ACCEPTED_ABSENT,
    ACCEPTED_PRESENT,
    LOOK_ABSENT,
    LOOK_PRESENT,
    OUTSIDE,
    UNKNOWN,
    draw_class,
    share_out,
    usable,
)

CELLS_A_CLASS, CELLS = 30, 200  # a drawing has so many of each class, and so many at least, unless told otherwise
LOOKS = 0.1  # of a drawing are second looks at what people have decided, half of them at "present"
DECIDED = -1


@dataclass(frozen=True)
class OpenCell:
    """A drawn cell that waits for an answer.

    score    what the model said when it was drawn, None without a model: to be logged with the answer, never shown
    """

    audit_id: int
    class_id: int
    image_id: int
    run_id: int | None
    score: float | None


@dataclass(frozen=True, eq=False)
class Sample:
    """One drawing of one class, as far as it has been answered.

    image_ids, strata, scores    (N,) of all cells when it was drawn (Population)
    rows      (n,) int64, the cells drawn that may be counted, each stratum's in its random order
    states    (n,) int64, what people say of them: 1, -1, or 0 for unsure
    """

    audit: Audit
    class_id: int
    image_ids: np.ndarray
    strata: np.ndarray
    scores: np.ndarray
    rows: np.ndarray
    states: np.ndarray


def usual_size(db: Database) -> int:
    """How many cells a drawing has when nobody says."""
    return max(CELLS, CELLS_A_CLASS * len(classes.all_classes(db)))


def draw(
    db: Database, size: int | None = None, seed: int | None = None, class_ids: Sequence[int] | None = None
) -> Audit:
    """Draw cells from the labels as they stand.

    size         how many in all, second looks included; fewer when there are not as many. None: `usual_size`
    seed         None: another drawing every time
    class_ids    only of these classes; None: of all, as many of each as of any other

    Cells that nobody has decided are drawn by strata of the current run's probabilities, those that a model has filled
    in are strata of their own (models/statistics/stratified_sampling.py), and a few are second looks: a plain random
    sample of all cells that
    people have decided. Raises AnnotatorError when there is nothing to draw from, or for a size below 1; DiskFull.
    """
    size = usual_size(db) if size is None else size
    if size < 1:
        raise AnnotatorError(f"An audit of {size} cells says nothing. Draw 1 or more, such as {usual_size(db)}.")
    every = np.array([one.id for one in classes.all_classes(db)], np.int64)
    chosen = np.ones(len(every), bool) if class_ids is None else np.isin(every, list(class_ids))
    image_ids = audits.readable_images(db)
    if not len(image_ids) or not chosen.any():
        what = "images" if not len(image_ids) else "classes" if not len(every) else f"classes {list(class_ids or ())}"
        raise AnnotatorError(f"There are no {what} to draw cells from in {db.paths.project}.")
    rng = np.random.default_rng(seed)
    found = read_predictions(db)
    states, newest = audits.label_matrix(db, image_ids, every)
    filled = audits.accepted_matrix(db, image_ids, every)
    scores = scores_of(found, image_ids, every)
    kinds = np.where(filled == PRESENT, ACCEPTED_PRESENT, np.where(filled == ABSENT, ACCEPTED_ABSENT, UNKNOWN))
    kinds[(states == PRESENT) | (states == ABSENT)] = DECIDED
    kinds[:, ~chosen] = DECIDED
    strata = np.full(states.shape, OUTSIDE, np.uint8)
    looks = _second_looks(states * chosen, size, rng, strata)
    left = (kinds != DECIDED).sum(0)
    each = share_out(min(size - len(looks), int(left.sum())), left > 0, left)
    cells = []
    for column, class_id in enumerate(every.tolist()):
        drawn = draw_class(kinds[:, column], scores[:, column], int(each[column]), rng)
        again = looks[looks[:, 1] == column, 0]
        strata[:, column] = np.where(kinds[:, column] == DECIDED, strata[:, column], drawn.strata)
        rows = rng.permutation(np.concatenate([drawn.rows, again]))
        cells += [
            (class_id, image_id, stratum, place)
            for place, (image_id, stratum) in enumerate(
                zip(image_ids[rows].tolist(), strata[rows, column].tolist(), strict=True)
            )
        ]
    if not cells:
        raise AnnotatorError(f"There is nothing to draw: {db.paths.project} has no cell for an audit to ask about.")
    audit_id = audits.publish(
        db, Population(image_ids, every, strata, scores), cells, found.run.id if found else None, newest
    )
    return next(one for one in audits.audits(db) if one.id == audit_id)


def open_cells(db: Database, class_id: int | None = None) -> list[OpenCell]:
    """Drawn cells that wait for an answer, those of the newest drawing first, by class, in the order to ask them in.

    That order is random, and an answer counts once all before it in its class and stratum are answered. Images that
    cannot be shown any more are left out, and a cell that several drawings ask about is here once.
    """
    found: dict[tuple[int, int], OpenCell] = {}
    for audit in audits.audits(db):
        cells, where = audits.cells_of(db, audit), audits.population(db, audit.id)
        keep = (cells.state == OPEN) & cells.shown
        if class_id is not None:
            keep &= cells.class_id == class_id
        rows, columns, _ = where.cells(cells.image_id[keep], cells.class_id[keep])
        scores = where.scores[rows, columns].astype(float).tolist()
        asked = zip(cells.class_id[keep].tolist(), cells.image_id[keep].tolist(), strict=True)
        for (of_class, image_id), score in zip(asked, scores, strict=True):
            told = None if np.isnan(score) else score
            found.setdefault((of_class, image_id), OpenCell(audit.id, of_class, image_id, audit.run_id, told))
    return list(found.values())


def samples(db: Database) -> list[Sample]:
    """All drawings, newest first, class by class: what was drawn, and what may be counted of the answers."""
    return [one for audit in audits.audits(db) for one in samples_of(db, audit, audits.cells_of(db, audit))]


def samples_of(db: Database, audit: Audit, cells: AuditCells) -> list[Sample]:
    """The samples of one drawing, class by class; [] when its arrays are gone.

    The answers that may be counted are, in every stratum, those of `models.statistics.stratified_sampling.usable`.
    Images that cannot be shown
    any more are taken out, drawn or not: what is left is a random sample of what is left.
    """
    try:
        where = audits.population(db, audit.id)
    except FileNotFoundError:
        return []
    found = []
    for column, class_id in enumerate(where.class_ids.tolist()):
        mine = np.flatnonzero((cells.class_id == class_id) & cells.shown)
        keep = np.zeros(len(mine), bool)
        for stratum in np.unique(cells.stratum[mine]):
            of = np.flatnonzero(cells.stratum[mine] == stratum)
            some = mine[of]
            keep[of] = usable(cells.place[some], cells.state[some] != OPEN, cells.in_audit[some])
        counted = mine[keep]
        rows, _ = where.rows(cells.image_id[counted])
        found.append(
            Sample(
                audit,
                class_id,
                where.image_ids,
                where.strata[:, column],
                where.scores[:, column],
                rows,
                cells.state[counted],
            )
        )
    return found


def scores_of(found: Predictions | None, image_ids: np.ndarray, class_ids: np.ndarray) -> np.ndarray:
    """The current run's probabilities of these images and classes: (N, C) float16, nan where it says nothing."""
    if found is None:
        return np.full((len(image_ids), len(class_ids)), np.nan, np.float16)
    return found.aligned(found.probabilities, image_ids, class_ids)


def _second_looks(states: np.ndarray, size: int, rng: np.random.Generator, strata: np.ndarray) -> np.ndarray:
    """Draw from what people have decided: (n, 2) rows and columns; their strata are written into `strata`."""
    drawn = []
    for state, stratum in ((PRESENT, LOOK_PRESENT), (ABSENT, LOOK_ABSENT)):
        strata[states == state] = stratum
        there = np.flatnonzero(states == state)
        drawn.append(rng.choice(there, min(round(LOOKS * size / 2), len(there)), replace=False))
    return np.stack(np.unravel_index(np.concatenate(drawn), states.shape), 1)
