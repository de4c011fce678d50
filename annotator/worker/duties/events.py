"""Finds events again after images were added, facts imported or capture times read, where a project has events."""

import logging
import time

from annotator.store.events import events
from annotator.worker.features.context import Context

PAUSE = 20  # times as long as finding them took, before they are found again

log = logging.getLogger("annotator.worker")


class EventsAgain:
    """The duty of finding events again; each worker has one instance."""

    def __init__(self, context: Context):
        self._context, self._db = context, context.db
        self._again_at = 0.0

    def find_if_due(self) -> bool:
        """Find events if what they follow from has changed; return whether it did.

        A project that never asked for events stays without.
        """
        if time.monotonic() < self._again_at or not events.are_found(self._db) or events.are_current(self._db):
            return False
        self._context.say("finding events")
        began = time.monotonic()
        events.find(self._db)
        seconds = time.monotonic() - began
        self._again_at = time.monotonic() + PAUSE * seconds
        log.info("events: found again in %.1f s", seconds)
        return True
