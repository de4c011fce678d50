"""Temporary SQLite files, and untrusted foreign ones opened read-only."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.store.disk.open_files import open_file

Connection = sqlite3.Connection
Row = sqlite3.Row
SQLITE_MAGIC = b"SQLite format 3\0"
MAX_VALUE_BYTES = 1 << 20
MAX_TABLES = 1000
CACHE_KB = 64_000
_ALLOWED_ACTIONS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
_ALLOWED_FUNCTIONS = ("count", "max", "min")


def open_temporary() -> Connection:
    """Return a new database for any thread, deleted when closed."""
    sql = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{CACHE_KB}"):
        sql.execute(f"PRAGMA {pragma}")
    return sql


@contextmanager
def open_read_only(path: Path, description: str) -> Generator[Connection]:
    """Yield a connection to a foreign SQLite file.

    Args:
        description: The expected file, for messages.

    Raises:
        AnnotatorError: Unreadable, damaged or not SQLite.
    """
    try:
        with open_file(path) as file:
            start = file.read(len(SQLITE_MAGIC))
    except OSError as error:
        raise AnnotatorError(f"{path} cannot be read: {error.strerror or error}.") from error
    if start != SQLITE_MAGIC:
        raise AnnotatorError(f"{path} is not {description}: it is no SQLite file. Was it copied as a whole?")
    try:
        with closing(_open_untrusted(path)) as sql:
            yield sql
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise AnnotatorError(
            f"{path} cannot be read as {description}: {error}. Was it copied while a program had it open? Close that "
            "program and copy it again."
        ) from error


def list_tables(sql: Connection) -> set[str]:
    """Return the names of the plain tables, without views and virtual tables."""
    listed = sql.execute(f"SELECT name, sql FROM sqlite_master WHERE type = 'table' LIMIT {MAX_TABLES}")
    return {name for name, made in listed if not str(made).upper().startswith("CREATE VIRTUAL")}


def _open_untrusted(path: Path) -> Connection:
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    sql = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    sql.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    sql.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for pragma in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON", "mmap_size = 0"):
        sql.execute(f"PRAGMA {pragma}")
    sql.text_factory = _decode_text
    sql.set_authorizer(_authorize)
    return sql


def _decode_text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_OK if second in _ALLOWED_FUNCTIONS else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED_ACTIONS and trigger is None else sqlite3.SQLITE_DENY
