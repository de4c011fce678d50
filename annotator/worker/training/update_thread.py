"""The thread that updates the current run as decisions arrive, beside the worker's other duties.

Training, embedding and drawing have steps of seconds, which an update must not wait for. The two threads share the
cores and learn from the store what is current.
"""

import logging
import threading
import traceback
from collections.abc import Callable

from annotator.errors import AnnotatorError
from annotator.records import Run
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.labels import decisions
from annotator.store.runs import runs
from annotator.worker.training.incremental_update import Updater
from spmll.ensemble.incremental_update import fix_thread_count, limit_thread_to_one_core

POLL_SECONDS = 0.05

log = logging.getLogger("annotator.worker")


class UpdateThread:
    """A thread that publishes updates, from `start` to `close`; each worker has one instance.

    `close` waits for the update in progress.
    """

    def __init__(self, db: Database, cache: Callable[[], FeatureCache | None]):
        """Make the thread; `start` starts it.

        Args:
            db: The project's database.
            cache: Returns the features that the worker has, None while it has none.
        """
        self._db, self._cache, self._updater = db, cache, Updater()
        self._failed: tuple | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="updates", daemon=True)

    def start(self) -> None:
        """Start the thread; call it from the thread that trains, which keeps its cores."""
        fix_thread_count()
        self._thread.start()

    def close(self) -> None:
        """Ask the thread to end, and wait until it has."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    def publish_pending_update(self) -> Run | None:
        """Update the current run; return the updated run, None if there was nothing to do.

        An error is recorded for the pages to show, and not retried before there is another decision or run.
        """
        run, cache = runs.load_current_run(self._db), self._cache()
        if run is None or cache is None:
            return None
        state = (run.id, decisions.get_newest_decision_id(self._db))
        if state == self._failed:
            return None
        try:
            updated = self._updater.update(self._db, cache)
            if updated and self._failed:
                self._failed = None
                heartbeat.record_error(self._db, "")
            return updated
        except Exception as error:
            self._failed = state
            reason = str(error) if isinstance(error, AnnotatorError) else traceback.format_exc()
            log.warning("run %d could not be brought up to date: %s", run.id, reason)
            heartbeat.record_error(self._db, reason)
            return None

    def _run(self) -> None:
        limit_thread_to_one_core()
        while not self._closed.wait(POLL_SECONDS):
            try:
                self.publish_pending_update()
            except AnnotatorError as error:  # from the store: the worker's main loop reports it
                log.warning("%s", error)
