"""Mapping of image and class ids to rows and columns of arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spmll.rows import Rows

Ids = Sequence[int] | np.ndarray
CHUNK_ROWS = 1 << 14  # aligned in one go: no second copy of everything


def find_positions(wanted: Ids, ids: np.ndarray, order: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of each wanted id in `ids`, and whether it was found.

    Unknown ids get a valid index, for safe indexing.

    Args:
        wanted: (n,) int64.
        ids: (N,) int64, unique, ascending unless `order` is given.
        order: (N,) int64 that sorts `ids`.

    Returns:
        (n,) int64 and (n,) bool.
    """
    wanted = np.asarray(wanted, np.int64)
    if not len(ids):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    places = np.searchsorted(ids, wanted, sorter=order)
    places[places == len(ids)] = 0
    if order is not None:
        places = order[places]
    return places, ids[places] == wanted


@dataclass(frozen=True, eq=False)
class CellIndex:
    """The image ids of an (N, C) array's rows and the class ids of its columns. A cell is one image and one class.

    Attributes:
        image_ids: (N,) int64, ascending.
        class_ids: (C,) int64, ascending.
    """

    image_ids: np.ndarray
    class_ids: np.ndarray

    def find_rows(self, image_ids: Ids) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of n images, (n,) int64, and whether each was found, (n,) bool."""
        return find_positions(image_ids, self.image_ids)

    def find_columns(self, class_ids: Ids) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of n classes, (n,) int64, and whether each was found, (n,) bool."""
        return find_positions(class_ids, self.class_ids)

    def find_cells(self, image_ids: Ids, class_ids: Ids) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows and columns of n cells, and whether each was found.

        Args:
            image_ids: (n,) int64.
            class_ids: (n,) int64.

        Returns:
            (n,) int64, (n,) int64, (n,) bool.
        """
        (rows, known_rows), (columns, known_columns) = self.find_rows(image_ids), self.find_columns(class_ids)
        return rows, columns, known_rows & known_columns

    def align(self, values: Rows, image_ids: Ids, class_ids: Ids) -> np.ndarray:
        """Return an array's values rearranged to the rows and columns of other ids.

        Args:
            values: (N, C) float, possibly memory-mapped.
            image_ids: (n,) int64.
            class_ids: (c,) int64.

        Returns:
            (n, c), nan for unknown ids.
        """
        (rows, known_rows), (columns, known_columns) = self.find_rows(image_ids), self.find_columns(class_ids)
        result = np.full((len(rows), len(columns)), np.nan, values.dtype)
        to_rows, to_columns = np.flatnonzero(known_rows), np.flatnonzero(known_columns)
        for start in range(0, len(to_rows), CHUNK_ROWS):
            block = to_rows[start : start + CHUNK_ROWS]
            result[np.ix_(block, to_columns)] = values[np.ix_(rows[block], columns[to_columns])]
        return result
