"""Opening untrusted paths on disks that may hang: only regular files, and a clock per thread allows to give up."""

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
    """A pipe, device, socket or folder instead of a regular file."""


def open_file(path: str | Path) -> BufferedReader:
    """Open a regular file for reading, or raise NotARegularFile or OSError."""
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
    """Return a regular file's content, or None if it is larger than `max_bytes` or shrinks."""
    descriptor, size = _open_descriptor(path)
    try:
        content = os.read(descriptor, size) if size <= max_bytes else b""
        return content if len(content) == size else None
    finally:
        os.close(descriptor)


def _open_descriptor(path: str | Path) -> tuple[int, int]:
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
    """A stopwatch for the current read of one thread."""

    def __init__(self) -> None:
        self._since: float | None = time.monotonic()

    def seconds(self) -> float:
        """Return the seconds of the current read, 0 between reads."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    @contextlib.contextmanager
    def pause(self) -> Generator[None]:
        """Stop the clock during the block, then restart from 0."""
        before, self._since = self._since, None
        try:
            yield
        finally:
            self._since = None if before is None else time.monotonic()

    @contextlib.contextmanager
    def restart(self) -> Generator[None]:
        """Run the clock from 0 during the block, also if paused."""
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
    """Return this thread's clock, or an unused one outside `time_reads`."""
    return getattr(_thread, "clock", None) or ReadClock()
