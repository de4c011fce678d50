"""Long computations for pages, in threads of their own: a page shows the progress and stays responsive.

Each project computes one result at a time. The result is kept under a key, so that everybody who asks the same gets
it. A computation ends by itself soon after nobody asks for it any more: a page that waits asks every second.
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
    """The exception raised when nobody waits for the result any more."""


class Computation:
    """One computation.

    Attributes:
        done, of: How far it is; of: 0 until that is known.
        result: None until it has ended well.
        error: Why it has failed, for people; "" otherwise.
        began_at: Unix seconds: the moment that the result is of.
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
        """Return how far the computation is, from 0 to 1."""
        return min(1.0, self.done / self.of) if self.of else 0.0

    def report_progress(self, done: int, total: int) -> None:
        """Note how far the computation is. Raises _Unasked, which ends it, once nobody waits any more."""
        if time.monotonic() - self.asked > ABANDONED_SECONDS:
            raise _Abandoned
        self.done, self.of = done, total


class Computations:
    """The computations of one project; `background` returns it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._works: OrderedDict[Hashable, Computation] = OrderedDict()

    def request(
        self, key: Hashable, stamp: Hashable, make: Callable[[ProgressCallback], Any], *, force: bool = False
    ) -> Computation:
        """Return the computation of a key, begun if there is none; waits a moment for it to end.

        Args:
            key: Names what is computed.
            stamp: What it depends on: where that has changed, a cheap computation is made again.
            make: Called in a thread, with a function that it must call now and then.
            force: Make it again, whatever it cost.
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
    """Return the computations of this project."""
    return db.caches.get("background", "", Computations, 1)
