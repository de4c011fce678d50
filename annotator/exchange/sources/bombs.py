"""Limits of the bytes that an archive may unpack to: images hardly compress, so a small archive holds few of them."""

from pathlib import Path

from annotator.exchange.files.tables import ALWAYS, MEMBER_ALWAYS, RATIO
from annotator.exchange.sources.landing import size_in_words
from annotator.store.locations.web import LARGEST_MEMBER


class BombError(ValueError):
    """Raised for an archive that unpacks to more than a plausible set of images."""


class Limits:
    """A counter of the bytes unpacked from one archive, with the limits for its size."""

    def __init__(self, archive: Path):
        self._size = archive.stat().st_size
        self._most = max(ALWAYS, RATIO * self._size)
        self._unpacked = 0

    def problem_of(self, size: int, packed: int) -> str:
        """Return why a member of this size is refused; "" if it is allowed."""
        if size > LARGEST_MEMBER:
            return f"it has {size_in_words(size)}, more than the {size_in_words(LARGEST_MEMBER)} of an image or labels"
        if size > max(MEMBER_ALWAYS, RATIO * packed):
            return (
                f"it would unpack from {size_in_words(packed)} to {size_in_words(size)}, more than {RATIO} times as "
                "much, as no image does"
            )
        return ""

    def add(self, size: int) -> None:
        """Count unpacked bytes. Raises BombError if the sum exceeds the limit of the archive."""
        self._unpacked += size
        if self._unpacked > self._most:
            raise BombError(
                f"it unpacks to more than {size_in_words(self._most)}, {RATIO} times the {size_in_words(self._size)} "
                "of the archive, as images do not; if it is right, unpack it yourself and import the folder"
            )
