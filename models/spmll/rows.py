"""Arrays that may be on disk, read by rows."""

from typing import Any, Protocol

import numpy as np


class Rows(Protocol):
    """An array (N, ...) read by rows, such as a numpy array."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def ndim(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> np.ndarray:
        """Load rows by slice, mask or row numbers."""
        ...
