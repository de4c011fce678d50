"""A disk that does not answer, without rights or tricks: whoever opens a file under another's lease has to wait."""

import contextlib
import fcntl
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path


@contextlib.contextmanager
def stalled(paths: Iterable[Path]) -> Iterator[Callable[[], set[Path]]]:
    """Within, opening any of these files takes as long as the kernel waits for a lease (45 seconds).

    Gives a function that says which of them somebody waits for.
    """
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # by which the kernel asks for a lease back
    held = {}
    try:
        for path in paths:
            held[path] = os.open(path, os.O_RDWR)
            fcntl.fcntl(held[path], fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield lambda: {path for path in held if fcntl.fcntl(held[path], fcntl.F_GETLEASE) != fcntl.F_WRLCK}
    finally:
        for descriptor in held.values():
            os.close(descriptor)
        signal.signal(signal.SIGIO, before)
