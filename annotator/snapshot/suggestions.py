"""Predictions of the current run + what people have answered -> the labels that are probably missing.

Only numpy: the page's process asks here, and it may not load torch.
"""

from collections.abc import Sequence

import numpy as np

from annotator.records import Class, Image, Suggestion
from annotator.settings import FIRST_RUN_AT, REVIEW_CHIPS
from annotator.snapshot.predictions import Predictions, read_predictions
from annotator.snapshot.rankings import whole
from annotator.snapshot.snapshot import Snapshot, read_snapshot
from annotator.store import auto_accepted, decisions, runs
from annotator.store.database import Database


def missing_positives(db: Database, class_id: int | None = None, limit: int | None = 50) -> list[Suggestion]:
    """The unanswered cells most likely to be present, likeliest first; none that a person has answered in any way.

    class_id    only this class; None: all
    limit       how many at most; None: all, which takes memory for every cell there is
    """
    if limit is not None and (snapshot := read_snapshot(db)):
        depth = limit + int(np.count_nonzero(snapshot.delta.changed))  # among so many, `limit` are open
        if depth <= whole(snapshot.rankings):
            return _likeliest(snapshot, class_id, limit, depth)
    predictions = read_predictions(db)
    if predictions is None:
        return []
    scores = _unanswered(db, predictions)
    if class_id is not None:
        scores[:, predictions.class_ids != class_id] = np.nan
    flat = scores.ravel()
    candidates = np.flatnonzero(flat >= 0)
    if limit is not None and limit < len(candidates):
        candidates = candidates[np.argpartition(-flat[candidates], limit - 1)[:limit]] if limit else candidates[:0]
    order = candidates[np.argsort(-flat[candidates], kind="stable")]
    rows, columns = np.divmod(order, len(predictions.class_ids))
    return _suggestions(predictions, rows, columns)


def suggestions_of(
    found: Predictions,
    answered: dict[int, set[int]],
    image_ids: Sequence[int],
    low: float,
    high: float = 1.0,
    class_id: int | None = None,
) -> dict[int, list[Suggestion]]:
    """For each image its suggestions with a probability from `low` to `high`, likeliest first.

    answered    image id -> the classes people have answered there
    class_id    only of this class
    """
    rows, known = found.rows(image_ids)
    result: dict[int, list[Suggestion]] = {}
    for image_id, row, has in zip(image_ids, rows, known, strict=True):
        if not has:
            continue
        scores = np.array(found.probabilities[row], np.float32)
        scores[np.isin(found.class_ids, list(answered.get(image_id, ())))] = np.nan
        if class_id is not None:
            scores[found.class_ids != class_id] = np.nan
        columns = np.flatnonzero((scores >= low) & (scores <= high))
        columns = columns[np.argsort(-scores[columns], kind="stable")][:REVIEW_CHIPS]
        result[image_id] = [
            Suggestion(image_id, int(found.class_ids[column]), round(float(scores[column]), 4), found.run.id)
            for column in columns
        ]
    return result


def likely(found: Predictions | None, image_ids: Sequence[int], classes: Sequence[Class]) -> dict[int, bytes]:
    """What the model thinks of whole images: for each one byte a class, in the order of `classes`.

    A byte is the probability times 254, 255 where there is none; of an image without a row b"".
    """
    if found is None:
        return {}
    columns, there = found.columns([one.id for one in classes])
    rows, known = found.rows(image_ids)
    result: dict[int, bytes] = {}
    for image_id, row, has in zip(image_ids, rows, known, strict=True):
        if has:
            scores = np.rint(np.array(found.probabilities[row], np.float32) * 254)
            bytes_ = np.where(np.isnan(scores), 255, scores).astype(np.uint8)
            every = np.full(len(classes), 255, np.uint8)
            every[there] = bytes_[columns[there]]
            result[image_id] = every.tobytes()
    return result


def answered_classes(db: Database, image_ids: Sequence[int]) -> dict[int, set[int]]:
    """For each image the classes that a person has answered there, in whatever way, or that were accepted."""
    answered = auto_accepted.accepted_class_ids(db, image_ids)
    for label in decisions.labels(db, image_ids):
        answered.setdefault(label.image_id, set()).add(label.class_id)
    return answered


def aligned(found: Predictions | None, images: Sequence[Image], classes: Sequence[Class]) -> np.ndarray | None:
    """The probabilities in the row order of `images` and the column order of `classes`, nan where there is none."""
    if found is None:
        return None
    image_ids, class_ids = [image.id for image in images], [class_.id for class_ in classes]
    return found.aligned(found.probabilities, image_ids, class_ids).astype(np.float32)


def labels_until_first_run(without_decision: int, images: int) -> int:
    """How many images people still have to label before the worker trains by itself."""
    return max(0, min(FIRST_RUN_AT, images) - (images - without_decision))


def run_to_explain(db: Database, run_id: int) -> int:
    """The run whose heat map answers for a suggestion of this run: itself, or the current one once it is gone."""
    if runs.kept_run(db, run_id):
        return run_id
    current = runs.current_run(db)
    return current.id if current else run_id


def _likeliest(snapshot: Snapshot, class_id: int | None, limit: int, depth: int) -> list[Suggestion]:
    """The likeliest open cells, from the first `depth` of each class."""
    predictions, rankings = snapshot.predictions, snapshot.rankings
    class_ids = predictions.class_ids
    searched = range(len(class_ids)) if class_id is None else np.flatnonzero(class_ids == class_id).tolist()
    rows_of, columns_of = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for column in searched:
        ranked = rankings.by_class[column, :depth]
        open_rows = snapshot.delta.open_rows(ranked[ranked >= 0], column)[:limit]
        rows_of.append(open_rows)
        columns_of.append(np.full(len(open_rows), column))
    rows, columns = np.concatenate(rows_of), np.concatenate(columns_of)
    order = np.lexsort((columns, rows, -predictions.probabilities[rows, columns].astype(np.float32)))[:limit]
    return _suggestions(predictions, rows[order], columns[order])


def _suggestions(predictions: Predictions, rows: np.ndarray, columns: np.ndarray) -> list[Suggestion]:
    image_ids, class_ids = predictions.image_ids[rows].tolist(), predictions.class_ids[columns].tolist()
    probabilities = predictions.probabilities[rows, columns].astype(float).tolist()
    cells = zip(image_ids, class_ids, probabilities, strict=True)
    return [Suggestion(*cell, predictions.run.id) for cell in cells]


def _unanswered(db: Database, predictions: Predictions) -> np.ndarray:
    """(N, C) float32 probabilities with nan in every cell that a person has answered, or that was auto-accepted."""
    scores = np.array(predictions.probabilities, np.float32)
    answered = [(image_id, class_id) for image_id, class_id, _ in decisions.label_cells(db)[0]]
    cells = np.array([*answered, *auto_accepted.accepted_cells(db)], np.int64).reshape(-1, 2)
    rows, columns, known = predictions.cells(*cells.T)
    scores[rows[known], columns[known]] = np.nan
    return scores
