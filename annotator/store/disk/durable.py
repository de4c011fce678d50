"""Creation and syncing of files and folders so that their names survive a power cut."""

import errno
import os
from pathlib import Path

from annotator.store.disk.system_calls import sync_all_disks

# files that are synced one by one; with more, everything unwritten on the machine is synced
MAX_FILES_SYNCED_SINGLY = 200
UNSUPPORTED_SYNC_ERRNOS = (errno.EINVAL, errno.ENOTSUP)  # some network disks sync no folders


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Create a folder with these permissions, and its parents, durably."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode, exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder."""
    if os.name == "nt":  # folders cannot be opened there
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder that may be entered but not listed
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in UNSUPPORTED_SYNC_ERRNOS:
            raise
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Sync all names and file contents below a folder."""
    names = [(Path(place), files) for place, _, files in os.walk(folder)]
    if sum(len(files) for _, files in names) > MAX_FILES_SYNCED_SINGLY and sync_all_disks():
        return
    for place, files in names:
        for name in files:
            if not (place / name).is_symlink():
                sync_file(place / name)
        sync_folder(place)


def sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
