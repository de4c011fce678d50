"""Ids and names of the images in a COCO file, with some 50 bytes per image.

Ids 1, 1.0 and "1" are equal, because pandas writes integers as floats in columns with gaps.
"""

import re
from array import array
from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np

MAX_INT64 = 2**63 - 1
MAX_EXACT_FLOAT = 2**53  # above it, a float stands for several integers
Id = Annotated[int, msgspec.Meta(ge=-MAX_INT64 - 1, le=MAX_INT64)] | float | str
"""An id as files write it."""

_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.0+)?")


def normalize_id(written: Id) -> int | str:
    """Return an id as an integer if possible, else as text, such as "007"."""
    if isinstance(written, int):
        return written
    if isinstance(written, float):
        return int(written) if written.is_integer() and abs(written) <= MAX_EXACT_FLOAT else repr(written)
    return int(written.partition(".")[0]) if _WHOLE_NUMBER.fullmatch(written) else written


def normalize_ids(written: Sequence[Id]) -> Sequence[int | str]:
    """Normalize ids. A list of integers is returned unchanged."""
    is_usual = all(type(each) is int for each in written)
    return written if is_usual else [normalize_id(each) for each in written]  # type: ignore[return-value]


class CocoImages:
    """A compact table of a file's images by row, in file order."""

    def __init__(self) -> None:
        self._ids, self._ends, self._names = array("q"), array("q", [0]), bytearray()
        self._rows_of_texts: dict[str, int] = {}
        self._sorted, self._order = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, written: Id, name: str) -> str | None:
        """Add an image, or return why it cannot be added."""
        if not name:
            return "it has no file_name"
        image_id = normalize_id(written)
        if isinstance(image_id, str):
            if image_id in self._rows_of_texts:
                return f"the id {image_id!r} is there twice"
            self._rows_of_texts[image_id] = len(self)
            image_id = -(2**63) + len(self)  # a placeholder: `rows` finds the image by its text
        self._ids.append(image_id)
        self._names += name.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._names))
        return None

    def finish(self) -> list[int]:
        """Sort the ids of all images, and return duplicate integer ids."""
        ids = np.frombuffer(self._ids, np.int64) if len(self) else np.zeros(0, np.int64)
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]
        return np.unique(self._sorted[1:][self._sorted[1:] == self._sorted[:-1]]).tolist()

    def find_rows(self, written: Sequence[Id]) -> np.ndarray:
        ids = normalize_ids(written)
        if self._rows_of_texts or any(isinstance(image_id, str) for image_id in ids):
            texts = self._rows_of_texts
            return np.array([texts.get(each, -1) if isinstance(each, str) else self._find_row(each) for each in ids])
        wanted = np.array(ids, np.int64)
        if not len(self):
            return np.full(len(wanted), -1)
        places = np.minimum(np.searchsorted(self._sorted, wanted), len(self) - 1)
        return np.where(self._sorted[places] == wanted, self._order[places], -1)

    def name(self, row: int) -> str:
        return self._names[self._ends[row] : self._ends[row + 1]].decode("utf-8", "surrogatepass")

    def _find_row(self, image_id: int) -> int:
        place = int(np.searchsorted(self._sorted, image_id))
        return int(self._order[place]) if place < len(self) and self._sorted[place] == image_id else -1
