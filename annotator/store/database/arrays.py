"""Arrays on disk, written to a temporary file and renamed so that readers never see partial files."""

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
from annotator.store.disk.system_calls import release_mapped_pages, reserve_file_bytes
from spmll.rows import Rows

CHUNK_ROWS = 16_384  # written at once
MIN_SCRATCH_FILE_BYTES = 32_000_000  # bytes from which on a scratch array is a file


@contextmanager
def replace_file_atomically(target: Path, *, sync: bool = True) -> Generator[Path]:
    """Yield a temporary path that becomes the target when the block succeeds.

    Args:
        sync: Whether the new name survives a power cut. False is for files that can be recreated.

    Raises:
        DiskFull: The old target stays unchanged.
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
    """Remove unfinished files of killed processes from a folder, if it exists.

    Args:
        exclusive: No other process writes there.
    """
    for part in [*folder.glob(f"{pattern}.part"), *folder.glob(f"{pattern}.part-*")] if folder.exists() else ():
        with suppress(OSError):
            if exclusive or is_abandoned(part):
                part.unlink()


def save_array(path: Path, array: np.ndarray, *, sync: bool = True) -> None:
    """Write an array as .npy atomically, or raise DiskFull."""
    with replace_file_atomically(path, sync=sync) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def save_rows(path: Path, rows: Rows, dtype: type, *, sync: bool = True) -> None:
    """Write rows as .npy atomically in chunks of CHUNK_ROWS, or raise DiskFull."""
    # Written, not mapped: pages of a mapped file count as memory of the process, and a full disk ends it with SIGBUS.
    with replace_file_atomically(path, sync=sync) as temporary, temporary.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": rows.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(rows), CHUNK_ROWS):
            file.write(np.ascontiguousarray(rows[start : start + CHUNK_ROWS], dtype).data)


def create_scratch_array(folder: Path, shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray:
    """Return an array of zeros in an unnamed mapped file, which the system can page out, or else in memory."""
    size = prod(shape) * np.dtype(dtype).itemsize
    if size >= MIN_SCRATCH_FILE_BYTES:
        with suppress(OSError):
            make_folder_in_project(folder)
            with tempfile.TemporaryFile(dir=folder) as file:
                # Without reserved bytes a full disk would end the process with SIGBUS.
                if reserve_file_bytes(file.fileno(), size):
                    return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)
    return np.zeros(shape, dtype)


def open_array(path: Path, dtype: DTypeLike | None = None, dimensions: int | None = None) -> np.ndarray:
    """Map a .npy file read-only. Raises ValueError if it is damaged or its dtype or dimensions differ."""
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (EOFError, TypeError, SyntaxError, OverflowError, TokenError, RecursionError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is empty or damaged ({error})") from error  # what numpy says of an odd header
    if (dtype is not None and array.dtype != dtype) or dimensions not in (None, array.ndim):
        raise ValueError(f"{path} holds {array.dtype} {array.shape}")
    return array


def release_pages(array: object) -> None:
    """Release the memory pages of a mapped array, which stay in the system's cache."""
    base = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    if base is not None:
        release_mapped_pages(base)
