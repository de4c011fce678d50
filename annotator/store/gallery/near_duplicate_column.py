"""Which images have twins, as a column in memory (rows are those of image_columns.py): four bytes an image."""

import numpy as np
import sqlite_utils

from annotator.store.gallery.values import extend_array


class NearDuplicateColumn:
    """The groups of twins.

    Attributes:
        has: (N,) bool: the image has a twin.
        further: (N,) bool: and it is not the first image of its group.
        order: (n,) int32: the rows that have a twin, group by group.
    """

    def __init__(self):
        self._firsts = np.zeros(0, np.int32)  # image ids; 0: never in a group
        self.has, self.further, self.order = np.zeros(0, bool), np.zeros(0, bool), np.zeros(0, np.int32)

    def read(self, sql: sqlite_utils.Database, image_ids: np.ndarray, after: int) -> None:
        """Read the rows with ids from `after` on, for images (N,) int64, ascending, that are known by now."""
        self._firsts = extend_array(self._firsts, len(image_ids), 0)
        rows = sql.execute("SELECT image_id, first_id FROM twin WHERE id > ?", [after]).fetchall()
        changed = np.array(rows, np.int64).reshape(-1, 2)
        self._firsts[np.searchsorted(image_ids, changed[:, 0])] = changed[:, 1]
        sizes = np.bincount(self._firsts)
        self.has = (self._firsts > 0) & (sizes[self._firsts] > 1)
        self.further = self.has & (self._firsts != image_ids)
        twins = np.flatnonzero(self.has)
        self.order = twins[np.argsort(self._firsts[twins], kind="stable")].astype(np.int32)
