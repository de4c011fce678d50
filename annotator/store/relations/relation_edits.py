"""Append-only edits of class relations, such as "is a"."""

import json
import time
import uuid as uuids
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlite_utils

from annotator.store.database.decision_sql import build_not_undone_sql

IS_A, AT_MOST_ONE, EXACTLY_ONE, REMOVE, UNDO = "is_a", "at_most_one", "exactly_one", "remove", "undo"
GROUP_KINDS = (AT_MOST_ONE, EXACTLY_ONE)


@dataclass(frozen=True)
class Declaration:
    """A relation to declare."""

    kind: str
    # child and parent for IS_A, else the group
    class_ids: tuple[int, ...]
    # group name, or ""
    name: str = ""


@dataclass(frozen=True)
class Relation:
    """An active relation (`edited_at` in Unix seconds)."""

    id: int
    declared: Declaration
    annotator: str
    edited_at: float


# Not taken back: neither undone, nor removed by an edit that still holds.
_IN_FORCE_SQL = f"""{build_not_undone_sql("e.id", "relation_edit")}
    AND NOT EXISTS (SELECT 1 FROM relation_edit r WHERE r.removes = e.id
        AND {build_not_undone_sql("r.id", "relation_edit")})"""


def load_active(sql: sqlite_utils.Database) -> list[Relation]:
    """Return active relations in declaration order."""
    rows = sql.execute(
        f"""SELECT id, action, class_ids, name, annotator, edited_at FROM relation_edit e
        WHERE action IN ('{IS_A}', '{AT_MOST_ONE}', '{EXACTLY_ONE}') AND {_IN_FORCE_SQL} ORDER BY id"""
    ).fetchall()
    return [Relation(row[0], Declaration(row[1], tuple(json.loads(row[2])), row[3]), *row[4:]) for row in rows]


def append(sql: sqlite_utils.Database, declared: Sequence[Declaration], by: str, uuid: str | None) -> None:
    """Store declared relations as one batch, which is undone in one step."""
    batch = uuid or str(uuids.uuid4())
    for number, one in enumerate(declared):
        fields = {"action": one.kind, "name": one.name, "class_ids": json.dumps(one.class_ids), "batch": batch}
        _insert_edit(sql, fields, by, f"{batch}:{number}" if number else batch)


def append_removal(sql: sqlite_utils.Database, relation_id: int, by: str, uuid: str | None) -> None:
    name = uuid or str(uuids.uuid4())
    _insert_edit(sql, {"action": REMOVE, "removes": relation_id, "batch": name}, by, name)


def load_newest_edits(sql: sqlite_utils.Database) -> list[tuple[int, int | None]]:
    """Return (id, removed relation) of the edits to undo next."""
    return sql.execute(
        f"""SELECT id, removes FROM relation_edit WHERE batch = (SELECT batch FROM relation_edit e
            WHERE action != 'undo' AND {build_not_undone_sql("e.id", "relation_edit")}
            ORDER BY id DESC LIMIT 1) ORDER BY id"""
    ).fetchall()


def append_undo(sql: sqlite_utils.Database, edit_ids: Sequence[int], by: str, uuid: str | None) -> None:
    batch = uuid or str(uuids.uuid4())
    for number, edit_id in enumerate(edit_ids):
        fields = {"action": UNDO, "undoes": edit_id, "batch": batch}
        _insert_edit(sql, fields, by, f"{batch}:{number}" if number else batch)


def load_relation(sql: sqlite_utils.Database, relation_id: int) -> Relation:
    """Return a relation, even if inactive."""
    row = sql.execute(
        "SELECT id, action, class_ids, name, annotator, edited_at FROM relation_edit WHERE id = ?", [relation_id]
    ).fetchone()
    return Relation(row[0], Declaration(row[1], tuple(json.loads(row[2])), row[3]), *row[4:])


def is_stored(sql: sqlite_utils.Database, uuid: str | None) -> bool:
    return bool(uuid and sql.execute("SELECT 1 FROM relation_edit WHERE uuid = ?", [uuid]).fetchone())


def _insert_edit(sql: sqlite_utils.Database, fields: dict[str, Any], by: str, uuid: str) -> None:
    row = fields | {"uuid": uuid, "annotator": by, "edited_at": time.time()}
    marks = ", ".join("?" * len(row))
    sql.execute(f"INSERT INTO relation_edit ({', '.join(row)}) VALUES ({marks})", [*row.values()])
