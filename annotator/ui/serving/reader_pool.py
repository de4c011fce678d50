"""A thread pool for reading images, so that a stalled disk blocks nothing else.

After a deadline, the request is answered and its thread is abandoned and replaced. Beyond a limit of abandoned threads,
requests are refused at once. Decoding and waiting for memory do not count. Daemon threads let the process end.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

from annotator.errors import StorageTimeout
from annotator.store.disk.open_files import ReadClock, time_reads

MAX_PARALLEL_READS = 8  # reads in progress
MAX_HUNG_THREADS = 16  # abandoned threads
READ_DEADLINE_SECONDS = 15.0  # for one read
SLOW_READ_SECONDS = 1.5  # after which a thread is not counted as one of MAX_PARALLEL_READS
CHECK_INTERVAL_SECONDS = 0.2  # between two checks of the clocks

RECOVERY_HINT = (
    "Is a network drive away, or a disk unplugged? Everything else goes on working. "
    "Reload this page when the disk is back."
)


class _ReadCall:
    """One read in the pool, changed only by the event loop's thread."""

    def __init__(self, file: Hashable, work: Callable[[], Any]):
        self.file, self.work = file, work
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.asked = time.monotonic()
        self.clock: ReadClock | None = None  # once a thread has taken it
        self.hung = False
        self.dropped = False  # before a thread has taken it


class ReaderPool:
    """The threads and reads of one event loop."""

    def __init__(
        self,
        at_once: int = MAX_PARALLEL_READS,
        most_hung: int = MAX_HUNG_THREADS,
        deadline: float = READ_DEADLINE_SECONDS,
    ):
        self.at_once, self.most_hung, self.deadline = at_once, most_hung, deadline
        self._calls: dict[Hashable, _ReadCall] = {}
        self._queue: queue.SimpleQueue[_ReadCall | None] = queue.SimpleQueue()
        self._threads = 0
        self._hung = 0
        self._hung_files: dict[Hashable, int] = {}
        self._last_end = 0.0

    async def read(self, file: Hashable, kind: Hashable, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the function in a pool thread and return its result.

        Args:
            file: Key of the file. While a read of it hangs, others are refused.
            kind: Requests of equal file and kind share a read.

        Raises:
            StorageTimeout: The disk does not respond.
        """
        call = self._calls.get((file, kind))
        if call is None:
            self._check_can_read(file)
            call = self._calls[file, kind] = _ReadCall(file, lambda: function(*arguments))
            call.future.add_done_callback(lambda _: self._calls.pop((file, kind), None))
            self._queue.put(call)
            self._start_threads()
        while not call.future.done():
            await asyncio.wait({call.future}, timeout=CHECK_INTERVAL_SECONDS)
            if not call.future.done():
                if self._is_late(call):
                    self._abandon_call(call)
                self._start_threads()
        return call.future.result()

    def _check_can_read(self, file: Hashable) -> None:
        if self._hung >= self.most_hung:
            raise StorageTimeout(
                f"The disk does not answer: {self._hung} readings wait for it already. {RECOVERY_HINT}"
            )
        if file in self._hung_files:
            raise StorageTimeout(f"The disk does not answer: this image is still being waited for. {RECOVERY_HINT}")

    def _is_late(self, call: _ReadCall) -> bool:
        if call.clock is not None:
            return call.clock.seconds() > self.deadline
        # Still in the queue: late when no read at all makes progress.
        at_work = [other.clock.seconds() for other in self._calls.values() if other.clock is not None]
        idle = time.monotonic() - max(call.asked, self._last_end)
        return idle > self.deadline and all(seconds > 0 for seconds in at_work)

    def _abandon_call(self, call: _ReadCall) -> None:
        if call.clock is None:
            call.dropped = True
        else:
            call.hung = True
            self._hung += 1
            self._hung_files[call.file] = self._hung_files.get(call.file, 0) + 1
        call.future.set_exception(
            StorageTimeout(f"The disk does not answer: nothing came within {self.deadline:g} seconds. {RECOVERY_HINT}")
        )
        call.future.exception()  # marks it as retrieved when the request has gone
        self._start_threads()

    def _start_threads(self) -> None:
        # A slow read does not block others, which may be of another disk: it does not count as one of
        # MAX_PARALLEL_READS.
        at_work = [call.clock.seconds() for call in self._calls.values() if call.clock is not None and not call.hung]
        stuck = self._hung + sum(seconds > SLOW_READ_SECONDS for seconds in at_work)
        while self._threads - stuck < min(self.at_once, len(self._calls)) and stuck < self.most_hung:
            self._threads += 1
            threading.Thread(target=self._run_thread, name=f"reader {self._threads}", daemon=True).start()

    def _run_thread(self) -> None:
        while (call := self._queue.get()) is not None:
            result, error = None, None
            if not call.dropped:
                with time_reads() as call.clock:
                    try:
                        result = call.work()
                    except Exception as problem:
                        error = problem
            try:
                call.loop.call_soon_threadsafe(self._finish_call, call, result, error)
            except RuntimeError:  # the loop is closed: the process ends
                return

    def _finish_call(self, call: _ReadCall, result: Any, error: Exception | None) -> None:
        if not call.dropped:
            self._last_end = time.monotonic()
        if call.hung:  # it ended after it was given up and replaced: this thread is surplus
            self._hung -= 1
            self._hung_files[call.file] -= 1
            if not self._hung_files[call.file]:
                del self._hung_files[call.file]
            self._threads -= 1
            self._queue.put(None)
        elif not call.future.done():
            if error is None:
                call.future.set_result(result)
            else:
                call.future.set_exception(error)
                call.future.exception()
