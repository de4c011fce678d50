"""Counting the files of a source that are left out by their names: leftovers, and pictures that are not read."""

from dataclasses import dataclass, field

from annotator.store.pictures.leftovers import describe_leftovers, find_leftover_part
from annotator.store.pictures.picture_kinds import describe_unread, get_unread_ending


@dataclass
class SkippedFiles:
    """The files of one source that are left out by their names.

    Attributes:
        leftovers: Name of a leftover (leftovers.py) -> the number of files.
        unread: Ending (picture_kinds.py) -> the number of files that hold pictures and are not read here.
    """

    leftovers: dict[str, int] = field(default_factory=dict[str, int])
    unread: dict[str, int] = field(default_factory=dict[str, int])

    def count_if_skipped(self, path: str) -> bool:
        """Count a file if it is left out by its name; return whether it is."""
        if name := find_leftover_part(path):
            self.add_leftovers(name, 1)
        elif ending := get_unread_ending(path):
            self.unread[ending] = self.unread.get(ending, 0) + 1
        else:
            return False
        return True

    def add_leftovers(self, name: str, files: int) -> None:
        """Count so many files of a leftover."""
        if files:
            self.leftovers[name] = self.leftovers.get(name, 0) + files

    def format_sentences(self) -> list[str]:
        """Return sentences about the files that were counted, with what would help."""
        return [*describe_unread(self.unread), *describe_leftovers(self.leftovers)]

    def __bool__(self) -> bool:
        return bool(self.leftovers or self.unread)
