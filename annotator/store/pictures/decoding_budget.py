"""A budget of memory that the threads of a process share for decoding images; returning freed memory to the system."""

import contextlib
import ctypes
import os
import threading
from collections import deque
from collections.abc import Generator

from annotator.store.disk.open_files import get_clock

MAX_BUDGET_BYTES = 1_000_000_000  # bytes; on a small machine an eighth of its memory


class MemoryBudget:
    """A number of bytes that threads share, first come, first served, so that a large request is not starved."""

    def __init__(self, size: int):
        self.size = size
        self.granted_at_most = 0  # bytes granted at the same time, the highest so far
        self._free = size
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def reserve(self, amount: int) -> Generator[None]:
        """Reserve `amount` bytes for the block, waiting for them; at most the whole budget.

        A thread that holds a grant must not request another one: two such threads could deadlock.
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


def release_freed_memory() -> None:
    """Give freed memory back to the system after a large operation; the C library of Linux keeps it otherwise.

    After the Gallery's columns of a million images were read that is 38 MB.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # other systems, other C libraries
        ctypes.CDLL(None).malloc_trim(0)


def _get_budget_bytes() -> int:
    try:
        return min(MAX_BUDGET_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 8)
    except (AttributeError, ValueError, OSError):  # Windows
        return MAX_BUDGET_BYTES


DECODING_BUDGET = MemoryBudget(_get_budget_bytes())
