"""The thread that brings the current run up to date as decisions arrive, beside the worker's other duties.

Training, embedding and drawing have steps of seconds, which an update must not wait for. The two threads share the
cores and learn from the store what is current.
"""

import logging
import threading
import traceback
from collections.abc import Callable

from annotator.errors import AnnotatorError
from annotator.records import Run
from annotator.store import decisions, heartbeat, runs
from annotator.store.arrays import FeatureCache
from annotator.store.database import Database
from annotator.worker.incremental_update import Updater
from models.ensemble.incremental_update import stay_on_one_core

POLL_SECONDS = 0.05

log = logging.getLogger("annotator.worker")


class UpdateThread:
    """One for a worker; starts with `start`, and ends with `close` after what it is in the middle of."""

    def __init__(self, db: Database, cache: Callable[[], FeatureCache | None]):
        """cache gives the features that the worker has, None while it has none."""
        self._db, self._cache, self._updater = db, cache, Updater()
        self._failed: tuple | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="updates", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    def publish_pending_update(self) -> Run | None:
        """Bring the current run up to date, once; the run where that was needed.

        What goes wrong is noted for people to read, and not tried again before there is another decision or run.
        """
        run, cache = runs.current_run(self._db), self._cache()
        if run is None or cache is None:
            return None
        state = (run.id, decisions.newest_decision(self._db))
        if state == self._failed:
            return None
        try:
            updated = self._updater.update(self._db, cache)
            if updated and self._failed:
                self._failed = None
                heartbeat.note_error(self._db, "")
            return updated
        except Exception as error:
            self._failed = state
            reason = str(error) if isinstance(error, AnnotatorError) else traceback.format_exc()
            log.warning("run %d could not be brought up to date: %s", run.id, reason)
            heartbeat.note_error(self._db, reason)
            return None

    def _run(self) -> None:
        stay_on_one_core()
        while not self._closed.wait(POLL_SECONDS):
            try:
                self.publish_pending_update()
            except AnnotatorError as error:  # the store itself: the worker meets the same and says so
                log.warning("%s", error)
