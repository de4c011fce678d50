"""Writers of .npy arrays in blocks, with a reserved header for the final number of rows.

Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, version 1.0.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

HEADER_BYTES = 128  # bytes; a multiple of 64
NPY_PREFIX = b"\x93NUMPY\x01\x00"
TEXTS_PER_WRITE = 10_000  # names


class NpyWriter:
    """A writer of a growing .npy array: rows of `width` numbers, or of one number if `width` is None."""

    def __init__(self, file: BinaryIO, dtype: np.dtype | type, width: int | None = None):
        self._file, self.dtype, self._width = file, np.dtype(dtype), width
        self._rows = 0
        file.write(b"\0" * HEADER_BYTES)

    def append_rows(self, rows: np.ndarray) -> None:
        self._file.write(np.ascontiguousarray(rows, self.dtype).tobytes())
        self._rows += len(rows)

    def finish(self) -> None:
        """Write the header with the final number of rows."""
        shape = f"({self._rows},)" if self._width is None else f"({self._rows}, {self._width})"
        facts = f"{{'descr': {np.lib.format.dtype_to_descr(self.dtype)!r}, 'fortran_order': False, 'shape': {shape}, }}"
        body = facts.ljust(HEADER_BYTES - len(NPY_PREFIX) - 3) + "\n"
        self._file.seek(0)
        self._file.write(
            NPY_PREFIX + (HEADER_BYTES - len(NPY_PREFIX) - 2).to_bytes(2, "little") + body.encode("latin-1")
        )
        self._file.seek(0, 2)


class NpyTextWriter:
    """A collector of texts for one .npy array, kept as UTF-8 until the longest is known."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []

    def append_texts(self, texts: Iterable[str]) -> None:
        """Append texts without zero characters."""
        self._blocks.append("\0".join(texts).encode("utf-8", "surrogatepass"))

    def save(self, path: Path) -> None:
        longest = max((len(text) for block in self._blocks for text in _decode_texts(block)), default=1)
        with path.open("wb") as file:
            array = NpyWriter(file, np.dtype(f"<U{max(longest, 1)}"))
            for block in self._blocks:
                texts = _decode_texts(block)
                for start in range(0, len(texts), TEXTS_PER_WRITE):
                    array.append_rows(np.array(texts[start : start + TEXTS_PER_WRITE], array.dtype))
            array.finish()


def _decode_texts(block: bytes) -> Sequence[str]:
    return block.decode("utf-8", "surrogatepass").split("\0")
