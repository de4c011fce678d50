"""The thread that writes the worker's heartbeat while its main loop computes.

It tells others only that the process lives: the time of the main loop's last progress is written beside it.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Generator

from annotator.errors import AnnotatorError
from annotator.settings import HEARTBEAT_SECONDS
from annotator.store.database import heartbeat
from annotator.worker.features.worker_context import WorkerContext

log = logging.getLogger("annotator.worker")


@contextlib.contextmanager
def keep_heartbeat(context: WorkerContext, seconds: float = HEARTBEAT_SECONDS) -> Generator[None]:
    """Write heartbeats in a thread, with its own connection, for as long as the block runs."""
    closed = threading.Event()
    thread = threading.Thread(target=_write_heartbeats, args=[context, seconds, closed], name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        closed.set()
        thread.join(seconds)  # not longer: it may wait for a locked database, and is a daemon


def _write_heartbeats(context: WorkerContext, seconds: float, closed: threading.Event) -> None:
    failed = False
    while not closed.wait(seconds):
        now = time.monotonic()
        if now - context.stored_at < seconds:  # the main loop writes the same row itself
            continue
        try:
            heartbeat.beat(context.db, now - context.progress_at)
            failed = False
        except (AnnotatorError, OSError) as error:  # a full disk, a long lock: retried until the worker ends
            if not failed:
                log.warning("The heartbeat could not be stored: %s", error)
            failed = True
