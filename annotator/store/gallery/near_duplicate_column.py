"""Near-duplicate groups of images as an in-memory column."""

import numpy as np
import sqlite_utils

from annotator.store.gallery.values import extend_array


class NearDuplicateColumn:
    """In-memory columns of the near-duplicate groups.

    Attributes:
        has: (N,) bool, the image has near-duplicates.
        further: (N,) bool, not the first of its group.
        order: (n,) int32, rows of images with near-duplicates, by group.
    """

    def __init__(self):
        self._firsts = np.zeros(0, np.int32)  # image ids; 0: never in a group
        self.has, self.further, self.order = np.zeros(0, bool), np.zeros(0, bool), np.zeros(0, np.int32)

    def read(self, sql: sqlite_utils.Database, image_ids: np.ndarray, after: int) -> None:
        """Read rows of the table `twin` with ids above `after`, for images (N,) int64, ascending."""
        self._firsts = extend_array(self._firsts, len(image_ids), 0)
        rows = sql.execute("SELECT image_id, first_id FROM twin WHERE id > ?", [after]).fetchall()
        changed = np.array(rows, np.int64).reshape(-1, 2)
        self._firsts[np.searchsorted(image_ids, changed[:, 0])] = changed[:, 1]
        sizes = np.bincount(self._firsts)
        self.has = (self._firsts > 0) & (sizes[self._firsts] > 1)
        self.further = self.has & (self._firsts != image_ids)
        twins = np.flatnonzero(self.has)
        self.order = twins[np.argsort(self._firsts[twins], kind="stable")].astype(np.int32)
