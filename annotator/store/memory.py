"""How many bytes the threads of one process may use at once for decoding images."""

import contextlib
import os
import threading
from collections import deque
from collections.abc import Generator

from annotator.store.reading import clock

MOST = 1_000_000_000  # bytes; on a small machine an eighth of its memory


class Budget:
    """A number of bytes that threads share. First come, first served: a large request is not passed for ever."""

    def __init__(self, size: int):
        self.size = size
        self.granted_at_most = 0  # bytes granted at the same time, the highest so far
        self._free = size
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def granted(self, amount: int) -> Generator[None]:
        """Within, `amount` bytes are this thread's. Waits for them; more than the whole budget is granted alone.

        A thread that holds a grant must not ask for another one: both could wait for ever.
        """
        amount = min(amount, self.size)
        with clock().stopped():
            self._take(amount)
            try:
                yield
            finally:
                with self._changed:
                    self._free += amount
                    self._changed.notify_all()

    def _take(self, amount: int) -> None:
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


def _size() -> int:
    try:
        return min(MOST, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 8)
    except (AttributeError, ValueError, OSError):  # Windows
        return MOST


DECODING = Budget(_size())
