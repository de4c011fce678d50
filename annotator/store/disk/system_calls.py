"""File operations that macOS or Windows lack. Each does without or returns False."""

import ctypes
import mmap
import os
from pathlib import Path

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


def exchange_names(one: Path, other: Path) -> bool:
    """Exchange two names in one step (Linux)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or an old one
        return False
    return rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0


def reserve_file_bytes(descriptor: int, size: int) -> bool:
    """Give an open file `size` bytes on the disk, or raise OSError (Linux)."""
    if not hasattr(os, "posix_fallocate"):
        return False
    os.posix_fallocate(descriptor, 0, size)
    return True


def sync_all_disks() -> bool:
    """Sync all unwritten files of the machine (Linux, macOS)."""
    if not hasattr(os, "sync"):
        return False
    os.sync()
    return True


def release_mapped_pages(mapped: mmap.mmap) -> None:
    """Release a mapped file's memory pages (Linux, macOS)."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
