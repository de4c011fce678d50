"""Temporary SQLite files of the file names below a URL during registration.

Names are committed in batches, so that interrupted sorted listings resume, for up to MAX_AGE_SECONDS.
"""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import sqlite_utils
from filelock import FileLock, Timeout

from annotator.errors import AlreadyRunning, DiskFull
from annotator.progress_callbacks import ProgressCallback
from annotator.records import BadFile
from annotator.store.disk.file_permissions import OTHERS_PERMISSIONS
from annotator.store.locations.listing import RemoteFile
from annotator.store.pictures.files import MAX_SQLITE_INTEGER, FileState, escape_path
from annotator.store.pictures.leftovers import find_leftover_part
from annotator.store.pictures.picture_kinds import looks_like_image
from annotator.store.pictures.skipped_files import SkippedFiles

LISTING_PREFIX, LISTING_SUFFIX, LOCK_SUFFIX = "listing-", ".db", ".lock"
NAMES_PER_TRANSACTION = 5000  # names in one transaction
MAX_AGE_SECONDS = 24 * 3600.0
LISTING_CACHE_KB = 32_000

_SCHEMA_SQL = """
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS listed (path TEXT PRIMARY KEY, bytes INTEGER NOT NULL, modified_ns INTEGER NOT NULL,
    stamp TEXT NOT NULL, has_sha256 INTEGER NOT NULL, sha256 TEXT NOT NULL) WITHOUT ROWID;
"""


class ListedFile(NamedTuple):
    """A listed file that is new or changed since registration."""

    # path below the URL, escaped
    path: str
    state: FileState
    # whether the store has a checksum
    has_sha256: bool
    # listed checksum, or ""
    sha256: str
    # SHA-256 of the path's previous image, or ""
    was_sha256: str


class StagedListing:
    """A temporary database of the file names below one URL (`resumed_from`: Unix seconds of an interrupted start)."""

    def __init__(self, file: Path):
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o777 & ~OTHERS_PERMISSIONS))
        self.file = file
        self._sql = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", f"cache_size = -{LISTING_CACHE_KB}"):
            self._sql.execute(f"PRAGMA {pragma}").fetchall()
        self._sql.executescript(_SCHEMA_SQL)
        self.resumed_from: float | None = None
        if time.time() - float(self._get_fact("begun") or 0) > MAX_AGE_SECONDS:
            self._sql.executescript("DELETE FROM listed; DELETE FROM fact;")
            self._set_fact("begun", time.time())
        elif self.is_complete or self.last_listed_name:
            self.resumed_from = float(self._get_fact("begun"))

    @property
    def is_complete(self) -> bool:
        return bool(self._get_fact("complete"))

    @property
    def last_listed_name(self) -> str:
        return str(self._get_fact("after") or "")

    @property
    def passed_over(self) -> int:
        """Count the other files that are not images."""
        return int(self._get_fact("passed_over") or 0)

    @property
    def left_out(self) -> SkippedFiles:
        """Return the counts of skipped files: leftovers (such as thumbnails) and unsupported images."""
        leftovers, unread = json.loads(self._get_fact("left_out") or "[{}, {}]")
        return SkippedFiles(leftovers, unread)

    def count(self) -> int:
        return self._sql.execute("SELECT count(*) FROM listed").fetchone()[0]

    def add(
        self,
        remotes: Iterable[RemoteFile],
        progress: ProgressCallback | None = None,
        known: Collection[str] = (),
    ) -> None:
        """Store the names of the remaining files, NAMES_PER_TRANSACTION per transaction.

        Args:
            remotes: Files after `last_listed_name` if the store lists by name, else all.
            progress: Called with (names stored so far, 0).
            known: Registered files, escaped, stored even if they are leftovers.
        """
        rest, count, left_out = iter(remotes), self.count(), self.left_out
        while batch := list(islice(rest, NAMES_PER_TRANSACTION)):
            images, others = _split_images(batch, known)
            passed = sum(not left_out.count_if_skipped(remote.name) for remote in others)
            self._sql.execute("BEGIN")
            self._sql.executemany("INSERT OR REPLACE INTO listed VALUES (?, ?, ?, ?, ?, ?)", map(_to_row, images))
            self._set_fact("after", batch[-1].name)
            self._set_fact("passed_over", self.passed_over + passed)
            self._set_fact("left_out", json.dumps([left_out.leftovers, left_out.unread]))
            self._sql.execute("COMMIT")
            count += len(images)
            if progress:
                progress(count, 0)
        self._set_fact("complete", 1)

    @contextmanager
    def attach(self, sql: sqlite_utils.Database) -> Generator[None]:
        """Attach this listing's file to a project connection under the SQL schema name `listing`."""
        sql.conn.execute("ATTACH ? AS listing", [str(self.file)])
        try:
            sql.conn.execute(f"PRAGMA listing.cache_size = -{LISTING_CACHE_KB}")
            yield
        finally:
            sql.conn.execute("DETACH listing")

    def close(self) -> None:
        self._sql.close()

    def _get_fact(self, name: str) -> Any:
        row = self._sql.execute("SELECT value FROM fact WHERE name = ?", [name]).fetchone()
        return row[0] if row else None

    def _set_fact(self, name: str, value: object) -> None:
        self._sql.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", [name, value])


def is_listing_file(name: str) -> bool:
    """Return whether a project file belongs to a registration."""
    return name.startswith(LISTING_PREFIX)


@contextmanager
def open_listing(project: Path, address: str) -> Generator[StagedListing]:
    """Yield a new or resumed listing under a lock, and delete its file after success.

    Raises:
        AlreadyRunning: Another process registers the same URL.
        DiskFull: The file cannot be written.
    """
    file = project / f"{LISTING_PREFIX}{hashlib.sha256(address.encode()).hexdigest()[:16]}{LISTING_SUFFIX}"
    lock = FileLock(file.with_suffix(LOCK_SUFFIX), mode=0o600)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise AlreadyRunning(f"Another process registers {address} right now. Wait until it has ended.") from error
    except OSError as error:
        raise _to_disk_full(file, error) from error
    try:
        try:
            staged = StagedListing(file)
        except sqlite3.DatabaseError:  # damaged by a power cut
            _remove_listing(file)
            staged = StagedListing(file)
        try:
            yield staged
            staged.close()
            _remove_listing(file)
        except sqlite3.OperationalError as error:
            staged.close()
            raise _to_disk_full(file, error) from error
        except sqlite3.DatabaseError as error:  # damaged: the next attempt begins anew
            staged.close()
            _remove_listing(file)
            raise _to_disk_full(file, error) from error
        except BaseException:
            is_empty = not staged.count()
            staged.close()
            if is_empty:
                _remove_listing(file)
            raise
    finally:
        lock.release()
        with suppress(OSError):
            Path(lock.lock_file).unlink(missing_ok=True)


def _to_disk_full(file: Path, error: Exception) -> DiskFull:
    return DiskFull(
        f"{file} could not be written: {error}. What was registered stays.\n"
        "    Is the disk full, or the project folder write-protected? Free some space, and give the same command again."
    )


def iterate_changed(sql: sqlite_utils.Database, folder_id: int, at_once: int) -> Iterator[list[ListedFile]]:
    """Yield new or changed files by name, `at_once` at a time, inside `attach`."""
    after = ""
    while True:
        rows = sql.execute(
            """SELECT l.path, l.bytes, l.modified_ns, l.stamp, l.has_sha256, l.sha256,
                coalesce(i.sha256, '')
            FROM listing.listed l LEFT JOIN main.file f ON f.folder_id = ? AND f.path = l.path
            LEFT JOIN main.image i ON i.id = f.image_id
            WHERE l.path > ?
            AND (f.id IS NULL OR (f.bytes, f.modified_ns, f.stamp) != (l.bytes, l.modified_ns, l.stamp))
            ORDER BY l.path LIMIT ?""",
            [folder_id, after, at_once],
        ).fetchall()
        if not rows:
            return
        after = rows[-1][0]
        yield [ListedFile(row[0], FileState(*row[1:4]), bool(row[4]), *row[5:]) for row in rows]


def count_changed(sql: sqlite_utils.Database, folder_id: int) -> int:
    """Count what `iterate_changed` yields, inside `attach`."""
    return sql.execute(
        """SELECT count(*) FROM listing.listed l LEFT JOIN main.file f ON f.folder_id = ? AND f.path = l.path
        WHERE f.id IS NULL OR (f.bytes, f.modified_ns, f.stamp) != (l.bytes, l.modified_ns, l.stamp)""",
        [folder_id],
    ).fetchone()[0]


def load_still_bad(sql: sqlite_utils.Database, folder_id: int) -> list[BadFile]:
    """Return the files rejected before that have not changed, inside `attach`."""
    rows = sql.execute(
        """SELECT f.path, f.reason FROM main.file f JOIN listing.listed l ON l.path = f.path
        WHERE f.folder_id = ? AND f.reason != ''
        AND (f.bytes, f.modified_ns, f.stamp) = (l.bytes, l.modified_ns, l.stamp)
        ORDER BY f.path""",
        [folder_id],
    )
    return [BadFile(*row) for row in rows.fetchall()]


def find_unlisted_files(sql: sqlite_utils.Database, folder_id: int, at_once: int) -> list[str]:
    """Return up to `at_once` registered but unlisted files, inside `attach`."""
    rows = sql.execute(
        """SELECT f.path FROM main.file f WHERE f.folder_id = ?
        AND NOT EXISTS (SELECT 1 FROM listing.listed l WHERE l.path = f.path) LIMIT ?""",
        [folder_id, at_once],
    )
    return [row[0] for row in rows.fetchall()]


def is_invalid_path(name: str) -> bool:
    """Return whether a remote name is not a valid path below its folder."""
    return bool({"", ".", ".."} & set(name.split("/"))) or "\0" in name


def _split_images(batch: Iterable[RemoteFile], known: Collection[str]) -> tuple[list[RemoteFile], list[RemoteFile]]:
    images: list[RemoteFile] = []
    others: list[RemoteFile] = []
    for remote in batch:
        (images if _is_wanted_image(remote.name, known) else others).append(remote)
    return images, others


def _is_wanted_image(name: str, known: Collection[str]) -> bool:
    if find_leftover_part(name):
        return escape_path(name) in known
    is_hidden = any(part.startswith(".") for part in name.split("/") if part not in (".", ".."))
    return looks_like_image(name) and "\0" not in name and not is_hidden


def _to_row(remote: RemoteFile) -> tuple[object, ...]:
    size, modified = (
        min(remote.size, MAX_SQLITE_INTEGER),
        max(-MAX_SQLITE_INTEGER, min(remote.modified_ns, MAX_SQLITE_INTEGER)),
    )
    return escape_path(remote.name), size, modified, remote.stamp, remote.has_sha256, remote.sha256


def _remove_listing(file: Path) -> None:
    for path in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
        path.unlink(missing_ok=True)
