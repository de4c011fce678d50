"""Size-bounded cache of fetched files and their copies, named by content.

Page and worker share one bound by a SQLite index. Space is reserved before writing, so a crash never leaves an
uncounted file. A returned file may be deleted soon, then callers must retry.
"""

import os
import re
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from annotator.errors import DiskFull
from annotator.store.database.project_identity import make_folder_in_project
from annotator.store.disk.file_permissions import OTHERS_PERMISSIONS

INDEX_FILE = "index.db"
PART_SUFFIX = ".part"
TOUCH_SECONDS = 60.0  # the time of the last use is kept this exactly
BUSY_TIMEOUT_SECONDS = 10.0
# bytes of the disk that the cache leaves for people's answers, as long as it holds anything
RESERVED_BYTES = 500_000_000

_NAME_PATTERN = re.compile(r"[0-9a-f]{64}[\w.-]*")
_SCHEMA_SQL = """
CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, bytes INTEGER NOT NULL, used REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS kept_by_use ON kept (used, name, bytes);
"""


class FileCache:
    """One project's cache of fetched files, safe across threads and processes (`most`: returns its limit in bytes)."""

    def __init__(self, folder: Path, most: Callable[[], int]):
        self.folder, self.most = folder, most
        self._threads = threading.local()
        self._remove_leftovers()

    def find(self, name: str) -> Path | None:
        """Return the path of a cached file and record its use, or None."""
        path, now = self._get_path(name), time.time()
        try:
            size = path.stat().st_size
        except OSError:
            return None
        try:
            row = self._get_connection().execute("SELECT bytes, used FROM kept WHERE name = ?", [name]).fetchone()
            if row is None or row[0] != size:  # it would not count, or a power cut has left a part of it
                return None
            if row[1] < now - TOUCH_SECONDS:
                self._get_connection().execute("UPDATE kept SET used = ? WHERE name = ?", [now, name])
        except sqlite3.OperationalError:  # the index is busy
            return path
        except sqlite3.DatabaseError:  # add() begins anew
            return None
        return path

    def add(self, name: str, content: bytes) -> Path:
        """Store a file atomically, evicting the least recently used ones, or raise DiskFull."""
        path = self._get_path(name)
        part = path.with_name(f".{name}.{secrets.token_hex(4)}{PART_SUFFIX}")
        try:
            make_folder_in_project(path.parent)
            try:
                self._reserve(name, len(content))
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                self._reset()
                make_folder_in_project(path.parent)
                self._reserve(name, len(content))
            part.write_bytes(content)
            part.replace(path)
        except (OSError, sqlite3.Error) as error:
            part.unlink(missing_ok=True)
            raise DiskFull(
                f"{path} could not be written: {error}.\n    Is the disk full, or the project folder write-protected? "
                "Free some space, or give the cache less of it, and try again."
            ) from error
        return path

    def measure_usage(self) -> tuple[int, int]:
        """Return the numbers of files and bytes."""
        if not (self.folder / INDEX_FILE).exists():
            return 0, 0
        return self._get_connection().execute("SELECT count(*), coalesce(sum(bytes), 0) FROM kept").fetchone()

    def shrink(self) -> None:
        """Evict least recently used files after the bound has changed."""
        if (self.folder / INDEX_FILE).exists():
            self._reserve("", 0)

    def _reserve(self, name: str, size: int) -> None:
        sql = self._get_connection()
        sql.execute("BEGIN IMMEDIATE")
        try:
            sql.execute("DELETE FROM kept WHERE name = ?", [name])
            held = sql.execute("SELECT coalesce(sum(bytes), 0) FROM kept").fetchone()[0]
            most = min(self.most(), held + shutil.disk_usage(self.folder).free - RESERVED_BYTES)
            surplus, gone = held + size - max(most, size), list[str]()
            for other, bytes_ in sql.execute("SELECT name, bytes FROM kept ORDER BY used"):
                if surplus <= 0:
                    break
                surplus -= bytes_
                gone.append(other)
            for other in gone:  # before the rows: a kill leaves rows that count too much, not too little
                if _NAME_PATTERN.fullmatch(other):
                    self._get_path(other).unlink(missing_ok=True)
            sql.executemany("DELETE FROM kept WHERE name = ?", [[other] for other in gone])
            if name:
                sql.execute("INSERT INTO kept VALUES (?, ?, ?)", [name, size, time.time()])
            sql.execute("COMMIT")
        except BaseException:
            sql.execute("ROLLBACK")
            raise

    def _get_path(self, name: str) -> Path:
        return self.folder / name[:2] / name

    def _get_connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._threads, "connection", None)
        if connection is None:
            make_folder_in_project(self.folder)
            file = self.folder / INDEX_FILE
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o777 & ~OTHERS_PERMISSIONS))
            connection = sqlite3.connect(file, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None)
            for pragma in ("journal_mode = WAL", "synchronous = OFF"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.executescript(_SCHEMA_SQL)
            self._threads.connection = connection
        return connection

    def _remove_leftovers(self) -> None:
        """Remove half-written files, or all files without a valid index."""
        if not self.folder.exists():
            return
        file = self.folder / INDEX_FILE
        try:
            if file.exists():
                with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as sql:
                    sql.execute("SELECT count(*) FROM kept").fetchone()
                parts = f"*/.*{PART_SUFFIX}"
            else:
                parts = "*/*"
        except sqlite3.OperationalError:  # another process makes it right now
            return
        except sqlite3.DatabaseError:
            self._reset()
            return
        self._delete(parts, 3600 if parts != "*/*" else 0)

    def _reset(self) -> None:
        if connection := getattr(self._threads, "connection", None):
            connection.close()
            self._threads.connection = None
        for part in (INDEX_FILE, f"{INDEX_FILE}-wal", f"{INDEX_FILE}-shm"):
            (self.folder / part).unlink(missing_ok=True)
        self._delete("*/*", 0)

    def _delete(self, files: str, seconds: float) -> None:
        """Delete cached files that match a glob pattern and are at least `seconds` old."""
        for file in self.folder.glob(files):
            name = file.name.lstrip(".")
            with suppress(OSError):
                is_own = _NAME_PATTERN.fullmatch(name) and file.parent.name == name[:2] and file.is_file()
                if is_own and file.stat().st_mtime <= time.time() - seconds:
                    file.unlink()
