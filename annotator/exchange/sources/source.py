"""The protocol of a source: the kind of thing that a person names, and how its images become files.

Each kind is one file and one line in the table (sources/__init__.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from annotator.progress_callbacks import StepCallback

FolderPaths = Sequence[tuple[Path, list[str] | None]]


@dataclass(frozen=True)
class FetchedFiles:
    """The files that a source has become.

    Attributes:
        folders: Folders with the images, each with the paths in it that are meant; None: all paths in it.
        labels: Files or folders that labels may be read from, the likeliest first; each is tried with all formats.
        sentences: Sentences about what was fetched, for the person.
        find_path: (place of an item in the source) -> its file in the first folder, "" where it has none; None where
            items name files themselves.
        fetch_folders: Folders of the project that it was brought into; `landing.settle` each before its images are
            registered.
        changed: The number of images that wait there to take the place of others.
        renamed: Name in the source -> path in the first folder, of files whose names could not be kept.
    """

    folders: FolderPaths
    labels: Sequence[Path] = ()
    sentences: Sequence[str] = ()
    find_path: Callable[[str], str] | None = None
    fetch_folders: Sequence[Path] = ()
    changed: int = 0
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Source:
    """One kind of source that is a path; addresses are read by urls.py.

    Attributes:
        name: Its name, for people.
        about: One line for people.
        recognize: Returns whether a path is a source of this kind; it reads a few kilobytes at most, and never raises.
        fetch: (path, project folder, progress or None) -> the files it has become. Raises AnnotatorError.
    """

    name: str
    about: str
    recognize: Callable[[Path], bool]
    fetch: Callable[[Path, Path, StepCallback | None], FetchedFiles]
