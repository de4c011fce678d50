"""An array that may be on the disk: read all of it in slices, or single rows by their numbers."""

from typing import Any, Protocol

import numpy as np


class Rows(Protocol):
    """An array (N, ...) whose rows are read on request; a numpy array is such an array, too."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def ndim(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> np.ndarray:
        """Return the rows selected by a slice, a mask or an array of numbers, in memory."""
        ...
