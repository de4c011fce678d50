"""The shutdown: a signal ends the process within FORCED_EXIT_SECONDS, even if threads hang.

After GRACE_SECONDS the last steps run without waiting for requests, once each and in order. The worker ends first.
"""

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from annotator.process_stop import STOP_SIGNALS

GRACE_SECONDS = 1.5  # for requests in progress
FORCED_EXIT_SECONDS = 4.5  # from the signal to the forced exit
# Names in a project's caches of the threads that import and export, if somebody has started one.
IMPORT_RUNNER_CACHE, EXPORT_RUNNER_CACHE = "importing", "exporting"

log = logging.getLogger("annotator.ending")


class Shutdown:
    """The steps to run before a process ends, and the timer that enforces its end."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []
        self._taking = threading.Lock()
        self._finished = threading.Event()
        self._begun = threading.Event()

    def add_step(self, step: Callable[[], None]) -> None:
        """Add a last step. Its errors are logged."""
        self._steps.append(step)

    def run_steps(self) -> None:
        with self._taking:
            while self._steps:
                step = self._steps.pop(0)
                try:
                    step()
                except Exception:
                    log.exception("a step at the end failed")
            self._finished.set()

    @contextlib.contextmanager
    def handle_signals(self) -> Iterator[None]:
        """Make SIGINT and SIGTERM start the clock (main thread only)."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[int, Any] = {number: signal.getsignal(number) for number in STOP_SIGNALS}

        def handle(number: int, frame: FrameType | None) -> None:
            self.start_clock(number)
            if callable(before[number]):
                before[number](number, frame)

        for number in STOP_SIGNALS:
            signal.signal(number, handle)
        try:
            yield
        finally:
            for number, handler in before.items():
                # A handler that was set meanwhile stays.
                if signal.getsignal(number) is handle:
                    signal.signal(number, handler)

    def start_clock(self, number: int) -> None:
        """Start the timers of late steps and forced exit, once."""
        if self._begun.is_set():
            return
        self._begun.set()
        # Daemon threads run on while Python waits for all others at its exit, so this clock ends that wait as well.
        threading.Thread(target=self._run_steps_late, name="last steps", daemon=True).start()
        threading.Thread(target=self._exit_late, args=[128 + number], name="forced end", daemon=True).start()

    def _run_steps_late(self) -> None:
        if not self._finished.wait(GRACE_SECONDS):
            self.run_steps()

    def _exit_late(self, status: int) -> None:
        limit = time.monotonic() + FORCED_EXIT_SECONDS
        self._finished.wait(FORCED_EXIT_SECONDS)
        time.sleep(max(0.0, min(GRACE_SECONDS, limit - time.monotonic())))
        os._exit(status)
