"""Stopping processes: this one when its parent ends and on signals, and a child with its own children."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Popen's creationflags that go with start_new_session, which Windows ignores: Ctrl+C is not for the child
OWN_GROUP_FLAGS: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
STOP_SECONDS = 10.0  # that a process may take to stop after the one that started it has ended


def watch_parent(stop: Callable[[], object], exit_seconds: float = STOP_SECONDS, exit_status: int = 1) -> None:
    """Start a thread that ends this process when its parent process ends.

    The parent holds the other end of standard input, which the system closes even after kill -9.

    Args:
        stop: Called at the end of standard input, to stop the rest of the process.
        exit_seconds: Seconds until the process exits if it has not stopped.
    """

    def wait_for_end() -> None:
        while os.read(0, 4096):  # sys.stdin would be locked by this thread when the process ends, which aborts it
            pass
        stop()
        time.sleep(exit_seconds)
        os._exit(exit_status)

    threading.Thread(target=wait_for_end, name="parent watch", daemon=True).start()


def send_stop_signal() -> None:
    """Send SIGTERM to this process."""
    if os.name == "nt":  # there os.kill would end the process at once
        signal.raise_signal(signal.SIGTERM)
    else:
        os.kill(os.getpid(), signal.SIGTERM)


def kill_process_group(process: subprocess.Popen[Any]) -> None:
    """Kill a child and all processes of its session, on Windows the child alone."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


@contextlib.contextmanager
def stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """Set `stop` on SIGINT or SIGTERM during the block. SIGINT after the first raises KeyboardInterrupt.

    Does nothing outside the main thread, where no handler can be set.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_asked = False

    def ask(number: int, _frame: object) -> None:
        nonlocal is_asked
        if is_asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        is_asked = True
        stop.set()

    before = {number: signal.signal(number, ask) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)  # None: set by code that is not Python
