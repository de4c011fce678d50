"""An array that may be on the disk: read all of it in slices, or single rows by their numbers."""

from typing import Any, Protocol

import numpy as np


class Rows(Protocol):
    """An array (N, ...) whose rows are read on request; a numpy array is such an array, too."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape, as of an array."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the elements."""
        ...

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> np.ndarray:
        """Return the rows selected by a slice, a mask or an array of numbers, in memory."""
        ...
