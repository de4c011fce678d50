"""Temporary files for download, each in a random folder and deleted after a while."""

import shutil
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from annotator.exchange.exports.destination import DOWNLOAD_FOLDER_NAME
from annotator.store.database.database import Database
from annotator.store.database.project_identity import make_folder_in_project
from annotator.store.disk.durable import make_folder

OFFER_SECONDS = 3600.0  # that a file is offered
MAX_OFFERED_FILES = 8  # files


@dataclass(frozen=True)
class OfferedFile:
    """A downloadable file (`bytes`: size, `expires_at`: unix seconds)."""

    id: str
    path: Path
    media_type: str
    bytes: int
    expires_at: float


class Downloads:
    """The downloadable files of one project."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._lock = threading.Lock()
        self._offered: dict[str, OfferedFile] = {}
        self._remove_leftovers()

    def create_folder(self) -> Path:
        """Create a folder with a random name, for one file to offer."""
        make_folder_in_project(self._folder)
        folder = self._folder / uuid.uuid4().hex
        make_folder(folder, 0o700)
        return folder

    def offer(self, path: Path, media_type: str) -> OfferedFile:
        """Offer a file in a folder of `create_folder`. The oldest offers beyond MAX_OFFERED_FILES are deleted."""
        name, expires_at = path.parent.name, time.time() + OFFER_SECONDS
        offered = OfferedFile(name, path, media_type, path.stat().st_size, expires_at)
        with self._lock:
            self._offered[name] = offered
            too_many = list(self._offered)[:-MAX_OFFERED_FILES]
        for old in too_many:
            self.remove(old)
        timer = threading.Timer(OFFER_SECONDS, self.remove, [name])
        timer.daemon = True
        timer.start()
        return offered

    def find(self, name: str) -> OfferedFile | None:
        """Return the file offered in the folder `name`, or None if it has expired."""
        offered = self._offered.get(name)
        if offered and offered.expires_at <= time.time():
            self.remove(name)
            return None
        return offered

    def remove(self, name: str) -> None:
        """Delete the folder `name` with the file that it offers."""
        with self._lock:
            self._offered.pop(name, None)
        shutil.rmtree(self._folder / name, ignore_errors=True)

    def stop(self) -> None:
        for name in list(self._offered):
            self.remove(name)

    def _remove_leftovers(self) -> None:
        with suppress(OSError):
            for folder in list(self._folder.iterdir()):
                if DOWNLOAD_FOLDER_NAME.fullmatch(folder.name):
                    shutil.rmtree(folder, ignore_errors=True)


def get_downloads(db: Database) -> Downloads:
    return db.caches.get("downloads", "", lambda: Downloads(db.paths.downloads), 1)
