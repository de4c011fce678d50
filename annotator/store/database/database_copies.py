"""Complete copies of project.db, made by SQLite's online backup during other writes.

See https://www.sqlite.org/backup.html.
"""

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError, DiskFull
from annotator.progress_callbacks import ProgressCallback
from annotator.settings import Paths
from annotator.store.database import read_only
from annotator.store.database.arrays import remove_unfinished_files, replace_file_atomically

PAGES_PER_STEP = 4096  # copied between two calls of the progress
COPIES_PER_REASON = 3  # copies of one reason
NANOSECOND_DIGITS = 9  # the digits of the nanoseconds in the name of a copy
RESERVED_BYTES = 100_000_000  # bytes that stay free
COPIES_FOLDER = "copies"


def copy_database(source: Path, target: Path, progress: ProgressCallback | None = None) -> None:
    """Write a consistent, synced copy of a database.

    Args:
        progress: Called with (pages done, total). Its exceptions stop the copy.

    Raises:
        DiskFull, sqlite3.DatabaseError: The copy failed.
    """
    with (
        closing(_open_source(source.resolve())) as opened,
        closing(sqlite3.connect(target)) as written,
    ):
        # One read transaction: without it, a write of another process makes the backup begin again, and beside people
        # who decide every second that of a large file would never end.
        opened.execute("BEGIN")
        opened.execute("SELECT count(*) FROM sqlite_master").fetchone()
        opened.backup(
            written, pages=PAGES_PER_STEP, progress=lambda _, left, of: progress(of - left, of) if progress else None
        )
        written.execute("PRAGMA journal_mode = DELETE")


def query_copy(database: Path, queries: Mapping[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    """Return rows by query name, from a copy of a database of any version. Raises AnnotatorError if it is damaged."""
    with tempfile.TemporaryDirectory() as place:
        for name in (database.name, f"{database.name}-wal"):
            if database.with_name(name).exists():
                shutil.copyfile(database.with_name(name), Path(place) / name)
        try:
            with closing(sqlite3.connect(Path(place) / database.name)) as sql:
                damaged = sql.execute("PRAGMA integrity_check").fetchone() != ("ok",)
                rows = {name: sql.execute(query).fetchall() for name, query in queries.items()}
        except sqlite3.DatabaseError as error:
            raise AnnotatorError(f"{database} cannot be read: {error}") from error
    if damaged:
        raise AnnotatorError(f"{database} is damaged.")
    return rows


def create_next_stamp(before: Iterable[str]) -> str:
    """Return a timestamp name that sorts after all of these."""
    stamp = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{time.time_ns() % 10**9:09}"
    newest = max(before, default="")
    if stamp > newest:
        return stamp
    head, _, number = newest.rpartition("-")
    has_room = len(number) == NANOSECOND_DIGITS and number.isdecimal() and set(number) != {"9"}
    return f"{head}-{int(number) + 1:0{NANOSECOND_DIGITS}}" if has_room else f"{newest}0"


def _open_source(source: Path) -> sqlite3.Connection:
    paths = Paths(source.parent, source.name)
    if read_only.is_read_only(paths):  # beside which SQLite cannot make the files that it wants even to read
        return read_only.connect(paths)
    return sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)


def check_free_space(folder: Path, size: int, purpose: str) -> None:
    """Raise DiskFull if `size` bytes plus RESERVED_BYTES do not fit in a folder."""
    free = shutil.disk_usage(folder).free
    if size + RESERVED_BYTES > free:
        raise DiskFull(
            f"{purpose} needs {size:,} bytes in {folder} besides the {RESERVED_BYTES:,} that stay free; {free:,} are "
            "free. Nothing was changed.\n    Free some space and try again."
        )


def keep_copy(database: Path, reason: str, progress: ProgressCallback | None = None) -> Path:
    """Write a copy to `copies/` before a change and return its path, or raise DiskFull and write nothing."""
    log = database.with_name(f"{database.name}-wal")
    size = database.stat().st_size + (log.stat().st_size if log.exists() else 0)
    check_free_space(database.parent, size, f"A copy of {database.name} before the {reason}")
    folder = database.parent / COPIES_FOLDER
    remove_unfinished_files(folder, ".*")
    before = [path.stem.removeprefix(f"{reason}-") for path in folder.glob(f"{reason}-*.db")]
    kept = folder / f"{reason}-{create_next_stamp(before)}.db"
    with replace_file_atomically(kept) as temporary:
        temporary.touch(0o600)
        copy_database(database, temporary, progress)
    for old in sorted(folder.glob(f"{reason}-*.db"))[:-COPIES_PER_REASON]:
        old.unlink(missing_ok=True)
    return kept
