"""Counting the files of a source that are left out by their names: leftovers, and pictures that are not read."""

from dataclasses import dataclass, field

from annotator.store.pictures.kinds import unread_ending, unread_in_words
from annotator.store.pictures.leftovers import leftover_of, leftovers_in_words


@dataclass
class LeftOut:
    """The files of one source that are left out by their names.

    Attributes:
        leftovers: Name of a leftover (leftovers.py) -> the number of files.
        unread: Ending (kinds.py) -> the number of files that hold pictures and are not read here.
    """

    leftovers: dict[str, int] = field(default_factory=dict[str, int])
    unread: dict[str, int] = field(default_factory=dict[str, int])

    def meet(self, path: str) -> bool:
        """Count a file if it is left out by its name; return whether it is."""
        if name := leftover_of(path):
            self.add_leftovers(name, 1)
        elif ending := unread_ending(path):
            self.unread[ending] = self.unread.get(ending, 0) + 1
        else:
            return False
        return True

    def add_leftovers(self, name: str, files: int) -> None:
        """Count so many files of a leftover."""
        if files:
            self.leftovers[name] = self.leftovers.get(name, 0) + files

    def said(self) -> list[str]:
        """Return sentences about the files that were counted, with what would help."""
        return [*unread_in_words(self.unread), *leftovers_in_words(self.leftovers)]

    def __bool__(self) -> bool:
        return bool(self.leftovers or self.unread)
