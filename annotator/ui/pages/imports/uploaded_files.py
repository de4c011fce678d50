"""Files uploaded for import, stored in the project and removed after it.

    <project>/uploads/<random>/<name>    one private folder per person

They survive page reloads, but are removed after a day or a server restart.
"""

import os
import re
import secrets
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError, DiskFull
from annotator.exchange.files.safe_names import safe_name
from annotator.store.database.database import Database

UPLOADS_FOLDER_NAME = "uploads"
MAX_FILE_BYTES = 4_000_000_000  # bytes of one file
MAX_FILES_PER_PERSON = 20  # files of one person
UPLOAD_LIFETIME_SECONDS = 24 * 3600.0
_PART_SUFFIX = ".part"
_SUFFIX_PATTERN = re.compile(r"\.[A-Za-z0-9]{1,10}")


@dataclass(frozen=True)
class UploadedFiles:
    """One person's complete uploads: sorted names and sizes."""

    folder: Path
    files: tuple[tuple[str, int], ...]


class IncomingFile:
    """A writer of one file while it is being uploaded."""

    def __init__(self, target: Path):
        from annotator.exchange.sources.fetch_folder import RESERVED_DISK_BYTES  # with all that reads files

        self._target, self._part = target, target.with_name(f"{secrets.token_hex(4)}{_PART_SUFFIX}")
        self._file = os.fdopen(os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._room = shutil.disk_usage(target.parent).free - RESERVED_DISK_BYTES
        self.bytes = 0

    def write(self, data: bytes) -> None:
        """Append data, or raise AnnotatorError (too large) or DiskFull."""
        self.bytes += len(data)
        if self.bytes > MAX_FILE_BYTES:
            raise AnnotatorError(format_too_large(self._target.name))
        if self.bytes > self._room:
            raise DiskFull(f"{self._target.name} does not fit on the disk of the project beside what is kept free.")
        try:
            self._file.write(data)
        except OSError as error:
            raise DiskFull(f"{self._target.name} cannot be stored: {error.strerror or error}.") from error

    def finish(self) -> str:
        """Move the complete file, returning its name."""
        self._file.close()
        self._part.replace(self._target)
        return self._target.name

    def discard(self) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)


class Uploads:
    """The uploads of one project."""

    def __init__(self, db: Database):
        self._root = db.paths.project / UPLOADS_FOLDER_NAME
        self._lock = threading.Lock()
        self._folders: dict[str, tuple[Path, float]] = {}  # person -> folder, and when it was made

    def begin_file(self, by: str, name: str) -> IncomingFile:
        """Start receiving a file that replaces one of the same name. Raises AnnotatorError for too many files."""
        with self._lock:
            self._remove_expired()
            folder = self._folders.get(by, (None, 0.0))[0]
            if folder is None or not folder.is_dir():
                folder = self._root / secrets.token_hex(8)
                folder.mkdir(mode=0o700, parents=True)
                self._folders[by] = (folder, time.time())
        if len(list(folder.iterdir())) >= MAX_FILES_PER_PERSON:
            raise AnnotatorError(
                f"{MAX_FILES_PER_PERSON} files are uploaded already. Remove them first, or pack all into one .zip."
            )
        return IncomingFile(folder / make_safe_name(name))

    def get_files(self, by: str) -> UploadedFiles | None:
        folder = self._folders.get(by, (None, 0.0))[0]
        if folder is None or not folder.is_dir():
            return None
        files = sorted((path.name, path.stat().st_size) for path in folder.iterdir() if path.suffix != _PART_SUFFIX)
        return UploadedFiles(folder, tuple(files)) if files else None

    def remove_files(self, by: str) -> None:
        with self._lock:
            folder, _ = self._folders.pop(by, (None, 0.0))
        if folder:
            shutil.rmtree(folder, ignore_errors=True)

    def _remove_expired(self) -> None:
        for by, (folder, made) in list(self._folders.items()):
            if time.time() - made > UPLOAD_LIFETIME_SECONDS:
                del self._folders[by]
                shutil.rmtree(folder, ignore_errors=True)


def get_uploads(db: Database) -> Uploads:
    return db.caches.get("uploads", "", lambda: Uploads(db), 1)


def remove_leftover_uploads(db: Database) -> None:
    shutil.rmtree(db.paths.project / UPLOADS_FOLDER_NAME, ignore_errors=True)


def make_safe_name(name: str) -> str:
    """Return a portable file name, never a path or hidden file."""
    base = re.split(r"[/\\]", name)[-1]
    stem, ending = base, ""
    if (match := _SUFFIX_PATTERN.fullmatch(Path(base).suffix)) and Path(base).stem:
        stem, ending = base[: -len(match[0])], match[0]
    return f"{safe_name(stem)}{ending}"


def format_too_large(name: str) -> str:
    """Return the error message for an uploaded file that is too large."""
    from annotator.exchange.sources.fetch_folder import format_size

    return (
        f"{name} is larger than {format_size(MAX_FILE_BYTES)}, the most that a browser may send. Put it on the machine "
        "that runs Annotator and give its path."
    )
