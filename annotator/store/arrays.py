"""Arrays on disk: written under another name, then renamed, so that a reader finds a whole file or none.

The probabilities of a run are one .npy (N, C) float16 that the page maps into memory. Features are in files of their
own kind (features/).
"""

import os
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from annotator.errors import DiskFull
from annotator.store.folders import sync_folder
from annotator.store.place import make_room


@contextmanager
def replacing(target: Path, *, sync: bool = True) -> Generator[Path]:
    """A temporary path in the target's folder that becomes the target when the block ends well.

    sync    False: after a power cut the target may be gone, but never in parts; for what is made again when it is
            missing, and for all but the last of several files of one folder

    Raises DiskFull when the disk takes no more; the temporary file is removed, the old target stays as it was.
    """
    temporary = target.parent / f".{target.name}.{uuid.uuid4().hex[:8]}.part"
    try:
        make_room(target.parent)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
        if sync:
            sync_folder(target.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise DiskFull(
            f"{target} could not be written: {error.strerror or error}. Nothing of it was kept"
            + ("; the file that was there before is as it was." if target.exists() else ".")
            + "\n    Is the disk full, or the folder write-protected? Free some space and try again."
        ) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sweep(folder: Path, older_than: float = 0.0, names: str = "**/.*") -> None:
    """Remove what killed processes were in the middle of writing in a folder.

    older_than    seconds; younger files may belong to a process at work
    names         how the temporary files begin (a glob pattern); all of them, at any depth, unless told otherwise
    """
    for part in folder.glob(f"{names}.part") if folder.exists() else ():
        with suppress(OSError):
            if time.time() - part.stat().st_mtime >= older_than:
                part.unlink()


def save_array(path: Path, array: np.ndarray, *, sync: bool = True) -> None:
    """Write one .npy; sync as in `replacing`. Raises DiskFull."""
    with replacing(path, sync=sync) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def open_array(path: Path) -> np.ndarray:
    """One .npy mapped into memory, read-only. Raises FileNotFoundError, or ValueError for a damaged file."""
    return np.load(path, mmap_mode="r", allow_pickle=False)
