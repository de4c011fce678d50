"""Predictions of the current run + what people have answered -> the labels that are probably missing.

Only numpy: the page's process asks here, and it may not load torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from annotator.records import Class, Image, Run, Suggestion, Wanted
from annotator.settings import FIRST_RUN_AT, REVIEW_CHIPS
from annotator.store import decisions, leases, runs
from annotator.store.arrays import open_array
from annotator.store.database import Database

SCAN = 64  # images of the review order looked at in one query


@dataclass(frozen=True)
class Predictions:
    """One run's probabilities, mapped from disk.

    image_ids        (N,) int64, ascending: what the rows are
    class_ids        (C,) int64, ascending: what the columns are
    probabilities    (N, C) float16 in [0, 1], nan where the class has no model
    """

    run: Run
    image_ids: np.ndarray
    class_ids: np.ndarray
    probabilities: np.ndarray

    def rows(self, image_ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """For some images, their rows, and which of the images have one: (n,) int64, (n,) bool."""
        wanted = np.asarray(image_ids, np.int64)
        rows = np.searchsorted(self.image_ids, wanted)
        rows[rows == len(self.image_ids)] = 0
        known = self.image_ids[rows] == wanted if len(self.image_ids) else np.zeros(len(wanted), bool)
        return rows, known


def predictions(db: Database) -> Predictions | None:
    """The current run's predictions, None before the first run."""
    # The run's arrays may be replaced between reading its row and opening its files: then there is a newer one.
    for _ in range(3):
        run = runs.current_run(db)
        if run is None:
            return None
        try:
            image_ids, probabilities = _arrays(str(db.paths.run(run.id)))
        except FileNotFoundError:
            continue
        return Predictions(run, image_ids, np.asarray(run.class_ids, np.int64), probabilities)
    return None


def missing_positives(
    db: Database, class_id: int | None = None, limit: int | None = 50, above: float = 0.0
) -> list[Suggestion]:
    """The unanswered cells most likely to be present, likeliest first; none that a person has answered in any way.

    class_id    only this class; None: all
    limit       how many at most; None: all
    """
    found = predictions(db)
    if found is None:
        return []
    scores = _unanswered(db, found)
    if class_id is not None:
        scores[:, found.class_ids != class_id] = np.nan
    flat = scores.ravel()
    candidates = np.flatnonzero(flat >= above)
    if limit is not None and limit < len(candidates):
        candidates = candidates[np.argpartition(-flat[candidates], limit - 1)[:limit]] if limit else candidates[:0]
    order = candidates[np.argsort(-flat[candidates], kind="stable")]
    rows, columns = np.divmod(order, len(found.class_ids))
    return [
        Suggestion(int(found.image_ids[row]), int(found.class_ids[column]), float(scores[row, column]), found.run.id)
        for row, column in zip(rows, columns, strict=True)
    ]


def suggestions_of(
    found: Predictions, answered: dict[int, set[int]], image_ids: Sequence[int], threshold: float
) -> dict[int, list[Suggestion]]:
    """For each image its suggestions at or above the threshold, likeliest first.

    answered    image id -> the classes people have answered there
    """
    rows, known = found.rows(image_ids)
    result = {}
    for image_id, row, has in zip(image_ids, rows, known, strict=True):
        if not has:
            continue
        scores = np.array(found.probabilities[row], np.float32)
        scores[np.isin(found.class_ids, list(answered.get(image_id, ())))] = np.nan
        columns = np.flatnonzero(scores >= threshold)
        columns = columns[np.argsort(-scores[columns], kind="stable")][:REVIEW_CHIPS]
        result[image_id] = [
            Suggestion(image_id, int(found.class_ids[column]), round(float(scores[column]), 4), found.run.id)
            for column in columns
        ]
    return result


def next_to_review(db: Database, wanted: Wanted, threshold: float) -> list[tuple[int, list[Suggestion]]]:
    """The images that most probably miss a label, with their suggestions; leased to this page."""
    found = predictions(db)
    leases.hold(db, wanted.holder, wanted.annotator, wanted.have)
    if found is None:
        return []
    chosen: list[tuple[int, list[Suggestion]]] = []
    order = review_order(db, found, threshold)
    order = order[~np.isin(order, [*wanted.have, *wanted.passed])]
    for start in range(0, len(order), SCAN):
        candidates = [int(image_id) for image_id in order[start : start + SCAN]]
        answered = answered_classes(db, candidates)
        suggestions = {
            image_id: chips
            for image_id, chips in suggestions_of(found, answered, candidates, threshold).items()
            if chips
        }
        open_ones = [image_id for image_id in candidates if image_id in suggestions]
        taken = leases.take(db, wanted.holder, wanted.annotator, open_ones, wanted.want - len(chosen))
        chosen += [(image_id, suggestions[image_id]) for image_id in taken]
        if len(chosen) >= wanted.want:
            break
    return chosen


def review_order(db: Database, found: Predictions, threshold: float) -> np.ndarray:
    """Image ids with something at or above the threshold, those first whose likeliest suggestion is likeliest.

    Not by the sum of an image's probabilities: early models give many images five doubtful suggestions, and a sum puts
    just those first (docs/design.md has the figures).
    """
    key = (str(db.paths.project), found.run.id, round(threshold, 4))
    if key not in _ORDERS:
        scores = _unanswered(db, found)
        likeliest = np.where(scores >= threshold, scores, 0).max(axis=1, initial=0)
        rows = np.argsort(-likeliest, kind="stable")
        while len(_ORDERS) >= 8:
            _ORDERS.pop(next(iter(_ORDERS)))
        _ORDERS[key] = found.image_ids[rows[likeliest[rows] > 0]]
    return _ORDERS[key]


def answered_classes(db: Database, image_ids: Sequence[int]) -> dict[int, set[int]]:
    """For each image the classes that a person has answered there, in whatever way."""
    answered: dict[int, set[int]] = {}
    for label in decisions.labels(db, image_ids):
        answered.setdefault(label.image_id, set()).add(label.class_id)
    return answered


def aligned(found: Predictions | None, images: Sequence[Image], classes: Sequence[Class]) -> np.ndarray | None:
    """The probabilities in the row order of `images` and the column order of `classes`, nan where there is none."""
    if found is None:
        return None
    result = np.full((len(images), len(classes)), np.nan, np.float32)
    rows, known = found.rows([image.id for image in images])
    for column, one in enumerate(classes):
        where = np.flatnonzero(found.class_ids == one.id)
        if len(where) and known.any():
            result[known, column] = found.probabilities[rows[known], where[0]]
    return result


def labels_until_first_run(without_decision: int, images: int) -> int:
    """How many images people still have to label before the worker trains by itself."""
    return max(0, min(FIRST_RUN_AT, images) - (images - without_decision))


def run_to_explain(db: Database, run_id: int) -> int:
    """The run whose heat map answers for a suggestion of this run: itself, or the current one once it is gone."""
    if runs.kept_run(db, run_id):
        return run_id
    current = runs.current_run(db)
    return current.id if current else run_id


def _unanswered(db: Database, found: Predictions) -> np.ndarray:
    """(N, C) float32 probabilities with nan in every cell that a person has answered."""
    scores = np.array(found.probabilities, np.float32)
    cells = np.array(decisions.label_cells(db)[0], np.int64).reshape(-1, 3)
    rows, known_rows = found.rows(cells[:, 0])
    columns = np.searchsorted(found.class_ids, cells[:, 1])
    columns[columns == len(found.class_ids)] = 0
    known = known_rows & (found.class_ids[columns] == cells[:, 1]) if len(found.class_ids) else known_rows & False
    scores[rows[known], columns[known]] = np.nan
    return scores


@lru_cache(maxsize=4)
def _arrays(folder: str) -> tuple[np.ndarray, np.ndarray]:
    return np.array(open_array(Path(folder) / "image_ids.npy")), open_array(Path(folder) / "probabilities.npy")


_ORDERS: dict[tuple[str, int, float], np.ndarray] = {}
