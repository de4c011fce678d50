"""A worker thread that detects deleted and restored image files.

It is a thread because an unresponsive disk blocks its caller.
"""

import logging
import threading

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.images import images

FILES_PER_CHECK, PAUSE_SECONDS = 500, 0.5  # a million images in a quarter of an hour, at a few milliseconds a second
HEADERS_PER_READ = 50  # files whose headers are read between two such pauses: a million in three hours
ROUND_SECONDS = 60.0

log = logging.getLogger("annotator.worker")


class MissingFileWatcher:
    """The thread that marks and unmarks images with missing files."""

    def __init__(self, db: Database):
        self._db = db
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="missing files", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Request the thread's end without waiting."""
        self._closed.set()

    def check_all(self) -> None:
        last: int | None = 0
        while last is not None:
            last = images.update_missing_images(self._db, last, FILES_PER_CHECK)
            if last is not None and self._closed.wait(PAUSE_SECONDS):
                return

    def read_capture_times(self) -> None:
        last: int | None = 0
        while last is not None:
            last = images.read_capture_times(self._db, last, HEADERS_PER_READ)
            if last is not None and self._closed.wait(PAUSE_SECONDS):
                return

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self.read_capture_times()
                self.check_all()
                images.recheck_addresses(self._db)
            except (AnnotatorError, OSError) as error:  # such as a full disk or a long lock: retried in the next round
                log.warning("files could not be looked for: %s", error)
            self._closed.wait(ROUND_SECONDS)
