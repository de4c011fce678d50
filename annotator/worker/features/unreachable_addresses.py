"""URLs that do not respond, whose remaining images wait for the next embedding round.

Otherwise each image would be tried and get its own error.
"""

from collections import Counter
from pathlib import Path

from annotator.store.locations.location import READ_AHEAD_FILES, ImageSource
from annotator.store.locations.remote_files import UNREADABLE_NOW_PROBLEM, get_remote_files

REFUSAL_FACTOR = 10  # times as many of an address that answers, and refuses many of its images


class UnreachableAddresses:
    """The URLs considered unreachable after READ_AHEAD_FILES consecutive failures."""

    def __init__(self):
        self._failed: Counter[str] = Counter()  # by address, images in a row
        self._answered: set[str] = set()
        self.addresses: set[str] = set()

    def is_unreachable(self, source: ImageSource) -> bool:
        """Return whether this image's URL counts as unreachable, so that it should be skipped."""
        return not isinstance(source, Path) and source.folder in self.addresses

    def record_answer(self, source: ImageSource) -> None:
        if not isinstance(source, Path):
            self._failed[source.folder] = 0
            self._answered.add(source.folder)

    def record_failure(self, source: ImageSource, reason: str) -> bool:
        """Record a failed read, and return whether the image's URL already counted as unreachable."""
        if isinstance(source, Path):
            return False
        if not reason.startswith(UNREADABLE_NOW_PROBLEM):
            self.record_answer(source)
        elif source.folder not in self.addresses:
            self._failed[source.folder] += 1
            refuses = source.folder in self._answered and not get_remote_files(source.address).is_late
            if self._failed[source.folder] >= READ_AHEAD_FILES * (REFUSAL_FACTOR if refuses else 1):
                self.addresses.add(source.folder)
            return False
        return source.folder in self.addresses
