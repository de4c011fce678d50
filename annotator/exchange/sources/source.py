"""A source: what a person names, and how its images become files. One file a kind, one line in the table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

Progress = Callable[[str, int, int], None]
"""Called with what is done, how much of it, and of how much (0: not known); what it raises ends the work."""

Paths = Sequence[tuple[Path, list[str] | None]]


@dataclass(frozen=True)
class Fetched:
    """What a source has become.

    Attributes:
        folders: With the images, each with the paths in it that are meant; None: all that it holds.
        labels: Where labels may be read from, the likeliest first: files or folders, each tried with all formats.
        said: Sentences about what was fetched, for the person.
        path_of: (place of an item in the source) -> its file in the first folder, "" where it has none; None where
            items name files themselves.
        places: Folders of the project that it was brought into; `landing.settle` each before its images are registered.
        changed: Images that wait there to take the place of others.
    """

    folders: Paths
    labels: Sequence[Path] = ()
    said: Sequence[str] = ()
    path_of: Callable[[str], str] | None = None
    places: Sequence[Path] = ()
    changed: int = 0


@dataclass(frozen=True)
class Source:
    """One kind of source.

    Attributes:
        name, about: For people.
        recognise: Whether what a person names is of this kind; it reads a few kilobytes at most, and never raises.
        fetch: (what was named, project folder, progress) -> what it has become. Raises AnnotatorError.
        extra: The pip extra whose packages it needs, "" for none.
    """

    name: str
    about: str
    recognise: Callable[[str], bool]
    fetch: Callable[[str, Path, Progress | None], Fetched]
    extra: str = ""
