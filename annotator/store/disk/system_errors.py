"""Messages for system errors, such as full disks, unwritable places, invalid names and missing packages."""

import errno
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from annotator.errors import AnnotatorError, DiskFull
from annotator.training_extra import TRAINING_MODULES, build_training_error, find_missing_training_modules

DISK_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NOT_PERMITTED_ERRNOS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
UNUSABLE_PATH_ERRNOS = frozenset(
    {errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EIO, errno.ESTALE, errno.EINVAL}
)


def translate_error(error: BaseException) -> AnnotatorError | None:
    """Return the user error for a system error, or None for a programming error."""
    if isinstance(error, AnnotatorError):
        return error
    if isinstance(error, ModuleNotFoundError) and error.name in TRAINING_MODULES:
        return build_training_error(find_missing_training_modules() or [error.name])
    if isinstance(error, sqlite3.DatabaseError):
        return translate_sqlite_error(error, None)
    if isinstance(error, UnicodeEncodeError) and any("\ud800" <= letter <= "\udfff" for letter in error.object):
        return AnnotatorError(
            f"The name {error.object[:300]!a} has bytes that are no text in UTF-8, and what was asked for cannot be "
            "done with it. Rename the file or folder, and try again."
        )
    if isinstance(error, ValueError) and "null byte" in str(error):
        return AnnotatorError("A path has a zero byte in it, which no file has. Is the path spelled right?")
    if isinstance(error, OSError):
        return _translate_os_error(error)
    return None


def translate_sqlite_error(
    error: sqlite3.DatabaseError, path: Path | None, busy_seconds: float = 30.0
) -> AnnotatorError | None:
    """Return the user error for an SQLite error, or None for a programming error."""
    text, file = str(error), path or "A file of the project"
    if "disk is full" in text or "disk I/O" in text:
        return DiskFull(
            f"{file} could not be written: {text}. Nothing of this step was kept; everything saved before is safe.\n"
            "    Free some space on this disk and try again."
        )
    if "not a database" in text or "malformed" in text:
        return AnnotatorError(
            f"{file} cannot be read as a project: {text}.\n"
            "    Is it another kind of file, or damaged? Restore it from a copy, or make a new project beside it."
        )
    if "locked" in text:
        return AnnotatorError(
            f"{file} stayed locked by another process for {busy_seconds:.0f} seconds. Try again; if it stays so, look "
            "for a program that keeps the file open (a database browser, a backup)."
        )
    if "unable to open" in text:
        return AnnotatorError(f"{file} cannot be opened: {text}. Check the rights on the folder and the file.")
    if "readonly" in text:
        return AnnotatorError(f"{file} may not be written: {text}. Check the rights on the folder and the file.")
    return None


def _translate_os_error(error: OSError) -> AnnotatorError | None:
    named = [name for name in (error.filename, error.filename2) if name is not None]
    where = " and ".join(repr(os.fsdecode(name)) if isinstance(name, bytes) else str(name) for name in named)
    if error.errno in DISK_FULL_ERRNOS:
        return DiskFull(
            f"{where or 'A file'} could not be written: {error.strerror}. Nothing of this step was kept; everything "
            "saved before is safe.\n    Free some space on this disk and try again."
        )
    if not where:
        return None
    if error.errno in NOT_PERMITTED_ERRNOS:
        return AnnotatorError(
            f"{where} may not be read or written: {error.strerror}. It is on read-only media, or belongs to somebody "
            "else.\n    Check the rights on the file and its folder, or name another place."
        )
    if error.errno in UNUSABLE_PATH_ERRNOS:
        return AnnotatorError(f"{where} cannot be used: {error.strerror}. Is the path spelled right?")
    return None


@contextmanager
def translate_system_errors() -> Generator[None]:
    """Convert system errors in the block to AnnotatorError."""
    try:
        yield
    except Exception as error:
        words = translate_error(error)
        if words is None or words is error:
            raise
        raise words from error
