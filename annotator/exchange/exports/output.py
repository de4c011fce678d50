"""The outputs that formats write exports to: one file, or a folder.

Files get temporary names, and are synced and renamed at the end. After a crash, the next export there deletes leftovers
or finishes renaming.
"""

import os
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TextIO

from annotator.errors import AnnotatorError
from annotator.exchange.croissant.croissant_document import build_pattern
from annotator.exchange.exports import destination
from annotator.exchange.exports.image_files import Placer
from annotator.records import Image
from annotator.store.database.files_together import FileGroup
from annotator.store.pictures.files import compute_sha256

MAX_FILES_HASHED = 200
IMAGES_PER_TOUCH = 500  # images after which the temporary folder is marked as in use


class _Output:
    """Base class of outputs with temporary paths."""

    def path(self, name: str = "") -> Path:
        raise NotImplementedError

    @contextmanager
    def open_text(self, name: str = "") -> Generator[TextIO]:
        with self.path(name).open("w", newline="", encoding="utf-8") as file:
            yield file

    @contextmanager
    def open_binary(self, name: str = "") -> Generator[BinaryIO]:
        with self.path(name).open("wb") as file:
            yield file


class FileOutput(_Output):
    """The output of an export to one file."""

    def __init__(self, target: Path, files: FileGroup, overwrite: bool):
        self.target, self._files, self._overwrite = target, files, overwrite

    def path(self, name: str = "") -> Path:
        """Return the temporary path of the exported file (""), or of a file next to it with this ending."""
        final = path_beside(self.target, name)
        if final not in self._files.parts:
            if final.parent != self.target.parent:
                raise ValueError(f"{name!r} must be an ending: this format is one file")
            if problems := destination.find_file_problems(final, self.target, self._overwrite):
                raise AnnotatorError("Nothing was exported: " + " ".join(problems))
        return self._files.add_file(final)

    def write_image(self, image: Image, name: str, xmp: str = "") -> bool:
        return False

    def read_image(self, image: Image) -> bytes | None:
        return None

    def hash_files(self) -> dict[str, str]:
        return {path.name: compute_sha256(part) for path, part in self._files.parts.items() if part.exists()}

    def paths(self) -> list[Path]:
        return list(self._files.parts)

    def list_label_files(self) -> dict[str, Path]:
        """Return the temporary path of each file by its final name."""
        return {path.name: part for path, part in self._files.parts.items() if part.exists()}

    def count_images(self) -> dict[str, int]:
        """Return the number of image files by pattern."""
        return {}


class FolderOutput(_Output):
    """The output of an export to a folder."""

    def __init__(self, folder: Path, placer: Placer):
        self._folder, self._placer = folder, placer
        self._made = {folder}
        self._names: dict[str, None] = {}
        self._placed = destination.FileDigest()
        self._image_patterns: Counter[str] = Counter()

    def path(self, name: str = "") -> Path:
        """Return the temporary path of a file, which is then listed as written."""
        path = self._make_path(name)
        self._names[name] = None
        return path

    def write_image(self, image: Image, name: str, xmp: str = "") -> bool:
        """Write an image file, and return whether it could be written."""
        path = self._make_path(name)
        if not self._placer.place(image, path, xmp):
            return False
        self._placed.add(name, path)
        self._image_patterns[build_pattern(name)] += 1
        if self._placed.count % IMAGES_PER_TOUCH == 0:
            os.utime(self._folder)
        return True

    def read_image(self, image: Image) -> bytes | None:
        return self._placer.read_content(image)

    def names(self) -> list[str]:
        return list(self._names)

    def list_label_files(self) -> dict[str, Path]:
        """Return the temporary path of each file that is not an image, by its name."""
        return {name: self._folder / name for name in self._names}

    def count_images(self) -> dict[str, int]:
        """Return the number of image files by pattern, such as images/*.jpg."""
        return dict(self._image_patterns)

    def hash_files(self) -> tuple[dict[str, str], destination.FileDigest]:
        """Return the sha256 of the first MAX_FILES_HASHED files by name, and a digest of the others."""
        names = list(self._names)
        for name in names[MAX_FILES_HASHED:]:
            self._placed.add(name, self._folder / name)
        return {name: compute_sha256(self._folder / name) for name in names[:MAX_FILES_HASHED]}, self._placed

    def _make_path(self, name: str) -> Path:
        parts = PurePosixPath(name).parts
        if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name or "\0" in name:
            raise ValueError(f"{name!r} is no name inside the folder of an export")
        path = self._folder.joinpath(*parts)
        if path.parent not in self._made:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(path.parent)
        return path


def path_beside(target: Path, name: str) -> Path:
    """Return `target` with its ending replaced by `name`, unless that is ""."""
    return target.with_name(target.stem + name) if name else target
