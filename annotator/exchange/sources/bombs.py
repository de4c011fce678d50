"""Limits of what an archive may unpack to: images hardly compress, so that a small archive is a small set."""

from pathlib import Path

from annotator.exchange.files.tables import ALWAYS, MEMBER_ALWAYS, RATIO
from annotator.exchange.sources.landing import size_in_words
from annotator.store.locations.web import LARGEST_MEMBER


class BombError(ValueError):
    """The archive unpacks to more than a set of images does."""


class Limits:
    """Counts what is unpacked of one archive."""

    def __init__(self, archive: Path):
        self._size = archive.stat().st_size
        self._most = max(ALWAYS, RATIO * self._size)
        self._unpacked = 0

    def problem_of(self, size: int, packed: int) -> str:
        """What is wrong with a member of this size; "" for nothing."""
        if size > LARGEST_MEMBER:
            return f"it has {size_in_words(size)}, more than the {size_in_words(LARGEST_MEMBER)} of an image or labels"
        if size > max(MEMBER_ALWAYS, RATIO * packed):
            return (
                f"it would unpack from {size_in_words(packed)} to {size_in_words(size)}, more than {RATIO} times as "
                "much, as no image does"
            )
        return ""

    def add(self, size: int) -> None:
        """Count bytes. Raises BombError where they are too many."""
        self._unpacked += size
        if self._unpacked > self._most:
            raise BombError(
                f"it unpacks to more than {size_in_words(self._most)}, {RATIO} times the {size_in_words(self._size)} "
                "of the archive, as images do not; if it is right, unpack it yourself and import the folder"
            )
