"""In-memory columns with one text, or a set of names, per image."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NO_TEXT = -1


@dataclass(frozen=True, eq=False)
class CategoryColumn:
    """A column with one of several texts per image, or none (`codes`: (N,) int32 index into `names`, or NO_TEXT)."""

    codes: np.ndarray
    names: Sequence[str]

    def get_mask(self, text: str) -> np.ndarray:
        """Return which images have this text, (N,) bool."""
        return self.codes == (self.names.index(text) if text in self.names else NO_TEXT - 1)


class Membership:
    """A set of names per image, such as annotators, with one bit per name."""

    def __init__(self):
        self.names: list[str] = []
        self._number: dict[str, int] = {}
        self._words: list[np.ndarray] = []

    def __contains__(self, name: str) -> bool:
        return name in self._number

    def get_mask(self, name: str, count: int) -> np.ndarray:
        """Return which images have this name, (count,) bool."""
        if name not in self._number:
            return np.zeros(count, bool)
        word, bit = divmod(self._number[name], 64)
        return (self._words[word] & np.uint64(1 << bit)) != 0

    def grow(self, count: int) -> None:
        self._words = [extend_array(word, count, 0) for word in self._words]

    def clear(self, rows: np.ndarray | slice) -> None:
        for word in self._words:
            word[rows] = 0

    def add(self, rows: np.ndarray, names: Sequence[str], count: int) -> None:
        for name in dict.fromkeys(names):
            if name not in self._number:
                self._number[name] = len(self.names)
                self.names.append(name)
                if len(self.names) > 64 * len(self._words):
                    self._words.append(np.zeros(count, np.uint64))
        numbers = np.array([self._number[name] for name in names], np.uint64)
        for place, word in enumerate(self._words):
            here = numbers // np.uint64(64) == place
            np.bitwise_or.at(word, rows[here], np.uint64(1) << (numbers[here] % np.uint64(64)))


class TextColumn:
    """One text per image, such as its camera."""

    def __init__(self):
        self.names: list[str] = []
        self._number: dict[str, int] = {}
        self._codes = np.zeros(0, np.int32)

    def get_mask(self, text: str) -> np.ndarray:
        """Return which images have this text ("" for none), (N,) bool."""
        return self._codes == (self._number.get(text, NO_TEXT - 1) if text else NO_TEXT)

    def list_used(self) -> list[str]:
        codes: list[int] = np.unique(self._codes).tolist()
        return sorted(self.names[code] for code in codes if code != NO_TEXT)

    def to_categories(self) -> CategoryColumn:
        """Return the column as a CategoryColumn with sorted texts."""
        used = self.list_used()
        places = np.full(len(self.names) + 1, NO_TEXT, np.int32)  # the last place, which NO_TEXT means, is of no text
        places[[self._number[text] for text in used]] = np.arange(len(used))
        return CategoryColumn(places[self._codes], used)

    def grow(self, count: int) -> None:
        self._codes = extend_array(self._codes, count, NO_TEXT)

    def set_texts(self, rows: np.ndarray, texts: Sequence[str | None]) -> None:
        """Set the texts of these rows, None if unknown."""
        for text in dict.fromkeys(texts):
            if text and text not in self._number:
                self._number[text] = len(self.names)
                self.names.append(text)
        self._codes[rows] = [self._number[text] if text else NO_TEXT for text in texts]


def extend_array(values: np.ndarray, count: int, fill: object) -> np.ndarray:
    return np.concatenate([values, np.full(count - len(values), fill, values.dtype)])
