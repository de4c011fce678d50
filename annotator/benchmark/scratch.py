"""Temporary folders and progress lines of all benchmarks."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from annotator.store.disk.file_permissions import get_user_id

FOLDER_PREFIX = "annotator-bench-"
# held by the process that the folder belongs to; the system lets go of it however that process ends
LOCK_FILE = ".in-use"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a temporary folder, after deleting those of this user's killed benchmarks."""
    _delete_leftover_folders(Path(tempfile.gettempdir()))
    folder, lock = _take_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)  # Windows deletes no file that is open, such as the lock


def print_progress(text: str) -> None:
    """Print a line to standard error, because standard output is for the result."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _take_folder() -> tuple[Path, FileLock]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
        lock = FileLock(folder / LOCK_FILE)
        lock.acquire()
        if (folder / LOCK_FILE).exists():
            return folder, lock
        lock.release()  # another benchmark that has just begun took the folder for a leftover


def _delete_leftover_folders(place: Path) -> None:
    for folder in place.glob(f"{FOLDER_PREFIX}*"):
        try:
            facts = folder.lstat()
            if folder.is_symlink() or facts.st_uid != get_user_id() or not (folder / LOCK_FILE).exists():
                continue
            with FileLock(folder / LOCK_FILE, timeout=0):
                shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(folder, ignore_errors=True)
        except (OSError, Timeout):  # in use, or gone meanwhile
            continue
