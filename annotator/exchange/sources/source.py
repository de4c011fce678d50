"""The protocol of an image source. Each kind is one file and one line in sources/__init__.py."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from annotator.progress_callbacks import StepCallback

FolderPaths = Sequence[tuple[Path, list[str] | None]]


@dataclass(frozen=True)
class FetchedFiles:
    """The files of a source after fetching.

    Attributes:
        folders: Image folders with selected paths. None selects all.
        labels: Possible label files or folders, most likely first.
        sentences: Remarks.
        find_path: Function from an item's place to its file, or "". None if items name files.
        fetch_folders: Fetched folders. Apply their changed images before registration.
        changed: Changed images to apply.
        renamed: Source name -> path in the first folder, for names not possible on disk.
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
    """A kind of source given by path.

    Attributes:
        name: Displayed name.
        about: One-line explanation.
        recognize: Returns whether a path is this kind. Reads a few kilobytes, never raises.
        fetch: Returns the files of (path, project folder, progress or None).
    """

    name: str
    about: str
    recognize: Callable[[Path], bool]
    fetch: Callable[[Path, Path, StepCallback | None], FetchedFiles]
