"""The manifest of files fetched from an archive or remote source, so that fetching can resume.

A new version of a file is stored under another name ("aside") until the import runs, because the old one may be a
project image.
"""

import os
import sqlite3
import unicodedata
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from annotator.errors import AlreadyRunning
from annotator.store.disk.file_permissions import OTHERS_PERMISSIONS

MANIFEST_FILE = ".manifest.db"
LOCK_FILE = ".manifest.lock"
MANIFEST_FILES = (MANIFEST_FILE, f"{MANIFEST_FILE}-wal", f"{MANIFEST_FILE}-shm", LOCK_FILE)
# Where the file of an entry is: nowhere yet, under its name, aside, or nowhere yet while an older one has its name.
STATE_WANTED, STATE_PRESENT, STATE_ASIDE, STATE_WANTED_AGAIN = 0, 1, 2, 3
MAX_CACHED_FOLDERS = 10_000  # whose names are kept in memory
ENTRIES_PER_TRANSACTION = 500  # entries in one transaction: what a kill may have to fetch again

_SCHEMA_SQL = """
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- folded: two paths that some file system takes for one have the same; state: 0 wanted, 1 there, 2 aside,
-- 3 wanted again
-- pass: the last that met it
CREATE TABLE IF NOT EXISTS entry (key TEXT PRIMARY KEY, path TEXT NOT NULL, folded TEXT NOT NULL UNIQUE,
    bytes INTEGER NOT NULL, stamp TEXT NOT NULL, state INTEGER NOT NULL, pass INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entry_by_pass ON entry (pass, state);
CREATE INDEX IF NOT EXISTS entry_aside ON entry (key) WHERE state = 2;
"""


class Entry(NamedTuple):
    """One manifest entry: a file of an archive or remote source."""

    # name in the source
    key: str
    # path in the folder
    path: str
    # -1 if unknown
    bytes: int
    # changes with the content, such as a checksum
    stamp: str
    # one of the STATE constants
    state: int

    @property
    def is_wanted(self) -> bool:
        """Return whether the entry's current file is still to be fetched."""
        return self.state in (STATE_WANTED, STATE_WANTED_AGAIN)


class Manifest:
    """The stored list of the files of one source folder (manifest), for use by one thread.

    A pass is one listing of the source.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        file = folder / MANIFEST_FILE
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o777 & ~OTHERS_PERMISSIONS))
        self._sql = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):
            self._sql.execute(f"PRAGMA {pragma}").fetchall()
        self._sql.executescript(_SCHEMA_SQL)
        self._pass = int(self.get_fact("pass") or 0)
        self._waiting = 0
        self._folders: dict[str, str] = {}  # as a source names them -> as they are called here

    def get_fact(self, name: str) -> str:
        """Return a stored property of the archive or remote source, or "" if missing."""
        row = self._sql.execute("SELECT value FROM fact WHERE name = ?", [name]).fetchone()
        return row[0] if row else ""

    def set_fact(self, name: str, value: str) -> None:
        self._sql.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", [name, value])

    def begin_pass(self) -> None:
        """Start a new listing of the source's files, in which no entry has been seen."""
        self._pass += 1
        self.set_fact("pass", str(self._pass))

    def get_entry(self, key: str) -> Entry | None:
        row = self._sql.execute("SELECT key, path, bytes, stamp, state FROM entry WHERE key = ?", [key]).fetchone()
        return Entry(*row) if row else None

    def is_seen(self, key: str) -> bool:
        row = self._sql.execute("SELECT pass FROM entry WHERE key = ?", [key]).fetchone()
        return bool(row) and row[0] == self._pass

    def find_free_path(self, key: str, path: str) -> str:
        """Return a path for an entry, with ~2, ~3, ... added on collisions."""
        above, _, name = path.rpartition("/")
        path = f"{self._find_free_folder(above)}/{name}" if above else name
        stem, dot, ending = path.rpartition(".")
        if not dot or "/" in ending or not stem or stem.endswith("/"):
            stem, ending = path, ""
        number, candidate = 1, path
        while self._find_holder(candidate) not in (None, key) or self._is_folder(candidate):
            number += 1
            candidate = f"{stem}~{number}{dot}{ending}" if ending else f"{path}~{number}"
        return candidate

    def _find_free_folder(self, path: str) -> str:
        if path not in self._folders:
            above, _, name = path.rpartition("/")
            wanted = candidate = f"{self._find_free_folder(above)}/{name}" if above else name
            number = 1
            while self._find_holder(candidate) is not None:
                number += 1
                candidate = f"{wanted}~{number}"
            if len(self._folders) >= MAX_CACHED_FOLDERS:
                self._folders.clear()
            self._folders[path] = candidate
        return self._folders[path]

    def _is_folder(self, path: str) -> bool:
        folded = _fold_path(path)
        query = "SELECT 1 FROM entry WHERE folded > ? AND folded < ? LIMIT 1"
        return self._sql.execute(query, [f"{folded}/", f"{folded}0"]).fetchone() is not None  # 0 comes after /

    def save_entry(self, entry: Entry) -> None:
        """Store an entry as seen, in transactions of ENTRIES_PER_TRANSACTION."""
        if not self._waiting:
            self._sql.execute("BEGIN")
        self._sql.execute(
            """INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET path = excluded.path,
            folded = excluded.folded, bytes = excluded.bytes, stamp = excluded.stamp, state = excluded.state,
            pass = excluded.pass""",
            [entry.key, entry.path, _fold_path(entry.path), entry.bytes, entry.stamp, entry.state, self._pass],
        )
        self._waiting += 1
        if self._waiting >= ENTRIES_PER_TRANSACTION:
            self.commit()

    def commit(self) -> None:
        if self._waiting:
            self._sql.execute("COMMIT")
            self._waiting = 0

    def list_waiting(self, limit: int, after: str) -> list[Entry]:
        """Return this pass's next entries to fetch, by key after `after`."""
        # "+": in that order the table itself lies, which is then gone through once for all pages.
        rows = self._sql.execute(
            """SELECT key, path, bytes, stamp, state FROM entry WHERE +pass = ? AND state IN (0, 3) AND key > ?
            ORDER BY key LIMIT ?""",
            [self._pass, after, limit],
        )
        return [Entry(*row) for row in rows]

    def list_aside(self, limit: int) -> list[Entry]:
        """Return the first entries, by key, whose new file is stored aside."""
        query = "SELECT key, path, bytes, stamp, state FROM entry WHERE state = 2 ORDER BY key LIMIT ?"
        return [Entry(*row) for row in self._sql.execute(query, [limit])]

    def count_aside(self) -> int:
        """Return the number of files stored aside."""
        return self._sql.execute("SELECT count(*) FROM entry WHERE state = 2").fetchone()[0]

    def mark_present(self, entries: Sequence[Entry]) -> None:
        """Record that the files of these entries are now stored under their own paths."""
        self._sql.execute("BEGIN")
        self._sql.executemany("UPDATE entry SET state = 1 WHERE key = ?", [[entry.key] for entry in entries])
        self._sql.execute("COMMIT")

    def count_seen(self) -> tuple[int, int]:
        """Return the number of entries of this pass and their known bytes."""
        query = "SELECT count(*), coalesce(sum(max(bytes, 0)), 0) FROM entry WHERE pass = ?"
        return self._sql.execute(query, [self._pass]).fetchone()

    def find_unseen(self, limit: int) -> tuple[int, list[str]]:
        """Return the number of entries not in this pass, and their first paths."""
        count = self._sql.execute("SELECT count(*) FROM entry WHERE pass != ?", [self._pass]).fetchone()[0]
        query = "SELECT path FROM entry WHERE pass != ? ORDER BY key LIMIT ?"
        return count, [row[0] for row in self._sql.execute(query, [self._pass, limit])]

    def close(self) -> None:
        """Commit pending entries, and close the file."""
        self.commit()
        self._sql.close()

    def _find_holder(self, path: str) -> str | None:
        row = self._sql.execute("SELECT key FROM entry WHERE folded = ?", [_fold_path(path)]).fetchone()
        return row[0] if row else None


def _fold_path(path: str) -> str:
    return unicodedata.normalize("NFKC", path).casefold()


@contextmanager
def open_manifest(folder: Path) -> Generator[Manifest]:
    """Open and lock the manifest of a folder, or raise AlreadyRunning."""
    lock = FileLock(folder / LOCK_FILE, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise AlreadyRunning(f"Another process fills {folder} right now. Wait until it has ended.") from error
    manifest = None
    try:
        manifest = Manifest(folder)
        yield manifest
    finally:
        if manifest:
            manifest.close()
        lock.release()
