"""Limits of the bytes that an archive may unpack to, which are low because images hardly compress."""

from pathlib import Path

from annotator.exchange.files.arrow_tables import ALWAYS_ALLOWED_BYTES, ALWAYS_ALLOWED_MEMBER_BYTES, MAX_UNPACK_RATIO
from annotator.exchange.sources.fetch_folder import format_size
from annotator.store.locations.web_servers import MAX_MEMBER_BYTES


class ArchiveTooLargeError(ValueError):
    """The error of an archive that unpacks to an implausible size."""


class UnpackLimits:
    """A counter of one archive's unpacked bytes, with limits."""

    def __init__(self, archive: Path):
        self._size = archive.stat().st_size
        self._most = max(ALWAYS_ALLOWED_BYTES, MAX_UNPACK_RATIO * self._size)
        self._unpacked = 0

    def find_problem(self, size: int, packed: int) -> str:
        """Return why a member of this size, `packed` in the archive, is rejected, or ""."""
        if size > MAX_MEMBER_BYTES:
            return f"it has {format_size(size)}, more than the {format_size(MAX_MEMBER_BYTES)} of an image or labels"
        if size > max(ALWAYS_ALLOWED_MEMBER_BYTES, MAX_UNPACK_RATIO * packed):
            return (
                f"it would unpack from {format_size(packed)} to {format_size(size)}, more than {MAX_UNPACK_RATIO} "
                "times as much, as no image does"
            )
        return ""

    def add_bytes(self, size: int) -> None:
        """Count unpacked bytes. Raises ArchiveTooLargeError above the limit."""
        self._unpacked += size
        if self._unpacked > self._most:
            raise ArchiveTooLargeError(
                f"it unpacks to more than {format_size(self._most)}, {MAX_UNPACK_RATIO} times the "
                f"{format_size(self._size)} of the archive, as images do not; if it is right, unpack it yourself and "
                "import the folder"
            )
