"""Updates a project's events after images, fields or capture times change."""

import logging
import time

from annotator.store.events import project_events
from annotator.worker.features.worker_context import WorkerContext

PAUSE_FACTOR = 20  # times as long as finding them took, before they are found again

log = logging.getLogger("annotator.worker")


class EventRefresher:
    """The worker duty of updating events."""

    def __init__(self, context: WorkerContext):
        self._context, self._db = context, context.db
        self._again_at = 0.0

    def find_if_due(self) -> bool:
        """Update outdated events (groups of images) if the project has any, and return whether it did."""
        if (
            time.monotonic() < self._again_at
            or not project_events.have_been_found(self._db)
            or project_events.are_current(self._db)
        ):
            return False
        self._context.report_state("finding events")
        began = time.monotonic()
        project_events.find_and_save(self._db)
        seconds = time.monotonic() - began
        self._again_at = time.monotonic() + PAUSE_FACTOR * seconds
        log.info("events: found again in %.1f s", seconds)
        return True
