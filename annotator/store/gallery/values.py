"""Columns of names in memory: a set of names for each image, or one of many texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NO_TEXT = -1


@dataclass(frozen=True, eq=False)
class CategoryColumn:
    """One of several texts for each image, or none.

    Attributes:
        codes: (N,) int32, the place of each image's text in `names`; NO_TEXT without a text.
        names: The texts, ascending.
    """

    codes: np.ndarray
    names: Sequence[str]

    def get_mask(self, text: str) -> np.ndarray:
        """Return (N,) bool: which images have this text."""
        return self.codes == (self.names.index(text) if text in self.names else NO_TEXT - 1)


class Membership:
    """A set of names for each image, such as the people who decided on it: one bit for a name, 64 names in a word."""

    def __init__(self):
        self.names: list[str] = []
        self._number: dict[str, int] = {}
        self._words: list[np.ndarray] = []

    def __contains__(self, name: str) -> bool:
        return name in self._number

    def get_mask(self, name: str, count: int) -> np.ndarray:
        """Return (count,) bool: which images have this name."""
        if name not in self._number:
            return np.zeros(count, bool)
        word, bit = divmod(self._number[name], 64)
        return (self._words[word] & np.uint64(1 << bit)) != 0

    def grow(self, count: int) -> None:
        """Make room for `count` images; new ones have no value."""
        self._words = [extend_array(word, count, 0) for word in self._words]

    def clear(self, rows: np.ndarray | slice) -> None:
        """Remove every name from these rows."""
        for word in self._words:
            word[rows] = 0

    def add(self, rows: np.ndarray, names: Sequence[str], count: int) -> None:
        """Give each of these rows its names."""
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
    """One text for each image, such as its camera, stored as a number in the list of different texts."""

    def __init__(self):
        self.names: list[str] = []
        self._number: dict[str, int] = {}
        self._codes = np.zeros(0, np.int32)

    def get_mask(self, text: str) -> np.ndarray:
        """Return (N,) bool: which images have this text; "": those without one."""
        return self._codes == (self._number.get(text, NO_TEXT - 1) if text else NO_TEXT)

    def list_used(self) -> list[str]:
        """Return the texts that an image has, sorted."""
        codes: list[int] = np.unique(self._codes).tolist()
        return sorted(self.names[code] for code in codes if code != NO_TEXT)

    def to_categories(self) -> CategoryColumn:
        """Return the texts in ascending order, with the place of each image's text among them."""
        used = self.list_used()
        places = np.full(len(self.names) + 1, NO_TEXT, np.int32)  # the last place, which NO_TEXT means, is of no text
        places[[self._number[text] for text in used]] = np.arange(len(used))
        return CategoryColumn(places[self._codes], used)

    def grow(self, count: int) -> None:
        """Make room for `count` images; new ones have no value."""
        self._codes = extend_array(self._codes, count, NO_TEXT)

    def set_texts(self, rows: np.ndarray, texts: Sequence[str | None]) -> None:
        """Set the texts of these rows; None: not known."""
        for text in dict.fromkeys(texts):
            if text and text not in self._number:
                self._number[text] = len(self.names)
                self.names.append(text)
        self._codes[rows] = [self._number[text] if text else NO_TEXT for text in texts]


def extend_array(values: np.ndarray, count: int, fill: object) -> np.ndarray:
    """Return the values, extended with `fill` to `count` values."""
    return np.concatenate([values, np.full(count - len(values), fill, values.dtype)])
