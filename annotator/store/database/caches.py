"""Values that one open project keeps in memory, made from its files and decisions, in tables of bounded size.

Every `Database` has its own `Caches`, so that two projects in one process never mix, and closing one frees its memory.
Values that depend on no project are cached where they are computed: colour profiles, the kind of an image file,
statistics.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")


class _Entry:
    """One value of a table, and whether it has been made."""

    def __init__(self):
        self.lock = threading.Lock()
        self.is_made = False
        self.value: Any = None


class Caches:
    """Named tables of values; safe to share between threads."""

    def __init__(self):
        self._lock = threading.Lock()
        self._tables: dict[str, OrderedDict[Hashable, _Entry]] = {}

    def get(self, table: str, key: Hashable, make: Callable[[], Value], size: int) -> Value:
        """Return the value of a key, made first where the table has none; the table keeps the `size` values used last.

        Args:
            table: The name of the table.
            key: Names everything that the value depends on: a version, a file's time.
            make: Called by one thread at a time; its exceptions are raised here, and the next call tries again.
            size: The most values that the table keeps.
        """
        with self._lock:
            entries = self._tables.setdefault(table, OrderedDict())
            entry = entries.setdefault(key, _Entry())
            entries.move_to_end(key)
            while len(entries) > size:
                entries.popitem(last=False)
        with entry.lock:
            if not entry.is_made:
                entry.value = make()
                entry.is_made = True
            return entry.value

    def count(self) -> int:
        """Return the number of values in all tables."""
        with self._lock:
            return sum(entry.is_made for entries in self._tables.values() for entry in entries.values())

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._tables.clear()
