"""Counts of files skipped by name: leftovers and unsupported images."""

from dataclasses import dataclass, field

from annotator.store.pictures.leftovers import describe_leftovers, find_leftover_part
from annotator.store.pictures.picture_kinds import describe_unread, get_unread_ending


@dataclass
class SkippedFiles:
    """Counts of the files of one source that were skipped by name."""

    # name part, such as a thumbnail folder -> files
    leftovers: dict[str, int] = field(default_factory=dict[str, int])
    # suffix -> files
    unread: dict[str, int] = field(default_factory=dict[str, int])

    def count_if_skipped(self, path: str) -> bool:
        """Count a file if its name excludes it and return whether it does."""
        if name := find_leftover_part(path):
            self.add_leftovers(name, 1)
        elif ending := get_unread_ending(path):
            self.unread[ending] = self.unread.get(ending, 0) + 1
        else:
            return False
        return True

    def add_leftovers(self, name: str, files: int) -> None:
        if files:
            self.leftovers[name] = self.leftovers.get(name, 0) + files

    def format_sentences(self) -> list[str]:
        return [*describe_unread(self.unread), *describe_leftovers(self.leftovers)]

    def __bool__(self) -> bool:
        return bool(self.leftovers or self.unread)
