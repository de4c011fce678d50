"""The end of the app's process: SIGTERM or Ctrl+C ends it within FORCED_EXIT_SECONDS, whatever hangs.

The server waits for requests in progress, and Python waits for threads. A thread that reads from a stalled disk lets
neither end. So the signal also starts a clock: after GRACE_SECONDS the last steps are taken without waiting for
requests, and after FORCED_EXIT_SECONDS the process exits. Each step is taken once, in the order of
`add_step`: the
worker ends first.
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

log = logging.getLogger("annotator.ending")


class Shutdown:
    """The last steps of one process, and the clock that forces its end."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []
        self._taking = threading.Lock()
        self._finished = threading.Event()
        self._begun = threading.Event()

    def add_step(self, step: Callable[[], None]) -> None:
        """Add a step to take at the end, after those added before.

        A step that raises is logged, and the next one is taken.
        """
        self._steps.append(step)

    def run_steps(self) -> None:
        """Take all steps that have not been taken, and return when they are done."""
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
        """Let SIGINT and SIGTERM also start the clock during the block; do nothing outside the main thread."""
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
        """Start the clock, once."""
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
