"""Opening files that may be anything, on disks that may not answer.

A file is opened without waiting (O_NONBLOCK) and must be a regular one: a named pipe in the place of a photo would
block its reader for ever. A thread's clock measures how long its current read takes, so that the caller that waits for
the thread can give up; the clock stops while the thread waits for memory or decodes.
"""

import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Generator
from io import BufferedReader
from pathlib import Path

LEASE_POLL_SECONDS = 0.02  # between two attempts to open a file that another program holds a lease on

_thread = threading.local()


class NotARegularFile(OSError):
    """A pipe, device, socket or folder where a regular file was expected."""


def open_file(path: str | Path) -> BufferedReader:
    """Open a regular file for reading. Raises NotAFile for anything else, OSError when it cannot be opened."""
    # Also asked before: opening a device can have effects.
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - quicker than a Path
        raise NotARegularFile(errno.EINVAL, "not a file", str(path))
    descriptor, _ = _open_descriptor(path)
    try:
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_file(path: str, max_bytes: int) -> bytes | None:
    """Return the content of a regular file; None where it is larger than `most` bytes or becomes shorter meanwhile.

    It takes as few system calls as possible: at each of them a thread may wait for others. Raises as open_file.
    """
    descriptor, size = _open_descriptor(path)
    try:
        content = os.read(descriptor, size) if size <= max_bytes else b""
        return content if len(content) == size else None
    finally:
        os.close(descriptor)


def _open_descriptor(path: str | Path) -> tuple[int, int]:
    """Return an open descriptor of a regular file, and its size in bytes. Raises as open_file."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    while True:
        try:
            descriptor = os.open(path, flags)
            break
        except BlockingIOError:  # Samba or an NFS server holds a lease; the kernel has asked for it back
            time.sleep(LEASE_POLL_SECONDS)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise NotARegularFile(errno.EINVAL, "not a file", str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, facts.st_size


class ReadClock:
    """A stopwatch of one thread's current read."""

    def __init__(self) -> None:
        self._since: float | None = time.monotonic()

    def seconds(self) -> float:
        """Return the seconds since the current read began; 0 while the thread does not read."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    @contextlib.contextmanager
    def pause(self) -> Generator[None]:
        """Stop the clock during the block; after the block a new read begins."""
        before, self._since = self._since, None
        try:
            yield
        finally:
            self._since = None if before is None else time.monotonic()

    @contextlib.contextmanager
    def restart(self) -> Generator[None]:
        """Let the clock run during the block, starting at 0, also inside a `stopped` block."""
        before, self._since = self._since, time.monotonic()
        try:
            yield
        finally:
            self._since = None if before is None else time.monotonic()


@contextlib.contextmanager
def time_reads() -> Generator[ReadClock]:
    """Give this thread a new clock for the block."""
    _thread.clock = ReadClock()
    try:
        yield _thread.clock
    finally:
        del _thread.clock


def get_clock() -> ReadClock:
    """Return the clock of this thread; outside of a `timed` block, a new clock without effect."""
    return getattr(_thread, "clock", None) or ReadClock()
