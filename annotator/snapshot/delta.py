"""What people answered since the current version of a run: few cells, kept in memory, brought up to date by the newest
decisions.

Rankings (rankings.py) were made before; between two versions this says which of their cells are no longer open. It
holds labels as they are, so a decision that was taken back opens its cell again.
"""

import threading
from collections.abc import Collection

import numpy as np

from annotator.snapshot.predictions import VERSIONS_KEPT, Predictions
from annotator.store import cells
from annotator.store.database import Database


class AnsweredSince:
    """The images of one version on which people have decided something since; safe to share between threads.

    touched    (N,) bool, the rows of those images
    found      (C,) float64, the summed probabilities of the cells answered since
    """

    def __init__(self, found: Predictions):
        self.predictions = found
        self.touched = np.zeros(len(found.image_ids), bool)
        self.found = np.zeros(len(found.class_ids))
        self._column = {class_id: column for column, class_id in enumerate(found.class_ids.tolist())}
        self._has_model = ~np.isnan(found.probabilities[:1]).all(0) if len(found.image_ids) else self.found > 0
        self._seen = found.run.last_decision_id
        self._answered: dict[int, frozenset[int]] = {}  # row -> columns
        self._likeliest: dict[int, float] = {}  # row -> the largest probability still open there
        self._counted: dict[int, tuple[list[int], np.ndarray]] = {}  # row -> columns in `found`, with how much
        self._lock = threading.Lock()

    def refresh(self, db: Database) -> None:
        """Take in the decisions made since the last look."""
        with self._lock:
            ids, newest = cells.touched(db, self._seen)
            if ids:
                answered = cells.answered(db, ids)
                rows, known = self.predictions.rows(ids)
                for image_id, row in zip(np.array(ids)[known].tolist(), rows[known].tolist(), strict=True):
                    self._take_in(row, answered.get(image_id, {}))
            self._seen = newest

    def column(self, class_id: int) -> int | None:
        """The column of a class that has a model, None for any other."""
        column = self._column.get(class_id)
        return column if column is not None and self._has_model[column] else None

    def is_open(self, row: int, column: int) -> bool:
        """Whether nobody has answered this cell since."""
        return column not in self._answered.get(row, ())

    def likeliest(self, row: int) -> float:
        """The largest probability still open on a touched image, 1 on any other."""
        return self._likeliest.get(row, 1.0)

    def open_rows(self, rows: np.ndarray, column: int, but: Collection[int] = ()) -> np.ndarray:
        """Those of (n,) rows whose cell in a column is open, without some rows; in the same order."""
        keep = np.ones(len(rows), bool)
        for place in np.flatnonzero(self.touched[rows]):
            keep[place] = self.is_open(int(rows[place]), column)
        if but:
            keep &= ~np.isin(rows, list(but))
        return rows[keep]

    def _take_in(self, row: int, labels: dict[int, int]) -> None:
        chances = self.predictions.probabilities[row]
        columns = {self._column[class_id]: newest for class_id, newest in labels.items() if class_id in self._column}
        since = [column for column, newest in columns.items() if newest > self.predictions.run.last_decision_id]
        if row in self._counted:
            before, values = self._counted[row]
            self.found[before] -= values
        values = chances[since].astype(np.float64)
        values[np.isnan(values)] = 0
        self.found[since] += values
        still_open = np.array(chances, np.float32)
        still_open[list(columns)] = 0
        self._counted[row] = (since, values)
        self._likeliest[row] = float(np.fmax.reduce(still_open, initial=0))  # of nan the other one
        self._answered[row] = frozenset(columns)
        self.touched[row] = True


def answered_since(db: Database, found: Predictions) -> AnsweredSince:
    """What was answered since this version, up to now."""
    version = (found.run.id, found.run.version)
    since = db.caches.get("answered since", version, lambda: AnsweredSince(found), VERSIONS_KEPT)
    since.refresh(db)
    return since
