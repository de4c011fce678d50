"""The ordered rows of a Gallery listing: sorted beforehand, or by 16-bit values only where they are read."""

import numpy as np
from typing_extensions import override

VALUES_PER_COUNT = 1 << 16  # values counted at a time


class SortedRows:
    """The rows of a listing, (n,) int32, already in order."""

    def __init__(self, rows: np.ndarray):
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def byte_count(self) -> int:
        return self._rows.nbytes

    def get_rows(self, start: int, stop: int) -> np.ndarray:
        return self._rows[start:stop]

    def find_place(self, row: int) -> int | None:
        """Return the position of a row, or None if it is not in the listing."""
        places = np.flatnonzero(self._rows == row).tolist()
        return places[0] if places else None


class RowsByValue(SortedRows):
    """The rows of a listing, (n,) int32, in stable order of uint16 values (n,), sorted only where they are read."""

    def __init__(self, rows: np.ndarray, values: np.ndarray):
        super().__init__(rows)
        self._values = values
        self._ends = np.cumsum(_count_values(values), dtype=np.int32)  # rows of each value or a lower one

    @property
    @override
    def byte_count(self) -> int:
        return self._rows.nbytes + self._values.nbytes + self._ends.nbytes

    @override
    def get_rows(self, start: int, stop: int) -> np.ndarray:
        stop = min(stop, len(self))
        if start >= stop:
            return self._rows[:0]
        lowest, highest = np.searchsorted(self._ends, [start, stop - 1], "right").tolist()
        first = self._find_rows(lowest)[start - self._count_before(lowest) : stop - self._count_before(lowest)]
        if lowest == highest:
            return self._rows[first]
        # All of these are in the part; of the lowest and the highest value there may be a million others.
        between = np.flatnonzero((self._values > lowest) & (self._values < highest))
        between = between[np.argsort(self._values[between], kind="stable")]
        last = self._find_rows(highest)[: stop - self._count_before(highest)]
        return self._rows[np.concatenate([first, between, last])]

    @override
    def find_place(self, row: int) -> int | None:
        given = super().find_place(row)
        if given is None:
            return None
        value = int(self._values[given])
        return self._count_before(value) + int(np.count_nonzero(self._values[:given] == value))

    def _find_rows(self, value: int) -> np.ndarray:
        return np.flatnonzero(self._values == value)

    def _count_before(self, value: int) -> int:
        return int(self._ends[value - 1]) if value else 0


def _count_values(values: np.ndarray) -> np.ndarray:
    counts = np.zeros(int(values.max(initial=0)) + 1, np.int64)
    for start in range(0, len(values), VALUES_PER_COUNT):
        counts += np.bincount(values[start : start + VALUES_PER_COUNT], minlength=len(counts))
    return counts
