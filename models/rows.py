"""An array that may lie on the disk: who goes over all of it takes slices, and who needs some rows names them."""

from typing import Any, Protocol

import numpy as np


class Rows(Protocol):
    """An array (N, ...) of which rows are read when they are asked for; a numpy array is one, too."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def ndim(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> np.ndarray:
        """The rows that a slice, a mask or numbers name, in memory."""
        ...
