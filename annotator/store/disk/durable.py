"""Making file and folder names durable: a name survives a power cut once its parent folder is synced."""

import errno
import os
from pathlib import Path

CANNOT = (errno.EINVAL, errno.ENOTSUP)  # some network disks sync no folders


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder with these permissions, and its parents, durably."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode, exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; syncing a file's content does not include its name."""
    if os.name == "nt":  # folders cannot be opened there
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder that may be entered but not listed
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in CANNOT:
            raise
    finally:
        os.close(descriptor)
