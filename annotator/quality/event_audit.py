"""Audits of random whole events (bursts of images), which measure recall in events instead of images."""

import numpy as np

from annotator.errors import AnnotatorError
from annotator.indexing import CellIndex, find_positions
from annotator.snapshot.run_predictions import AlignedRows, read_predictions
from annotator.store.classes import classes
from annotator.store.database.database import Database, get_newest_decision_id
from annotator.store.events import membership
from annotator.store.labels import audits
from annotator.store.labels.audits import Audit, AuditCells
from spmll.rows import Rows
from spmll.statistics.event_totals import EventSample, draw_events
from spmll.statistics.stratified_sampling import NO_STRATUM, allocate

MAX_EVENT_IMAGES = 200  # images of an event that is drawn: each asks for an answer


def draw_cells(
    db: Database, event_count: int, rng: np.random.Generator, class_ids: list[int] | None
) -> tuple[CellIndex, np.ndarray, Rows, list[tuple[int, int, int, int]], int | None, int]:
    """Draw random events, and return the arguments of `audits.publish`. Call within `Database.reading`.

    Raises AnnotatorError if no events are left to draw.
    """
    all_ids = np.array([class_.id for class_ in classes.load_active_classes(db)], np.int64)
    chosen = np.flatnonzero(np.ones(len(all_ids), bool) if class_ids is None else np.isin(all_ids, class_ids))
    image_ids = audits.load_readable_image_ids(db)
    event_of = membership.load_event_ids(db, image_ids)
    if event_of is None:
        raise AnnotatorError(
            f"{db.paths.project} has no events to draw. Find them first: annotator events {db.paths.project}"
        )
    numbers = membership.number_events(event_of)
    sizes = np.bincount(numbers, minlength=1)
    predictions = read_predictions(db)
    scores = AlignedRows(predictions, image_ids, all_ids)
    strata = np.full((len(image_ids), len(all_ids)), NO_STRATUM, np.uint8, order="F")
    each = allocate(min(event_count, len(sizes) * len(chosen)), np.ones(len(chosen)), np.full(len(chosen), len(sizes)))
    cells: list[tuple[int, int, int, int]] = []
    for column, wanted in zip(chosen.tolist(), each.tolist(), strict=True):
        class_id = int(all_ids[column])
        states = audits.load_class_labels(db, class_id, image_ids)
        of_class = np.full(len(image_ids), np.nan, np.float16)
        if predictions is not None:
            of_class = predictions.align(predictions.probabilities, image_ids, all_ids[column : column + 1])[:, 0]
        drawn = draw_events(states, of_class, numbers, np.flatnonzero(sizes <= MAX_EVENT_IMAGES), wanted, rng)
        strata[:, column] = drawn.strata
        rows = drawn.rows
        ids_and_strata = zip(image_ids[rows].tolist(), drawn.strata[rows].tolist(), strict=True)
        cells += [(class_id, image_id, stratum, place) for place, (image_id, stratum) in enumerate(ids_and_strata)]
    if not cells:
        raise AnnotatorError(f"There is nothing to audit: {db.paths.project} has no event with an unanswered pair.")
    run_id = predictions.run.id if predictions else None
    return CellIndex(image_ids, all_ids), strata, scores, cells, run_id, get_newest_decision_id(db.sql)


def find_largest_sample(
    db: Database, drawn: list[tuple[Audit, AuditCells]], class_id: int, image_ids: np.ndarray
) -> EventSample:
    """Return the largest (then newest) of these audits' samples of a class's events.

    Samples are not joined, because each excludes the events found before it was drawn.

    Args:
        image_ids: (N,) int64, ascending. The sample has indexes into these.
    """
    best = EventSample.empty(len(image_ids))
    for audit, cells in drawn:
        of_class = np.flatnonzero((cells.class_id == class_id) & cells.shown)
        if len(of_class) > len(best.rows):
            population = audits.load_population(db, audit.id)
            columns, _ = population.find_columns([class_id])
            places, known = find_positions(image_ids, population.image_ids)
            rows, _ = find_positions(cells.image_id[of_class], image_ids)
            strata = np.where(known, population.strata[places, int(columns[0])], NO_STRATUM).astype(np.uint8)
            best = EventSample(strata, rows, cells.place[of_class], cells.in_audit[of_class])
    return best
