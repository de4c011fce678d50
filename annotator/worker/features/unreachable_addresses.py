"""Addresses that do not answer in one round of embedding: the rest of their images waits for the next round.

Without this each image of a bucket that is away would be tried, and get a problem of its own that is removed later.
"""

from collections import Counter
from pathlib import Path

from annotator.store.locations.location import AT_A_TIME, Source
from annotator.store.locations.objects import NOT_NOW, objects_at

MORE = 10  # times as many of an address that answers, and refuses many of its images


class Away:
    """The addresses that count as away, after AT_A_TIME images in a row without an answer."""

    def __init__(self):
        self._failed: Counter[str] = Counter()  # by address, images in a row
        self._answered: set[str] = set()
        self.addresses: set[str] = set()

    def holds(self, source: Source) -> bool:
        """Return whether this image is not to be tried now, because its address is away."""
        return not isinstance(source, Path) and source.folder in self.addresses

    def note_answer(self, source: Source) -> None:
        """Record that this image was read."""
        if not isinstance(source, Path):
            self._failed[source.folder] = 0
            self._answered.add(source.folder)

    def note_failure(self, source: Source, reason: str) -> bool:
        """Record that this image could not be read; return whether its address was away already.

        The failure of an image at such an address is not stored with the image.
        """
        if isinstance(source, Path):
            return False
        if not reason.startswith(NOT_NOW):
            self.note_answer(source)
        elif source.folder not in self.addresses:
            self._failed[source.folder] += 1
            refuses = source.folder in self._answered and not objects_at(source.address).is_late
            if self._failed[source.folder] >= AT_A_TIME * (MORE if refuses else 1):
                self.addresses.add(source.folder)
            return False
        return source.folder in self.addresses
