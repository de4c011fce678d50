"""In-memory caches of one open project, in tables of limited size, freed when it is closed."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")


class _Entry:
    """A cached value, and whether it is computed."""

    def __init__(self):
        self.lock = threading.Lock()
        self.is_made = False
        self.value: Any = None


class Caches:
    """Named LRU tables of values, safe to share between threads."""

    def __init__(self):
        self._lock = threading.Lock()
        self._tables: dict[str, OrderedDict[Hashable, _Entry]] = {}

    def get(self, table: str, key: Hashable, make: Callable[[], Value], size: int) -> Value:
        """Return the value of a key, computed by `make` if missing.

        Args:
            key: Everything that the value depends on.
            make: Called by one thread at a time. Its exceptions are raised, not cached.
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

    def find(self, table: str, key: Hashable) -> Any:
        """Return the value of a key, or None if it was not computed."""
        with self._lock:
            entries = self._tables.get(table)
            entry = None if entries is None else entries.get(key)
            return entry.value if entry is not None and entry.is_made else None

    def count(self) -> int:
        """Count the values in all tables."""
        with self._lock:
            return sum(entry.is_made for entries in self._tables.values() for entry in entries.values())

    def clear(self) -> None:
        with self._lock:
            self._tables.clear()
