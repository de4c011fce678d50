"""Test tool that kills a process before a given disk change."""

import os
import signal
import sqlite3
import sys
import threading
from typing import Any

CHANGE_EVENTS = (
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "sqlite3.connect",
)
WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT
WRITE_STATEMENTS = ("BEGIN", "COMMIT", "INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "ALTER", "DROP")
_connect = sqlite3.connect


class StepCounter:
    """A counter of disk changes that kills the process before one.

    Attributes:
        turns: Numbers of the steps that rename, remove a folder or commit.

    Args:
        last: The step to kill before, 0 for none.
    """

    def __init__(self, last: int = 0):
        self.count, self._last = 0, last
        self.turns: list[int] = []
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Count steps until the process ends."""
        sys.addaudithook(self._count_event)
        sqlite3.connect = self._connect_traced

    def _count_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGE_EVENTS or (event == "open" and _opens_for_writing(*arguments)):
            self._count_step(event in ("os.rename", "os.rmdir"))

    def _connect_traced(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = _connect(*arguments, **options)
        connection.set_trace_callback(self._count_statement)
        return connection

    def _count_statement(self, text: str) -> None:
        if text.lstrip().upper().startswith(WRITE_STATEMENTS):
            self._count_step(text.lstrip().upper().startswith("COMMIT"))

    def _count_step(self, is_turn: bool) -> None:
        with self._lock:
            self.count += 1
            if is_turn:
                self.turns.append(self.count)
            if self.count == self._last:
                os.kill(os.getpid(), signal.SIGKILL)


def _opens_for_writing(path: object, _: object, flags: object) -> bool:
    return not isinstance(path, int) and isinstance(flags, int) and bool(flags & WRITE_FLAGS)
