"""Where a format writes: a file with others beside it, or a folder. All of it appears when the export ends well.

Everything is written under another name on the same disk, synced, and renamed at the end; what a killed process leaves
behind begins with a dot, ends with .part, and is swept by a later export to the same place.
"""

import glob
import os
import shutil
import time
import uuid
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TextIO

from annotator.errors import AnnotatorError, DiskFull
from annotator.exchange.exports import destination
from annotator.exchange.exports.image_files import Placer
from annotator.records import Image
from annotator.store.database.arrays import replacing
from annotator.store.database.project_identity import make_room
from annotator.store.disk.durable import sync_folder
from annotator.store.pictures.files import content_of

ABANDONED_AFTER = 3600.0  # seconds
FILES_HASHED = 200
SIGN_OF_LIFE = 500  # images after which the temporary folder is marked as in use


class _Output:
    """Files that are opened by the path under which they are written."""

    def path(self, name: str = "") -> Path:
        raise NotImplementedError

    @contextmanager
    def text(self, name: str = "") -> Generator[TextIO]:
        with self.path(name).open("w", newline="", encoding="utf-8") as file:
            yield file

    @contextmanager
    def binary(self, name: str = "") -> Generator[BinaryIO]:
        with self.path(name).open("wb") as file:
            yield file


class FileOutput(_Output):
    """The files of an export to one file: the file itself, and those beside it. Satisfies formats.view.Output."""

    def __init__(self, target: Path, stack: ExitStack, overwrite: bool):
        self.target = target
        self._stack, self._overwrite = stack, overwrite
        self._parts: dict[Path, Path] = {}
        # First, so that it is renamed last: beside a new file all the others are new.
        self._parts[target] = stack.enter_context(replacing(target))

    def path(self, name: str = "") -> Path:
        final = beside(self.target, name)
        if final not in self._parts:
            if final.parent != self.target.parent:
                raise ValueError(f"{name!r} must be an ending: this format is one file")
            if problems := destination.problems_of_file(final, self.target, self._overwrite):
                raise AnnotatorError("Nothing was exported: " + " ".join(problems))
            self._parts[final] = self._stack.enter_context(replacing(final, sync=False))
        return self._parts[final]

    def image(self, image: Image, name: str) -> bool:
        return False

    def image_bytes(self, image: Image) -> bytes | None:
        return None

    def written(self) -> dict[str, str]:
        """Name -> sha256 of all files so far."""
        return {path.name: content_of(part) for path, part in self._parts.items() if part.exists()}

    def paths(self) -> list[Path]:
        """The final paths, in the order in which they were begun."""
        return list(self._parts)


class FolderOutput(_Output):
    """The files of an export to a folder. Satisfies formats.view.Output."""

    def __init__(self, folder: Path, placer: Placer):
        self._folder, self._placer = folder, placer
        self._made = {folder}
        self._names: dict[str, None] = {}
        self._placed = destination.Listing()

    def path(self, name: str = "") -> Path:
        path = self._inside(name)
        self._names[name] = None
        return path

    def image(self, image: Image, name: str) -> bool:
        path = self._inside(name)
        if not self._placer.place(image, path):
            return False
        self._placed.add(name, path)
        if self._placed.count % SIGN_OF_LIFE == 0:
            os.utime(self._folder)
        return True

    def image_bytes(self, image: Image) -> bytes | None:
        return self._placer.content(image)

    def names(self) -> list[str]:
        """The files so far, without images."""
        return list(self._names)

    def sealed(self) -> tuple[dict[str, str], destination.Listing]:
        """Name -> sha256 of the first files, and the list of all others and of the images."""
        names = list(self._names)
        for name in names[FILES_HASHED:]:
            self._placed.add(name, self._folder / name)
        return {name: content_of(self._folder / name) for name in names[:FILES_HASHED]}, self._placed

    def _inside(self, name: str) -> Path:
        parts = PurePosixPath(name).parts
        if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name or "\0" in name:
            raise ValueError(f"{name!r} is no name inside the folder of an export")
        path = self._folder.joinpath(*parts)
        if path.parent not in self._made:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(path.parent)
        return path


@contextmanager
def new_folder(target: Path) -> Generator[Path]:
    """A temporary folder that becomes `target` when the block ends well, in place of one that was there.

    Raises:
        DiskFull: The disk takes no more; then nothing is left of it, and the old folder is as it was.
    """
    mark = uuid.uuid4().hex[:8]
    temporary, old = (target.parent / f".{target.name}.{mark}.{kind}part" for kind in ("", "old."))
    try:
        make_room(target.parent)
        temporary.mkdir()
        yield temporary
        if hasattr(os, "sync"):  # of all files at once: there may be one an image
            os.sync()
        if target.exists():
            target.rename(old)
        temporary.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        _undo(temporary, old, target)
        raise DiskFull(
            f"{target} could not be written: {error.strerror or error}. Nothing of it was kept.\n"
            "    Is the disk full, or the folder write-protected? Free some space and try again."
        ) from error
    except BaseException:
        _undo(temporary, old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def sweep_folders(folder: Path, name: str, older_than: float = ABANDONED_AFTER) -> None:
    """Remove the temporary folders that killed exports to `name` have left; bring back what one was about to replace.

    Args:
        older_than: Seconds since the last sign of life.
    """
    for part in sorted(folder.glob(f".{glob.escape(name)}.*.part")) if folder.is_dir() else ():
        with suppress(OSError):
            if part.is_symlink() or not part.is_dir():
                continue
            if part.name.endswith(".old.part") and not os.path.lexists(folder / name):
                part.rename(folder / name)
            elif part.name.endswith(".old.part") or time.time() - part.stat().st_mtime >= older_than:
                shutil.rmtree(part, ignore_errors=True)


def beside(target: Path, name: str) -> Path:
    """Where a file of an export to one file lies: `name` replaces the ending of the target, "" is the target itself."""
    return target.with_name(target.stem + name) if name else target


def _undo(temporary: Path, old: Path, target: Path) -> None:
    shutil.rmtree(temporary, ignore_errors=True)
    with suppress(OSError):
        if old.exists() and not target.exists():
            old.rename(target)
