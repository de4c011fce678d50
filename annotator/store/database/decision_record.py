"""The newest decision id in a file next to project.db, which reveals decisions lost with the write-ahead log.

SQLite keeps committed decisions in project.db-wal until a checkpoint. If that file is deleted, project.db looks intact.
"""

# Each durable commit is followed by a write of the record: the newest decision id, and the state of project.db (inode,
# size, times of the last change). A project.db that is opened in the same state with a smaller newest id has lost the
# decisions between. Without a loss this cannot happen:
#
# - Kill or power cut before the record is written: the record is too small, which says nothing.
# - Power cut after it: COMMIT had synced the decisions before. The record is not synced, so an older one may be on the
#   disk (too small), or a torn one (its checksum is wrong: ignored).
# - Checkpoint, complete or cut off: the state of project.db is another one, and the record is void until the next
#   commit. Until then nothing is revealed.
# - Restore, copy, move to another disk, an older project.db put in place, even by writing into the same file: the inode
#   or the time of the last status change differs, which no program can set. A copy that took project.db, the log and
#   the record at different times is void for the same reason.
# - Two processes: both read the newest id after their commits. The slower one may write the smaller id. An opening
#   process reads the record before the database.

import json
import os
import sqlite3
import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import sqlite_utils

from annotator.settings import DATABASE_FILE, Paths
from annotator.store.database.decision_sql import NEWEST_DECISION_ID_SQL

RECORD_BYTES = 256  # one size, so that a shorter record leaves nothing of a longer one; less than a sector of a disk
LOSS_SETTING = "lost_decisions"

_FileState = tuple[int, int, int, int]


@dataclass(frozen=True)
class LostDecisions:
    """A loss of decisions that were acknowledged."""

    # newest decision id that was stored
    stored: int
    # newest decision id in project.db when it was opened
    found: int


class DecisionRecord:
    """The record of an open project.

    Attributes:
        loss: Loss that the next write transaction stores, or None.
    """

    def __init__(self, paths: Paths):
        """Read the record, before the database is opened."""
        self.loss: LostDecisions | None = None
        self._database = paths.database
        self._file = paths.decision_record if paths.file == DATABASE_FILE else None
        self._written: tuple[int, _FileState] | None = None
        self._known, self._state = self._read(), self._read_state()

    def compare(self, sql: sqlite_utils.Database) -> None:
        """Compare the record with the opened database."""
        if self._known is None or self._known[1] != self._state:
            return
        with suppress(sqlite3.Error):  # of a damaged database, which is reported by other checks
            found = _read_newest_id(sql)
            if found < self._known[0]:
                self.loss = LostDecisions(self._known[0], found)

    def store_loss(self, sql: sqlite_utils.Database) -> None:
        """Store a loss in the open transaction, because later commits overwrite the record."""
        if self.loss is not None:
            sql.execute(
                "INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                [LOSS_SETTING, json.dumps([self.loss.stored, self.loss.found])],
            )

    def write(self, sql: sqlite_utils.Database) -> None:
        """Write the record after a durable commit. A failure is ignored: the decisions are stored."""
        if self._file is None:
            return
        with suppress(OSError, sqlite3.Error):
            newest, state = _read_newest_id(sql), self._read_state()
            if state is None or ((newest, state) == self._written and self.loss is None):
                return
            known = self._read() if self.loss is None else None
            self.loss = None
            if known is None or known[1] != state or known[0] < newest:
                text = json.dumps([newest, *state])
                line = f"{text} {zlib.crc32(text.encode()):08x}".ljust(RECORD_BYTES)
                descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600)
                try:
                    os.write(descriptor, line.encode())
                finally:
                    os.close(descriptor)
            self._written = newest, state

    def _read(self) -> tuple[int, _FileState] | None:
        """Return the recorded id and state of project.db, or None if missing or invalid."""
        if self._file is None:
            return None
        try:
            with self._file.open("rb") as file:
                text, _, checksum = file.read(RECORD_BYTES).decode("ascii").strip().rpartition(" ")
            if int(checksum, 16) != zlib.crc32(text.encode()):
                return None
            newest, *state = json.loads(text)
            inode, size, modified, changed = state
            return int(newest), (int(inode), int(size), int(modified), int(changed))
        except (OSError, ValueError, TypeError):
            return None

    def _read_state(self) -> _FileState | None:
        try:
            facts = self._database.stat()
        except OSError:
            return None
        return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def parse_loss(value: Any) -> LostDecisions | None:
    """Return the loss of a stored setting, or None."""
    try:
        stored, found = value
        return LostDecisions(int(stored), int(found))
    except (TypeError, ValueError):
        return None


def _read_newest_id(sql: sqlite_utils.Database) -> int:
    return sql.execute(f"SELECT {NEWEST_DECISION_ID_SQL}").fetchone()[0]
