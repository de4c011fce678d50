"""Loads sqlite_utils without pandas, which it would import to know the type of its dates: none is ever stored here.

The package imports this first, so that no command waits for pandas (0.2 of 0.6 s) and the worker does not hold it.
"""

import importlib
import sys
import threading
from importlib.abc import MetaPathFinder


class _Hidden(MetaPathFinder):
    """Finds that there is no pandas, for the thread that made it only."""

    def __init__(self):
        self._thread = threading.get_ident()

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas" and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(fullname, name=fullname)


_hidden = _Hidden()
sys.meta_path.insert(0, _hidden)
try:
    importlib.import_module("sqlite_utils")
finally:
    sys.meta_path.remove(_hidden)
