"""A thread of the worker that notices when image files are deleted or restored; it only checks that they exist.

For images that an older version registered it reads the capture times first, a few headers at a time. It is a thread of
its own because a disk that does not answer blocks the thread that asks.
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
    """The thread that marks images whose files are gone, and unmarks those that are back, round after round.

    It runs from `start` to `close`; a stalled disk can delay its end. Each worker has one instance.
    """

    def __init__(self, db: Database):
        self._db = db
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="missing files", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Ask the thread to end; do not wait for it."""
        self._closed.set()

    def check_all(self) -> None:
        """Check the files of all images once."""
        last: int | None = 0
        while last is not None:
            last = images.update_missing_images(self._db, last, FILES_PER_CHECK)
            if last is not None and self._closed.wait(PAUSE_SECONDS):
                return

    def read_capture_times(self) -> None:
        """Read the capture times of all images that were registered without one."""
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
            except AnnotatorError as error:  # such as a full disk or a long lock: retried in the next round
                log.warning("files could not be looked for: %s", error)
            self._closed.wait(ROUND_SECONDS)
