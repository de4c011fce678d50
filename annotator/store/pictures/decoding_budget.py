"""The memory budget that decoding threads share."""

import contextlib
import threading
from collections import deque
from collections.abc import Generator

from annotator.store.disk.open_files import get_clock
from annotator.system_resources import get_memory_bytes

MAX_BUDGET_BYTES = 1_000_000_000  # bytes; on a small machine an eighth of its memory


class MemoryBudget:
    """A limit on reserved bytes, granted in order of request so that large requests do not starve."""

    def __init__(self, size: int):
        self.size = size
        self.granted_at_most = 0  # bytes granted at the same time, the highest so far
        self._free = size
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def reserve(self, amount: int) -> Generator[None]:
        """Wait for and reserve `amount` bytes, at most the whole budget.

        A thread with a grant must not request another, as two could deadlock.
        """
        amount = min(amount, self.size)
        with get_clock().pause():
            self._wait_for_bytes(amount)
            try:
                yield
            finally:
                with self._changed:
                    self._free += amount
                    self._changed.notify_all()

    def _wait_for_bytes(self, amount: int) -> None:
        me = object()
        with self._changed:
            self._waiting.append(me)
            try:
                self._changed.wait_for(lambda: self._waiting[0] is me and self._free >= amount)
                self._free -= amount
                self.granted_at_most = max(self.granted_at_most, self.size - self._free)
            finally:
                self._waiting.remove(me)
                self._changed.notify_all()


DECODING_BUDGET = MemoryBudget(min(MAX_BUDGET_BYTES, get_memory_bytes() // 8))
