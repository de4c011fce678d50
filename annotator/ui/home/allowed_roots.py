"""The server folders in which the start page may look for images.

Paths are resolved before the check. Hidden folders are refused, because programs store keys there.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.sources.path_list import is_hidden_path
from annotator.store.pictures.picture_kinds import looks_like_image
from annotator.ui.shared.work.readable_paths import parse_absolute_path

MAX_ENTRIES_SCANNED = 50_000  # of a folder that are looked at
MAX_FOLDERS_LISTED = 2_000  # of a folder that are listed


@dataclass(frozen=True)
class FolderListing:
    """The content of a folder, one level deep."""

    path: Path
    # None for a root
    parent: Path | None
    # names that may be opened
    folders: Sequence[str]
    images: int


class AllowedRoots:
    """A guard that accepts only paths below allowed root folders.

    Args:
        paths: Roots offered on the page.
        unlisted: Further readable folders.
    """

    def __init__(self, paths: Sequence[Path], unlisted: Sequence[Path] = ()):
        self.paths = _resolve_folders(paths)
        self._all = _resolve_folders([*paths, *unlisted])

    def list_folder(self, given: str) -> FolderListing:
        """Check a folder's path and return its content."""
        path = self.resolve_folder(given)
        names: list[str] = []
        images = 0
        with os.scandir(path) as entries:
            for number, entry in enumerate(entries):
                if number >= MAX_ENTRIES_SCANNED:
                    break
                if entry.name.startswith("."):
                    continue
                if _is_folder(entry):
                    if len(names) < MAX_FOLDERS_LISTED and self._find_root(Path(entry.path).resolve()):
                        names.append(entry.name)
                elif looks_like_image(entry.name):
                    images += 1
        parent = None if path in self._all else path.parent
        return FolderListing(path, parent, sorted(names, key=str.casefold), images)

    def resolve_folder(self, given: str) -> Path:
        """Return a resolved folder, or raise AnnotatorError if outside the roots, hidden or unreadable."""
        path = self.resolve_path(given)
        if not path.is_dir():
            raise AnnotatorError(f"{path} is a file, not a folder. Choose the folder with your images.")
        if not os.access(path, os.R_OK | os.X_OK):
            raise AnnotatorError(
                f"{path} may not be read by the user who runs Annotator. Give that user the right to read it, for "
                "example with: chmod -R a+rX FOLDER"
            )
        return path

    def resolve_path(self, given: str) -> Path:
        """Resolve a path, or raise AnnotatorError if outside the roots, hidden or missing."""
        path = parse_absolute_path(given)
        try:
            real = path.resolve()
        except (OSError, RuntimeError) as error:
            raise AnnotatorError(f"{path} cannot be followed: {error}.") from error
        root = self._find_root(real)
        if root is None:
            allowed = ", ".join(map(str, self.paths)) or "none"
            raise AnnotatorError(
                f"{path} lies outside of the folders that may be read here: {allowed}. Whoever started Annotator can "
                "allow more with: annotator home --roots FOLDER"
            )
        if is_hidden_path(real.relative_to(root)):
            raise AnnotatorError(f"{path} is hidden, or lies in a hidden folder. Pages do not read those.")
        if not os.path.lexists(real):
            raise AnnotatorError(f"There is nothing at {path}. Was it moved or deleted, or is the path spelled right?")
        return real

    def _find_root(self, real: Path) -> Path | None:
        """Return the innermost root that contains a resolved path, or None."""
        around = [root for root in self._all if real.is_relative_to(root)]
        return max(around, key=lambda root: len(root.parts), default=None)


def _resolve_folders(paths: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path.resolve() for path in paths if path.is_dir()))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle
        return False
