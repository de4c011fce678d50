"""Appearance measures of images as in-memory columns."""

import numpy as np
import sqlite_utils

from annotator.indexing import find_positions
from annotator.store.gallery.values import extend_array
from annotator.store.pictures.appearance import APPEARANCE_COLUMNS

ROWS_PER_FETCH = 20_000  # rows read at a time
MAX_FLOAT16 = float(np.finfo(np.float16).max)
NUMERIC_FIELDS = tuple(name for name in APPEARANCE_COLUMNS if name != "hash")


class AppearanceColumns:
    """Half-precision columns of `Appearance` numbers and shorter image sides."""

    def __init__(self):
        self._values = {name: np.zeros(0, np.float16) for name in (*NUMERIC_FIELDS, "shorter_side")}

    def get_numbers(self, name: str) -> np.ndarray:
        """Return a measure, (N,) float16, nan if unmeasured."""
        return self._values[name]

    def read(self, sql: sqlite_utils.Database, image_ids: np.ndarray, after: int) -> None:
        """Read rows of the table `appearance` with ids above `after`, for images (N,) int64."""
        for name, values in self._values.items():
            self._values[name] = extend_array(values, len(image_ids), np.nan)
        cursor = sql.execute(
            f"""SELECT a.image_id, {", ".join(f"a.{name}" for name in NUMERIC_FIELDS)},
                nullif(min(i.width, i.height), 0)
            FROM appearance a JOIN image i ON i.id = a.image_id WHERE a.id > ?""",
            [after],
        )
        while rows := cursor.fetchmany(ROWS_PER_FETCH):
            ids, *columns = np.array(rows, np.float64).T
            places, known = find_positions(ids.astype(np.int64), image_ids)
            for values, column in zip(self._values.values(), columns, strict=True):
                values[places[known]] = np.minimum(column[known], MAX_FLOAT16)
