"""The ids and names of the images of a COCO file, some 50 bytes each: annotations name images by id, in any order."""

from array import array
from collections.abc import Sequence

import numpy as np


class CocoImages:
    """The images of a file by row, in its order. Ids are integers, or texts in files of some tools."""

    def __init__(self) -> None:
        self._ids, self._ends, self._names = array("q"), array("q", [0]), bytearray()
        self._rows_of_texts: dict[str, int] = {}
        self._sorted, self._order = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, image_id: int | str, name: str) -> str | None:
        """Add an image; return why it cannot be added, or None."""
        if not name:
            return "it has no file_name"
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
        """Sort the ids, after all images were added; return the integer ids that occur more than once."""
        ids = np.frombuffer(self._ids, np.int64) if len(self) else np.zeros(0, np.int64)
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]
        return np.unique(self._sorted[1:][self._sorted[1:] == self._sorted[:-1]]).tolist()

    def rows(self, ids: Sequence[int | str]) -> np.ndarray:
        """Return the row of each id, -1 for an unknown id."""
        if self._rows_of_texts or any(isinstance(image_id, str) for image_id in ids):
            texts = self._rows_of_texts
            return np.array([texts.get(each, -1) if isinstance(each, str) else self._row(each) for each in ids])
        wanted = np.array(ids, np.int64)
        if not len(self):
            return np.full(len(wanted), -1)
        places = np.minimum(np.searchsorted(self._sorted, wanted), len(self) - 1)
        return np.where(self._sorted[places] == wanted, self._order[places], -1)

    def name(self, row: int) -> str:
        """Return the name of the image in this row."""
        return self._names[self._ends[row] : self._ends[row + 1]].decode("utf-8", "surrogatepass")

    def _row(self, image_id: int) -> int:
        place = int(np.searchsorted(self._sorted, image_id))
        return int(self._order[place]) if place < len(self) and self._sorted[place] == image_id else -1
