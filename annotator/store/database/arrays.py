"""Arrays on disk: written under another name, then renamed, so that a reader finds a whole file or none.

The probabilities of a run are one .npy (N, C) float16 that the page maps into memory. Features are in files of their
own kind (features/).
"""

import mmap
import os
import tempfile
import zipfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from tokenize import TokenError

import numpy as np
from numpy.typing import DTypeLike

from annotator.errors import DiskFull
from annotator.store.database.project_identity import make_folder_in_project
from annotator.store.disk.durable import sync_folder
from annotator.store.disk.processes import build_temporary_path, is_abandoned
from spmll.rows import Rows

CHUNK_ROWS = 16_384  # written at once
MIN_SCRATCH_FILE_BYTES = 32_000_000  # bytes from which on a scratch array is a file


@contextmanager
def replace_file_atomically(target: Path, *, sync: bool = True) -> Generator[Path]:
    """Yield a temporary path in the target's folder that becomes the target when the block ends well.

    Args:
        target: The path of the finished file.
        sync: Whether to wait until the new name is on the disk. With False, a power cut may take the target away, but
            never leaves parts of it: for files that are made again when missing, and for all but the last of several
            files of one folder.

    Raises:
        DiskFull: The disk takes no more; the temporary file is removed, the old target stays as it was.
    """
    temporary = build_temporary_path(target)
    try:
        make_folder_in_project(target.parent)
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


def remove_unfinished_files(folder: Path, pattern: str = "**/.*", *, exclusive: bool = False) -> None:
    """Remove the unfinished files that killed processes have left in a folder.

    Args:
        folder: The folder; it may be missing.
        pattern: A glob pattern for the beginning of their names; by default all of them, at any depth.
        exclusive: Nobody else writes there: remove all of them, whoever wrote them.
    """
    for part in [*folder.glob(f"{pattern}.part"), *folder.glob(f"{pattern}.part-*")] if folder.exists() else ():
        with suppress(OSError):
            if exclusive or is_abandoned(part):
                part.unlink()


def save_array(path: Path, array: np.ndarray, *, sync: bool = True) -> None:
    """Write an array as one .npy; sync as in `replacing`. Raises DiskFull."""
    with replace_file_atomically(path, sync=sync) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def save_rows(path: Path, rows: Rows, dtype: type, *, sync: bool = True) -> None:
    """Write rows (spmll.rows.Rows) as one .npy of type `dtype`; sync as in `replacing`. Raises DiskFull.

    CHUNK_ROWS rows are read at a time, so that memory does not grow with their number.
    """
    # Written, not mapped: pages of a mapped file count as memory of the process, and a full disk ends it with SIGBUS.
    with replace_file_atomically(path, sync=sync) as temporary, temporary.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": rows.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(rows), CHUNK_ROWS):
            file.write(np.ascontiguousarray(rows[start : start + CHUNK_ROWS], dtype).data)


def create_scratch_array(folder: Path, shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray:
    """Return a new array of zeros for large data that is seldom used: a mapped file without a name.

    The file is gone with the array. The system writes it out and takes its memory back when it needs that. Small
    arrays, and all where the disk has no room for them or the system offers no such files, are ordinary memory.
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    if size >= MIN_SCRATCH_FILE_BYTES and hasattr(os, "posix_fallocate"):
        with suppress(OSError):
            make_folder_in_project(folder)
            with tempfile.TemporaryFile(dir=folder) as file:
                os.posix_fallocate(file.fileno(), 0, size)  # or a full disk would end the process with SIGBUS
                return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)
    return np.zeros(shape, dtype)


def open_array(path: Path, dtype: DTypeLike | None = None, dimensions: int | None = None) -> np.ndarray:
    """Map one .npy into memory, read-only.

    Args:
        path: The .npy file.
        dtype: The type that the array must have; None: any.
        dimensions: The number of dimensions that it must have; None: any.

    Raises FileNotFoundError, or ValueError for a damaged file and one that holds something else.
    """
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (EOFError, TypeError, SyntaxError, OverflowError, TokenError, RecursionError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is empty or damaged ({error})") from error  # what numpy says of an odd header
    if (dtype is not None and array.dtype != dtype) or dimensions not in (None, array.ndim):
        raise ValueError(f"{path} holds {array.dtype} {array.shape}")
    return array


def release_pages(array: object) -> None:
    """Release the memory pages of a mapped array, so that they no longer count for this process; its values stay.

    The pages stay in the system's cache, from where they are mapped again when they are next read. Does nothing for an
    array that is not mapped.
    """
    base = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    if base is not None and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)
