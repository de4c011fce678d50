"""The history of classes: one transaction and one row of changed fields per change.

Undo is refused if later changes depend on it.
"""

import json
import time
import uuid as uuids
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import sqlite_utils

from annotator.errors import AnnotatorError, combine_problems
from annotator.store.classes import class_labels
from annotator.store.database.database import Database, get_inserted_id, get_newest_decision_id
from annotator.store.images.stages import COMPLETE, LABELED
from annotator.store.labels.archived_classes import ClassArchive
from annotator.store.labels.derivation import rebuild_images
from annotator.store.relations import declared_relations

ClassState = dict[str, Any]
"""What is kept of a class: CLASS_COLUMNS, ARCHIVE_COLUMNS, and the lists `synonyms` and `examples`."""

CLASS_COLUMNS = ("name", "description", "key", "position", "heading", "colour")
ARCHIVE_COLUMNS = ("archived", "archived_since", "merged_into", "merged_same")
ADDED_STATES: tuple[ClassState, ClassState] = ({"archived": 1}, {"archived": 0})
"""Before and after of an added class: classes are never removed, and undoing it archives the class."""
_SELECT_CHANGES_SQL = """SELECT c.*,
    c.kind = 'add' AND json_type(c.before, '$."' || (SELECT min(id) FROM class) || '"') IS NOT NULL AS is_first,
    (SELECT id FROM class_change u WHERE u.undoes = c.id) AS undone_by,
    (SELECT count(*) FROM decision d WHERE d.batch = c.batch AND c.batch != '') AS decisions FROM class_change c"""


@dataclass(frozen=True)
class ClassChange:
    """A stored change of classes, which can be undone."""

    id: int
    uuid: str
    # "add", "edit", "merge", "split", "archive", "restore" or "undo"
    kind: str
    annotator: str
    changed_at: float
    # before, after: class id -> changed fields
    before: dict[int, ClassState]
    after: dict[int, ClassState]
    # cells answered by a merge
    decisions: int = 0
    # id of the reverted change
    undoes: int | None = None
    undone_by: int | None = None
    # it added the project's first classes
    is_first: bool = False

    @property
    def can_be_undone(self) -> bool:
        """Return whether an undo is possible, perhaps after undoing later changes."""
        return self.kind != "undo" and self.undone_by is None and not self.is_first


@dataclass(frozen=True)
class ChangePlan:
    """The planned result of a class change, stored by `make_change`."""

    # class id -> new fields
    states: dict[int, ClassState]
    # called between writing the classes and updating labels
    finish: Callable[[sqlite_utils.Database], None] | None = None
    batch: str = ""
    undoes: int | None = None


def load_changes(db: Database, limit: int | None = None) -> list[ClassChange]:
    """Return the class changes, newest first."""
    return [
        _to_change(row)
        for row in db.rows(f"{_SELECT_CHANGES_SQL} ORDER BY c.id DESC LIMIT ?", [-1 if limit is None else limit])
    ]


def make_change(
    db: Database,
    kind: str,
    by: str,
    uuid: str | None,
    plan: Callable[[sqlite_utils.Database, dict[int, ClassState]], ChangePlan],
) -> ClassChange | None:
    """Change classes in one transaction, and update labels, stages and disagreements.

    Returns None if nothing changes, except for an undo.

    Args:
        uuid: Chosen by the client. A stored uuid changes nothing.
        plan: May modify the state per class that it receives.

    Raises:
        AnnotatorError: Duplicate names, or from `plan`. Nothing changes.
    """
    name = uuid or str(uuids.uuid4())
    with db.writing() as sql:
        if stored := _load_matching_changes(sql, "WHERE c.uuid = ?", name):
            return stored[0]
        before, archive = _read_states(sql), ClassArchive(sql)
        planned = plan(sql, deepcopy(before))
        after = planned.states
        if problems := _find_name_problems(after):
            raise combine_problems("These names cannot be used:", problems)
        _write_states(sql, before, after)
        _record_restored(sql, before, after)
        if planned.finish:
            planned.finish(sql)
        _update_labels(sql, archive, before, after)
        old, new = _find_differences(before, after)
        if not new and planned.undoes is None:
            return None
        change_id = _insert_change(sql, name, kind, by, old, new, planned.batch, planned.undoes)
        return _load_matching_changes(sql, "WHERE c.id = ?", change_id)[0]


def record_added(sql: sqlite_utils.Database, by: str, class_ids: Sequence[int]) -> None:
    """Store the addition of classes in the history, and set complete images back to LABELED."""
    old, new = (dict.fromkeys(class_ids, state) for state in ADDED_STATES)
    _insert_change(sql, str(uuids.uuid4()), "add", by, old, new)
    reopen_complete_images(sql)


def record_descriptions(
    sql: sqlite_utils.Database, by: str, before: Mapping[int, str], after: Mapping[int, str]
) -> None:
    """Store changed descriptions as one edit (class id -> description)."""
    changed = [class_id for class_id, text in before.items() if after[class_id] != text]
    if changed:
        old, new = ({class_id: {"description": texts[class_id]} for class_id in changed} for texts in (before, after))
        _insert_change(sql, str(uuids.uuid4()), "edit", by, old, new)


def reopen_complete_images(sql: sqlite_utils.Database) -> None:
    sql.execute("UPDATE image SET stage = ? WHERE stage = ?", [LABELED, COMPLETE])


def undo_change(db: Database, by: str, change_id: int | None = None, uuid: str | None = None) -> ClassChange:
    """Undo a class change in one step, and return the undo.

    Args:
        change_id: None selects the newest undoable change.

    Raises:
        AnnotatorError: The change cannot be undone, or none is left.
    """
    name = uuid or str(uuids.uuid4())

    def plan(sql: sqlite_utils.Database, states: dict[int, ClassState]) -> ChangePlan:
        change = _find_undo_target(sql, change_id)
        newest = get_newest_decision_id(sql)
        for class_id, state in change.before.items():
            gone = {"archived_since": newest, "key": ""} if state.get("archived") else {}
            states[class_id] |= gone | state
        _free_keys(states, change.before)
        if not change.decisions:
            return ChangePlan(states, undoes=change.id)
        [into_id] = {state["merged_into"] for state in change.after.values() if state.get("merged_into")}
        return ChangePlan(
            states, lambda sql: class_labels.undo_merged_answers(sql, into_id, change.uuid, name, by), undoes=change.id
        )

    undone = make_change(db, "undo", by, name, plan)
    assert undone is not None  # an undo is always noted
    return undone


def _find_undo_target(sql: sqlite_utils.Database, change_id: int | None) -> ClassChange:
    if change_id is None:
        newest = _load_matching_changes(
            sql, "WHERE c.kind != 'undo' AND undone_by IS NULL AND NOT is_first ORDER BY c.id DESC LIMIT ?", 1
        )
        if not newest:
            raise AnnotatorError("No change of classes is left to undo.")
        return newest[0]
    chosen = _load_matching_changes(sql, "WHERE c.id = ?", change_id)
    if not chosen:
        raise AnnotatorError(
            f"The history of classes has no change {change_id}. annotator classes history PROJECT lists all changes."
        )
    change = chosen[0]
    if change.kind == "undo":
        raise AnnotatorError(
            f"Change {change_id} is the undo of change {change.undoes} and cannot be undone. Make the change again."
        )
    if change.undone_by:
        raise AnnotatorError(f"Change {change_id} was undone already, by change {change.undone_by}.")
    if change.is_first:
        raise AnnotatorError(
            f"Change {change_id} added the project's first classes and cannot be undone. "
            "Rename or archive those that are not right."
        )
    later = [
        other.id
        for other in _load_matching_changes(sql, "WHERE c.id > ? AND c.kind != 'undo' ORDER BY c.id", change_id)
        if not other.undone_by and _depends_on(other, change)
    ]
    if later:
        numbers = ", ".join(map(str, reversed(later)))
        raise AnnotatorError(
            f"Change {change_id} cannot be undone yet: later changes concern the same classes. Undo first: {numbers}."
        )
    return change


def _depends_on(later: ClassChange, earlier: ClassChange) -> bool:
    """Return whether the later change concerns a field (except position) or archiving that the earlier one changed."""
    return any(
        later.after[class_id].keys() & (state.keys() - {"position"} | {"archived"})
        for class_id, state in earlier.after.items()
        if class_id in later.after
    )


def _read_states(sql: sqlite_utils.Database) -> dict[int, ClassState]:
    columns = (*CLASS_COLUMNS, *ARCHIVE_COLUMNS)
    states: dict[int, ClassState] = {
        row[0]: dict(zip(columns, row[1:], strict=True)) | {"synonyms": [], "examples": []}
        for row in sql.execute(f"SELECT id, {', '.join(columns)} FROM class ORDER BY id").fetchall()
    }
    for class_id, name in sql.execute("SELECT class_id, name FROM synonym ORDER BY name").fetchall():
        states[class_id]["synonyms"].append(name)
    for class_id, image_id in sql.execute("SELECT class_id, image_id FROM example ORDER BY place").fetchall():
        states[class_id]["examples"].append(image_id)
    return states


def _write_states(sql: sqlite_utils.Database, before: dict[int, ClassState], after: dict[int, ClassState]) -> None:
    changed = [class_id for class_id in after if before.get(class_id) != after[class_id]]
    # Names, keys and synonyms are unique, and two classes may exchange theirs.
    for class_id in changed:
        sql.execute("UPDATE class SET name = 'class ' || id || char(0), key = '' WHERE id = ?", [class_id])
        sql.execute("DELETE FROM synonym WHERE class_id = ?", [class_id])
        sql.execute("DELETE FROM example WHERE class_id = ?", [class_id])
    columns = (*CLASS_COLUMNS, *ARCHIVE_COLUMNS)
    for class_id in changed:
        state = after[class_id]
        sql.execute(
            f"UPDATE class SET {', '.join(f'{column} = ?' for column in columns)} WHERE id = ?",
            [*(state[column] for column in columns), class_id],
        )
        sql.conn.executemany(
            "INSERT INTO synonym (name, class_id) VALUES (?, ?)", [(name, class_id) for name in state["synonyms"]]
        )
        sql.conn.executemany(
            "INSERT INTO example (class_id, image_id, place) VALUES (?, ?, ?)",
            [(class_id, image_id, place) for place, image_id in enumerate(state["examples"])],
        )


def _record_restored(sql: sqlite_utils.Database, before: dict[int, ClassState], after: dict[int, ClassState]) -> None:
    newest = get_newest_decision_id(sql)
    sql.conn.executemany(
        "INSERT OR IGNORE INTO class_away (class_id, since_decision, until_decision) VALUES (?, ?, ?)",
        [
            (class_id, state["archived_since"], newest)
            for class_id, state in before.items()
            if state["archived"] and not after[class_id]["archived"]
        ],
    )


def _update_labels(
    sql: sqlite_utils.Database, archive: ClassArchive, before: dict[int, ClassState], after: dict[int, ClassState]
) -> None:
    moved = {
        class_id
        for class_id, state in after.items()
        if class_id in before and any(before[class_id][name] != state[name] for name in ARCHIVE_COLUMNS)
    }
    for class_id in moved:
        if after[class_id]["archived"]:
            class_labels.remove_labels(sql, class_id)
        elif before[class_id]["archived"]:
            class_labels.restore_labels(sql, class_id)
    if moved:
        image_ids = class_labels.find_merged_images(sql, archive, moved) | class_labels.find_merged_images(
            sql, ClassArchive(sql), moved
        )
        rebuild_images(sql, image_ids)
        class_labels.update_stages(sql)
        declared_relations.update_after_class_change(sql)
    if after.keys() != before.keys():
        reopen_complete_images(sql)


def _find_differences(
    before: dict[int, ClassState], after: dict[int, ClassState]
) -> tuple[dict[int, ClassState], dict[int, ClassState]]:
    old: dict[int, ClassState] = {}
    new: dict[int, ClassState] = {}
    for class_id, state in after.items():
        was = before.get(class_id)
        if was is None:
            old[class_id], new[class_id] = ADDED_STATES
        elif fields := [name for name in state if state[name] != was[name]]:
            old[class_id], new[class_id] = ({name: of[name] for name in fields} for of in (was, state))
    return old, new


def _find_name_problems(states: dict[int, ClassState]) -> list[str]:
    holders: dict[str, int] = {}
    problems: list[str] = []
    for class_id, state in states.items():
        holder = holders.setdefault(state["name"], class_id)
        if holder != class_id:
            away = "an archived class: restore it" if states[holder]["archived"] else "another class"
            problems.append(f"{state['name']!r} is the name of {away}")
    synonyms: dict[str, int] = {}
    for class_id, state in states.items():
        for name in state["synonyms"]:
            holder = holders.get(name)
            if holder is not None and class_id not in follow_merges(states, holder):
                own = "its own name" if holder == class_id else "the name of a class"
                problems.append(f"the synonym {name!r} of {state['name']!r} is {own}")
            if synonyms.setdefault(name, class_id) != class_id:
                problems.append(f"{name!r} is a synonym of {states[synonyms[name]]['name']!r} already")
    return problems


def follow_merges(states: dict[int, ClassState], class_id: int) -> list[int]:
    """Return the chain of classes that a class was merged into."""
    chain: list[int] = []
    while (into := states[class_id]["merged_into"]) and into not in chain:
        chain.append(into)
        class_id = into
    return chain


def _free_keys(states: dict[int, ClassState], given: dict[int, ClassState]) -> None:
    keys = {state["key"] for state in given.values() if state.get("key")}
    for class_id, state in states.items():
        if "key" not in given.get(class_id, {}) and state["key"] in keys:
            state["key"] = ""


def _insert_change(
    sql: sqlite_utils.Database,
    name: str,
    kind: str,
    by: str,
    old: dict[int, ClassState],
    new: dict[int, ClassState],
    batch: str = "",
    undoes: int | None = None,
) -> int:
    return get_inserted_id(
        sql.execute(
            """INSERT INTO class_change (uuid, kind, annotator, changed_at, before, after, batch, undoes)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            [name, kind, by, time.time(), json.dumps(old), json.dumps(new), batch, undoes],
        )
    )


def _load_matching_changes(sql: sqlite_utils.Database, where: str, value: object) -> list[ClassChange]:
    return [_to_change(row) for row in sql.query(f"{_SELECT_CHANGES_SQL} {where}", [value])]


def _to_change(row: dict[str, Any]) -> ClassChange:
    before, after = (
        {int(class_id): state for class_id, state in json.loads(row[name]).items()} for name in ("before", "after")
    )
    kept = {
        name: row[name]
        for name in ("id", "uuid", "kind", "annotator", "changed_at", "decisions", "undoes", "undone_by")
    }
    return ClassChange(before=before, after=after, is_first=bool(row["is_first"]), **kept)
