"""Counting the steps of a process that change a disk, and killing it before a given step: for tests and measurements.

A step is a file that is opened for writing, renamed, linked or removed, a folder that is made or removed, or a
statement of SQLite that begins, changes or commits.
"""

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
    """Count this process's steps, and kill the process before a given one.

    Attributes:
        count: The steps so far.
        turns: The numbers of the steps that rename something, remove a folder or commit.

    Args:
        last: The step before which the process is killed; 0: none.
    """

    def __init__(self, last: int = 0):
        self.count, self._last = 0, last
        self.turns: list[int] = []
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Start counting; counting goes on until the process ends."""
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
