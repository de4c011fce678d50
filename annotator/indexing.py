"""The one re-indexing by image and class: from ids to rows and columns, with a mask of the ids that are known.

This module lies beside the records, below the store, because the store aligns labels with it as every room above does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spmll.rows import Rows

Ids = Sequence[int] | np.ndarray
CHUNK_ROWS = 1 << 14  # aligned in one go: no second copy of everything


def find_positions(wanted: Ids, ids: np.ndarray, order: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of some ids among others, and a mask of those that were found.

    The position of an unknown id is 0 or another valid one, so that it can index any non-empty array.

    Args:
        wanted: (n,) int64, in any order.
        ids: (N,) int64, unique; ascending unless `order` is given.
        order: (N,) int64 that sorts `ids`; None: `ids` are ascending.

    Returns:
        Positions (n,) int64, and (n,) bool: True where the id is among `ids`.
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
    """The image and class ids of the rows and columns of an (N, C) array.

    Attributes:
        image_ids: (N,) int64, ascending.
        class_ids: (C,) int64, ascending.
    """

    image_ids: np.ndarray
    class_ids: np.ndarray

    def find_rows(self, image_ids: Ids) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of n images, (n,) int64, and a mask of those that have a row, (n,) bool."""
        return find_positions(image_ids, self.image_ids)

    def find_columns(self, class_ids: Ids) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of n classes, (n,) int64, and a mask of those that have a column, (n,) bool."""
        return find_positions(class_ids, self.class_ids)

    def find_cells(self, image_ids: Ids, class_ids: Ids) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows and columns of n cells, and a mask of those that the array has.

        Args:
            image_ids: (n,) int64, the image of each cell.
            class_ids: (n,) int64, the class of each cell.

        Returns:
            Rows (n,) int64, columns (n,) int64, and (n,) bool: True where both are known.
        """
        (rows, known_rows), (columns, known_columns) = self.find_rows(image_ids), self.find_columns(class_ids)
        return rows, columns, known_rows & known_columns

    def align(self, values: Rows, image_ids: Ids, class_ids: Ids) -> np.ndarray:
        """Return values in the rows and columns of other images and classes.

        Args:
            values: (N, C) float; may be mapped from the disk.
            image_ids: (n,) int64, the images of the rows to return.
            class_ids: (c,) int64, the classes of the columns to return.

        Returns:
            (n, c) of the type of `values`, nan for an image or class that has no row or column here.
        """
        (rows, known_rows), (columns, known_columns) = self.find_rows(image_ids), self.find_columns(class_ids)
        result = np.full((len(rows), len(columns)), np.nan, values.dtype)
        to_rows, to_columns = np.flatnonzero(known_rows), np.flatnonzero(known_columns)
        for start in range(0, len(to_rows), CHUNK_ROWS):
            block = to_rows[start : start + CHUNK_ROWS]
            result[np.ix_(block, to_columns)] = values[np.ix_(rows[block], columns[to_columns])]
        return result
