"""Opening a project on read-only media or in a foreign folder, without writing files.

SQLite's "immutable" mode (https://www.sqlite.org/uri.html) ignores a write-ahead log.
"""

import os
import sqlite3
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.settings import Paths

COPY_ADVICE = "Copy the whole folder to a place that may be written, and use the copy."


def database_exists(paths: Paths) -> bool:
    """Return whether there is a database, or raise AnnotatorError without permission."""
    try:
        paths.database.stat()
    except PermissionError as error:
        raise AnnotatorError(
            f"The project {paths.project} may not be opened: its folder belongs to somebody else."
        ) from error
    except OSError:
        return False
    return True


def is_read_only(paths: Paths) -> bool:
    """Return whether a database exists that cannot be written."""
    return database_exists(paths) and not (can_write(paths.project) and can_write(paths.database))


def can_write(path: Path) -> bool:
    """Return whether the effective user may write the path."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def build_write_error(paths: Paths) -> AnnotatorError:
    """Return the error to raise when a read-only project would be written."""
    return AnnotatorError(
        f"The project {paths.project} may not be written: it is on read-only media, or belongs to somebody else. "
        f"Nothing was changed.\n    {COPY_ADVICE}"
    )


def connect(paths: Paths) -> sqlite3.Connection:
    """Open a read-only connection, or raise AnnotatorError if a write-ahead log holds changes it cannot read."""
    log = paths.database.with_name(f"{paths.database.name}-wal")
    if not log.exists():
        return _open_connection(paths.database, "immutable=1")
    try:
        return _open_connection(paths.database, "mode=ro")
    except sqlite3.OperationalError as error:
        if log.stat().st_size:
            raise AnnotatorError(
                f"{log} holds changes that are not in {paths.database.name} yet (was the project copied while it was "
                f"open?), and they cannot be read in a folder that may not be written.\n    {COPY_ADVICE}"
            ) from error
        return _open_connection(paths.database, "immutable=1")


def _open_connection(database: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{database.as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection
