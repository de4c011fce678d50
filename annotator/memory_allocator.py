"""Limits for the C library's memory allocator (glibc), which keeps much of what a process has freed."""

import contextlib
import ctypes

_M_ARENA_MAX = -8  # of malloc.h
MAX_ARENAS = 2


def limit_memory_arenas() -> None:
    """Limit glibc to two heaps, because one per thread makes memory grow for an hour. Call before threads start."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # other systems, other C libraries
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, MAX_ARENAS)


def release_freed_memory() -> None:
    """Return freed memory to the system, which Linux's C library keeps otherwise."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # other systems, other C libraries
        ctypes.CDLL(None).malloc_trim(0)
