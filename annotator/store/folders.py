"""Folders whose names outlive a power cut: a file's name is on the disk once its folder was synced, not before."""

import errno
import os
from pathlib import Path

CANNOT = (errno.EINVAL, errno.ENOTSUP)  # some network disks sync no folders


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder with these rights, and those above it; after a power cut they are there."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode, exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names of a folder: a new file's content alone does not bring its name there."""
    if os.name == "nt":  # folders cannot be opened there
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # it may be entered and not listed
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in CANNOT:
            raise
    finally:
        os.close(descriptor)
