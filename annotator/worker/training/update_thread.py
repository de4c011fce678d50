"""The thread that updates the current run as decisions arrive."""

import logging
import threading
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
    """A thread that publishes updates from `start` to `close`."""

    def __init__(self, db: Database, cache: Callable[[], FeatureCache | None]):
        """Create the thread. `cache` returns the worker's embeddings, or None."""
        self._db, self._cache, self._updater = db, cache, Updater()
        self._failed: tuple | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="updates", daemon=True)

    def start(self) -> None:
        """Start the thread. Call from the training thread, which keeps its cores."""
        fix_thread_count()
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    def publish_pending_update(self) -> Run | None:
        """Publish an update of the current run and return the run, or None. Errors are recorded, not retried."""
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
            reason = heartbeat.describe_exception(error)
            log.warning("run %d could not be brought up to date: %s", run.id, reason)
            heartbeat.record_error(self._db, reason)
            return None

    def _run(self) -> None:
        limit_thread_to_one_core()
        while not self._closed.wait(POLL_SECONDS):
            try:
                self.publish_pending_update()
            except (AnnotatorError, OSError) as error:  # from the store: the worker's main loop reports it
                log.warning("%s", error)
