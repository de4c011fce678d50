"""The delta of a model version: the cells (image and class) answered since.

It holds current labels, so an undone decision reopens its cell.
"""

import threading
from dataclasses import dataclass, replace

import numpy as np

from annotator.snapshot.run_predictions import MAX_CACHED_VERSIONS, Predictions
from annotator.store.database.database import Database
from annotator.store.database.versions import get_class_version
from annotator.store.labels import label_cells


@dataclass(frozen=True, eq=False)
class _ChangedImage:
    """One image of a delta, with its answered classes as columns."""

    answered: frozenset[int]
    max_open_probability: float
    columns: list[int]
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Delta:
    """The answers given after a model version, up to one decision. Immutable."""

    predictions: Predictions
    newest: int
    # (N,) bool, images with decisions since. Later deltas share this array, because copying is slow, so it may mark
    # images that changed later
    changed: np.ndarray
    # (C,) float64, sum of the probabilities of cells answered since
    answered_probability: np.ndarray
    _images: dict[int, _ChangedImage]  # by row
    _columns: dict[int, int]  # by class id
    _has_model: np.ndarray

    @classmethod
    def empty(cls, predictions: Predictions) -> "Delta":
        """Return an empty delta, for a version without later decisions."""
        images, classes = len(predictions.image_ids), len(predictions.class_ids)
        columns = {class_id: column for column, class_id in enumerate(predictions.class_ids.tolist())}
        has_model: np.ndarray = ~np.isnan(predictions.probabilities[0]) if images else np.zeros(classes, bool)
        newest = predictions.run.last_decision_id
        return cls(predictions, newest, np.zeros(images, bool), np.zeros(classes), {}, columns, has_model)

    def advance(self, db: Database) -> "Delta":
        """Return this delta extended to the newest decision of the project."""
        with db.reading():
            image_ids, newest = label_cells.find_changed_images(db, self.newest)
            if newest <= self.newest:
                return self
            answered = label_cells.load_answered_cells(db, image_ids) if image_ids else {}
        rows, known = self.predictions.find_rows(image_ids)
        images, sums = self._images.copy(), self.answered_probability.copy()
        for image_id, row in zip(np.array(image_ids, np.int64)[known].tolist(), rows[known].tolist(), strict=True):
            image = self._build_changed_image(row, answered.get(image_id, {}))
            if row in images:
                sums[images[row].columns] -= images[row].values
            sums[image.columns] += image.values
            images[row], self.changed[row] = image, True
        return replace(self, newest=newest, answered_probability=sums, _images=images)

    @property
    def changed_image_count(self) -> int:
        """Count the images with decisions since the model version."""
        return len(self._images)

    def find_column(self, class_id: int) -> int | None:
        """Return the column of a class in the model, or None."""
        column = self._columns.get(class_id)
        return column if column is not None and self._has_model[column] else None

    def is_open(self, row: int, column: int) -> bool:
        """Return whether this cell has no answer since the version."""
        return row not in self._images or column not in self._images[row].answered

    def get_max_open_probability(self, row: int) -> float:
        """Return the largest probability among an image's unanswered cells, 1 if it has no later decision."""
        return self._images[row].max_open_probability if row in self._images else 1.0

    def select_open_rows(self, rows: np.ndarray, column: int) -> np.ndarray:
        """Return those of the rows (n,) whose cell in this column is unanswered, in order."""
        keep = np.ones(len(rows), bool)
        for place in np.flatnonzero(self.changed[rows]):
            keep[place] = self.is_open(int(rows[place]), column)
        return rows[keep]

    def _build_changed_image(self, row: int, labels: dict[int, int]) -> _ChangedImage:
        probabilities = self.predictions.probabilities[row]
        columns = {self._columns[class_id]: newest for class_id, newest in labels.items() if class_id in self._columns}
        since = [column for column, newest in columns.items() if newest > self.predictions.run.last_decision_id]
        values = probabilities[since].astype(np.float64)
        values[np.isnan(values)] = 0
        still_open = np.array(probabilities, np.float32)
        still_open[list(columns)] = 0
        likeliest = float(np.fmax.reduce(still_open, initial=0))  # fmax ignores nan
        return _ChangedImage(frozenset(columns), likeliest, since, values)


class _NewestDelta:
    """The cached newest delta of a model version, updated by threads under its lock."""

    def __init__(self, delta: Delta):
        self.lock, self.delta = threading.Lock(), delta


def read_delta(db: Database, predictions: Predictions) -> Delta:
    # A class that was merged or restored has other labels, and no decision names them.
    version = (predictions.run.id, predictions.run.version, get_class_version(db))
    newest = db.caches.get("delta", version, lambda: _NewestDelta(Delta.empty(predictions)), MAX_CACHED_VERSIONS)
    with newest.lock:
        newest.delta = newest.delta.advance(db)
        return newest.delta
