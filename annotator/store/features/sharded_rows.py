"""An array (N, ...) over many shards on disk, whose rows are read on demand.

Files are not mapped, because shortening one would kill the process.
"""

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError
from annotator.store.features.shards import ArrayLocation


class ShardPart:
    """A reader of some rows of one shard file: those with the ascending row numbers `kept`, (n,) int64."""

    def __init__(self, path: Path, arrays: dict[str, ArrayLocation], kept: np.ndarray):
        self._place = (path, arrays, kept)

    def __len__(self) -> int:
        return len(self._place[2])

    @property
    def path(self) -> Path:
        return self._place[0]

    def has_array(self, name: str) -> bool:
        return name in self._place[1]

    def shape(self, name: str) -> tuple[int, ...]:
        return self._place[1][name].shape[1:]

    def move(self, path: Path, arrays: dict[str, ArrayLocation], kept: np.ndarray) -> None:
        """Switch to another file that holds the same images."""
        self._place = (path, arrays, kept)  # one step: other threads may be reading

    def get_slice(self, start: int, stop: int) -> "ShardPart":
        """Return a reader of the rows `start` to `stop`, with an absolute path for other processes."""
        path, arrays, kept = self._place
        return ShardPart(path.absolute(), arrays, kept[start:stop])

    def read(self, name: str, rows: np.ndarray, into: np.ndarray) -> None:
        """Read ascending rows (m,) into bytes (m, row bytes), or raise AnnotatorError."""
        while True:
            place = self._place
            try:
                return _read_file_rows(place[0], place[1][name], place[2][rows], into)
            except (OSError, KeyError) as error:
                if place is self._place:  # else it has just been moved
                    reason = f"it has no {name}" if isinstance(error, KeyError) else error
                    raise AnnotatorError(
                        f"The features in {place[0]} can no longer be read ({reason}). Was the file moved or changed?\n"
                        "    Start the worker again: what is missing is embedded again."
                    ) from error


class ShardedRows:
    """A lazy array (N, ...) over all images, stored in many shard files, safe to share between threads.

    `array[rows]` reads rows (numbers, mask, slice), or raises IndexError or AnnotatorError.
    """

    def __init__(self, name: str, parts: Sequence[ShardPart], shape: tuple[int, ...], dtype: type):
        self._name, self._parts = name, tuple(parts)
        self._starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        self.shape = (int(self._starts[-1]), *shape)
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *_args: object, **_kwargs: object):
        raise TypeError(f"These {self.shape} are on the disk: read them by rows, or all of them with [:].")

    def __getitem__(self, rows: int | slice | np.ndarray | list[int]) -> np.ndarray:
        wanted, alone = self._to_row_numbers(rows)
        order = None
        if len(wanted) > 1 and (np.diff(wanted) < 0).any():
            order = np.argsort(wanted, kind="stable")
            wanted = wanted[order]
        found = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        if found.size:
            self._read_rows(wanted, found.reshape(len(wanted), prod(self.shape[1:])).view(np.uint8))
        if order is not None:
            unordered, found = found, np.empty_like(found)
            found[order] = unordered
        return found[0] if alone else found

    def get_slice(self, start: int, stop: int) -> "ShardedRows":
        """Return the rows `start` to `stop` as a lazy array that can be sent to another process."""
        cut: list[ShardPart] = []
        for begin, part in zip(self._starts.tolist(), self._parts, strict=False):
            some = part.get_slice(max(start - begin, 0), max(stop - begin, 0))
            cut += [some] if len(some) else []
        return ShardedRows(self._name, cut, self.shape[1:], self.dtype.type)

    def get_shard_index(self) -> tuple[list[str], np.ndarray]:
        """Return the file names, and per row the index of its file in them, (N,) int32."""
        numbers = np.arange(len(self._parts), dtype=np.int32)
        return [part.path.name for part in self._parts], np.repeat(numbers, np.diff(self._starts))

    def list_files(self) -> list[Path]:
        return [part.path.absolute() for part in self._parts]

    def _to_row_numbers(self, rows: int | slice | np.ndarray | list[int]) -> tuple[np.ndarray, bool]:
        """Return rows as (m,) int64 in [0, N), and whether one number was given."""
        if isinstance(rows, slice):
            return np.arange(*rows.indices(len(self)), dtype=np.int64), False
        numbers = np.asarray(rows)
        if numbers.dtype == bool:
            if numbers.shape != (len(self),):
                raise IndexError(f"A mask {numbers.shape} does not fit {len(self)} rows.")
            return np.flatnonzero(numbers), False
        if numbers.size and not np.issubdtype(numbers.dtype, np.integer):
            raise IndexError(f"Rows are numbers, a mask or a slice, not {numbers.dtype}.")
        flat = numbers.astype(np.int64).reshape(-1)
        outside = (flat < -len(self)) | (flat >= len(self))
        if outside.any():
            raise IndexError(f"There is no row {flat[outside][0]}: there are {len(self)}.")
        return np.where(flat < 0, flat + len(self), flat), numbers.ndim == 0

    def _read_rows(self, wanted: np.ndarray, into: np.ndarray) -> None:
        parts = np.searchsorted(self._starts, wanted, "right") - 1
        ends = np.flatnonzero(np.diff(parts, append=-1))
        start = 0
        for end in (ends + 1).tolist():
            part = int(parts[start])
            self._parts[part].read(self._name, wanted[start:end] - self._starts[part], into[start:end])
            start = end


def _read_file_rows(path: Path, array: ArrayLocation, rows: np.ndarray, into: np.ndarray) -> None:
    begins = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
    ends = np.append(begins[1:], len(rows))
    with path.open("rb", buffering=0) as file:
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            file.seek(array.offset + int(rows[begin]) * array.row_bytes)
            view = into[begin:end].data.cast("B")
            while view:
                count = file.readinto(view)
                if not count:
                    raise OSError("it ends too early")
                view = view[count:]
