"""Adding of image folders in a thread, independent of the page.

It may be stopped, killed and repeated, because each batch is committed.
"""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import add_folder
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.images.registration import RegistrationResult
from annotator.store.locations.addresses import Address

READ_THREADS = 2  # files read at a time: people at work come first

log = logging.getLogger("annotator.adding")


class _AddingStopped(Exception):
    """The exception that stops adding images at the user's request."""


@dataclass(frozen=True)
class AddOutcome:
    """The result of adding one folder or URL of images."""

    folder: Path | Address
    registered: RegistrationResult | None = None
    error: str = ""


@dataclass(frozen=True)
class AddProgress:
    """The progress of adding folders (`of` is 0 while listing)."""

    folder: Path | Address | None = None
    done: int = 0
    of: int = 0
    outcomes: tuple[AddOutcome, ...] = field(default=())


class ImageAdder:
    """The thread that adds a project's folders."""

    def __init__(self, db: Database):
        self._db = db
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.progress = AddProgress()

    @property
    def is_at_work(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, folders: Sequence[Path | Address]) -> None:
        """Start adding folders of images, or raise AnnotatorError while others are being added."""
        self._db.require(Right.OWN)
        with self._lock:
            if self.is_at_work:
                raise AnnotatorError("Another folder is being added. Wait until it is done, or stop it.")
            self._stop.clear()
            self.progress = AddProgress(folders[0] if folders else None)
            self._thread = threading.Thread(target=self._add_folders, args=[folders], name="adding images", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop soon, keeping added images for resuming."""
        self._stop.set()

    def wait(self) -> None:
        if self._thread:
            self._thread.join()

    def _add_folders(self, folders: Sequence[Path | Address]) -> None:
        for folder in folders:
            self.progress = replace(self.progress, folder=folder, done=0, of=0)
            outcome = self._add_folder(folder)
            self.progress = replace(self.progress, outcomes=(*self.progress.outcomes, outcome))
            if self._stop.is_set():
                break
        self.progress = replace(self.progress, folder=None)

    def _add_folder(self, folder: Path | Address) -> AddOutcome:
        try:
            return AddOutcome(folder, add_folder(self._db, folder, self._report_progress, READ_THREADS))
        except _AddingStopped:
            return AddOutcome(folder, error="Stopped. The images added so far stay; add the folder again to go on.")
        except AnnotatorError as error:
            return AddOutcome(folder, error=str(error))
        except Exception as error:  # a thread has nobody to raise to: the page shows it, the server's log has all of it
            log.exception("%s could not be added", folder)
            return AddOutcome(folder, error=f"{folder} could not be added: {type(error).__name__}: {error}")

    def _report_progress(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise _AddingStopped
        self.progress = replace(self.progress, done=done, of=total)


def get_image_adder(db: Database) -> ImageAdder:
    return db.caches.get("adding images", "", lambda: ImageAdder(db), 1)
