"""What people declare of classes: "is a", "at most one of", "exactly one of". Appended; an undo is one more edit."""

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
    """A relation that somebody wants to declare.

    Attributes:
        kind: IS_A, AT_MOST_ONE or EXACTLY_ONE.
        class_ids: Of IS_A the child and its parent; of a group its classes, each once.
        name: Of a group; "" else.
    """

    kind: str
    class_ids: tuple[int, ...]
    name: str = ""


@dataclass(frozen=True)
class Relation:
    """A relation that holds.

    Attributes:
        id: Of the edit that declared it.
        declared: What was declared.
        annotator: Who did it.
        edited_at: Unix seconds.
    """

    id: int
    declared: Declaration
    annotator: str
    edited_at: float


# Not taken back: neither undone, nor removed by an edit that still holds.
_IN_FORCE_SQL = f"""{build_not_undone_sql("e.id", "relation_edit")}
    AND NOT EXISTS (SELECT 1 FROM relation_edit r WHERE r.removes = e.id
        AND {build_not_undone_sql("r.id", "relation_edit")})"""


def load_active(sql: sqlite_utils.Database) -> list[Relation]:
    """Return the relations that hold, in the order in which they were declared."""
    rows = sql.execute(
        f"""SELECT id, action, class_ids, name, annotator, edited_at FROM relation_edit e
        WHERE action IN ('{IS_A}', '{AT_MOST_ONE}', '{EXACTLY_ONE}') AND {_IN_FORCE_SQL} ORDER BY id"""
    ).fetchall()
    return [Relation(row[0], Declaration(row[1], tuple(json.loads(row[2])), row[3]), *row[4:]) for row in rows]


def append(sql: sqlite_utils.Database, declared: Sequence[Declaration], by: str, uuid: str | None) -> None:
    """Store relations, which are undone as one."""
    batch = uuid or str(uuids.uuid4())
    for number, one in enumerate(declared):
        fields = {"action": one.kind, "name": one.name, "class_ids": json.dumps(one.class_ids), "batch": batch}
        _insert_edit(sql, fields, by, f"{batch}:{number}" if number else batch)


def append_removal(sql: sqlite_utils.Database, relation_id: int, by: str, uuid: str | None) -> None:
    """Store that a relation does not hold any more."""
    name = uuid or str(uuids.uuid4())
    _insert_edit(sql, {"action": REMOVE, "removes": relation_id, "batch": name}, by, name)


def load_newest_edits(sql: sqlite_utils.Database) -> list[tuple[int, int | None]]:
    """Return (id, the relation that it removed) of the edits that an undo would undo together; [] without any."""
    return sql.execute(
        f"""SELECT id, removes FROM relation_edit WHERE batch = (SELECT batch FROM relation_edit e
            WHERE action != 'undo' AND {build_not_undone_sql("e.id", "relation_edit")}
            ORDER BY id DESC LIMIT 1) ORDER BY id"""
    ).fetchall()


def append_undo(sql: sqlite_utils.Database, edit_ids: Sequence[int], by: str, uuid: str | None) -> None:
    """Store that these edits are undone."""
    batch = uuid or str(uuids.uuid4())
    for number, edit_id in enumerate(edit_ids):
        fields = {"action": UNDO, "undoes": edit_id, "batch": batch}
        _insert_edit(sql, fields, by, f"{batch}:{number}" if number else batch)


def load_relation(sql: sqlite_utils.Database, relation_id: int) -> Relation:
    """Return a relation, whether it holds or not."""
    row = sql.execute(
        "SELECT id, action, class_ids, name, annotator, edited_at FROM relation_edit WHERE id = ?", [relation_id]
    ).fetchone()
    return Relation(row[0], Declaration(row[1], tuple(json.loads(row[2])), row[3]), *row[4:])


def is_stored(sql: sqlite_utils.Database, uuid: str | None) -> bool:
    """Return whether an edit with this uuid is stored."""
    return bool(uuid and sql.execute("SELECT 1 FROM relation_edit WHERE uuid = ?", [uuid]).fetchone())


def _insert_edit(sql: sqlite_utils.Database, fields: dict[str, Any], by: str, uuid: str) -> None:
    row = fields | {"uuid": uuid, "annotator": by, "edited_at": time.time()}
    marks = ", ".join("?" * len(row))
    sql.execute(f"INSERT INTO relation_edit ({', '.join(row)}) VALUES ({marks})", [*row.values()])
