"""Long computations of pages in threads, with progress and shared results.

A computation stops soon after pages cease to request it.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from annotator.errors import AnnotatorError
from annotator.progress_callbacks import ProgressCallback
from annotator.store.database.database import Database

# seconds that a page waits when it has begun one, and when it asks again
FIRST_WAIT_SECONDS, NEXT_WAIT_SECONDS = (0.7, 0.05)
ABANDONED_SECONDS = 10.0  # after which nobody waits any more
MAX_KEPT_RESULTS = 24  # results
CHEAP_SECONDS = 2.0  # seconds: a computation that took less is made again whenever something has changed

log = logging.getLogger("annotator.background")

"""Called with (done, of)."""


class _Abandoned(Exception):
    """The exception that ends a computation whose result no page requests any more."""


class Computation:
    """The progress and result of one computation.

    Attributes:
        done, of: Progress. `of` is 0 until known.
        result: None until successful.
        began_at: Start time in unix seconds.
    """

    def __init__(self, stamp: Hashable, before: "Computation | None"):
        self.stamp, self.before = stamp, before
        self.done = self.of = 0
        self.result: Any = None
        self.error = ""
        self.began_at, self.seconds = time.time(), 0.0
        self.asked = time.monotonic()
        self.ended = threading.Event()

    @property
    def fraction(self) -> float:
        return min(1.0, self.done / self.of) if self.of else 0.0

    def report_progress(self, done: int, total: int) -> None:
        """Store progress, or raise _Abandoned if no page requests the result."""
        if time.monotonic() - self.asked > ABANDONED_SECONDS:
            raise _Abandoned
        self.done, self.of = done, total


class Computations:
    """The registry of a project's long computations, by key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._works: OrderedDict[Hashable, Computation] = OrderedDict()

    def request(
        self, key: Hashable, stamp: Hashable, make: Callable[[ProgressCallback], Any], *, force: bool = False
    ) -> Computation:
        """Return a key's computation, started if necessary, after a short wait.

        Args:
            stamp: Data state. A new one repeats cheap or failed computations.
            make: Called in a thread, must report progress regularly.
            force: Repeat a finished computation.
        """
        with self._lock:
            work, patience = self._works.get(key), NEXT_WAIT_SECONDS
            if work is None or self._needs_restart(work, stamp, force):
                before = work if work and work.result is not None else None
                work = self._works[key] = Computation(stamp, before)
                threading.Thread(target=self._run_computation, args=[work, make], name="computing", daemon=True).start()
                patience = FIRST_WAIT_SECONDS
            self._works.move_to_end(key)
            while len(self._works) > MAX_KEPT_RESULTS:
                self._works.popitem(last=False)
        work.asked = time.monotonic()
        work.ended.wait(patience)
        return work

    @staticmethod
    def _needs_restart(work: Computation, stamp: Hashable, again: bool) -> bool:
        if not work.ended.is_set():
            return False
        if work.result is None and not work.error:  # nobody had waited for it
            return True
        return again or (work.stamp != stamp and (bool(work.error) or work.seconds < CHEAP_SECONDS))

    def _run_computation(self, work: Computation, make: Callable[[ProgressCallback], Any]) -> None:
        try:
            while not self._turn.acquire(timeout=0.5):
                work.report_progress(0, 0)
            try:
                work.began_at, begin = time.time(), time.monotonic()
                result = make(work.report_progress)
                work.seconds = time.monotonic() - begin
                work.result = result
            finally:
                self._turn.release()
        except _Abandoned:
            pass
        except AnnotatorError as error:
            work.error = str(error)
        except Exception as error:  # a thread has nobody to raise to: the page shows it, the server's log has all of it
            log.exception("a computation for a page failed")
            work.error = f"This could not be computed: {type(error).__name__}: {error}"
        finally:
            work.before = None
            work.ended.set()


def get_computations(db: Database) -> Computations:
    return db.caches.get("background", "", Computations, 1)
