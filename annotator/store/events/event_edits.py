"""Edits of events by annotators: gap, splits, merges and folder clocks."""

import time
import uuid as uuids
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlite_utils

GAP, SPLIT, MERGE, SHIFT, UNDO = "gap", "split", "merge", "shift", "undo"
DEFAULT_GAP = 60.0  # seconds
MAX_CLOCK_SECONDS = 200 * 366 * 86400.0  # a clock is never wrong by more


@dataclass(frozen=True)
class EventChange:
    """A user's change of how images are grouped into events."""

    # GAP, SPLIT, MERGE or SHIFT
    action: str
    # before_id, image_id: images before and after the split or merged boundary
    before_id: int | None = None
    image_id: int | None = None
    # folder whose clock is shifted, "" for all
    folder: str | None = None
    # new gap, clock correction, or time between the merged images
    seconds: float | None = None


@dataclass(frozen=True)
class EventEdit:
    """A stored change of events."""

    id: int
    change: EventChange
    annotator: str
    edited_at: float


def load_active(sql: sqlite_utils.Database) -> list[EventEdit]:
    """Return the edits that were not undone, oldest first."""
    rows = sql.execute(
        """SELECT e.id, e.annotator, e.edited_at, e.action, e.before_id, e.image_id, e.folder, e.seconds
        FROM event_edit e LEFT JOIN event_edit u ON u.undoes = e.id
        WHERE e.action != 'undo' AND u.id IS NULL ORDER BY e.id"""
    )
    return [EventEdit(row[0], EventChange(*row[3:]), row[1], row[2]) for row in rows]


def get_newest_id(sql: sqlite_utils.Database) -> int:
    """Return the newest edit id, including undos, or 0."""
    return sql.execute("SELECT coalesce(max(id), 0) FROM event_edit").fetchone()[0]


def append(sql: sqlite_utils.Database, change: EventChange, by: str, uuid: str | None) -> None:
    """Store a change of events, unless its uuid is already stored."""
    _insert_edit(sql, asdict(change), by, uuid)


def append_undo(sql: sqlite_utils.Database, edit: EventEdit, by: str, uuid: str | None) -> None:
    _insert_edit(sql, {"action": UNDO, "undoes": edit.id}, by, uuid)


def get_gap(edits: Sequence[EventEdit]) -> float:
    gaps = [edit.change.seconds for edit in edits if edit.change.action == GAP]
    return DEFAULT_GAP if not gaps or gaps[-1] is None else gaps[-1]


def get_shifts(edits: Sequence[EventEdit]) -> tuple[tuple[str, float], ...]:
    """Return all clock shifts as (folder, seconds)."""
    changes = [edit.change for edit in edits if edit.change.action == SHIFT]
    return tuple((change.folder or "", change.seconds or 0.0) for change in changes)


def is_stored(sql: sqlite_utils.Database, uuid: str | None) -> bool:
    return bool(uuid and sql.execute("SELECT 1 FROM event_edit WHERE uuid = ?", [uuid]).fetchone())


def _insert_edit(sql: sqlite_utils.Database, fields: dict[str, Any], by: str, uuid: str | None) -> None:
    row = fields | {"uuid": uuid or str(uuids.uuid4()), "annotator": by, "edited_at": time.time()}
    sql["event_edit"].insert(row)
