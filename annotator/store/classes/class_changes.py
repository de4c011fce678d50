"""Class changes by annotators: edit, reorder, merge, split, archive (which keeps decisions) and restore."""

import json
import re
import uuid as uuids
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlite_utils

from annotator.errors import AnnotatorError, combine_problems
from annotator.records import PRESENT
from annotator.store.classes.class_history import ChangePlan, ClassChange, ClassState, follow_merges, make_change
from annotator.store.classes.class_labels import COUNT_MERGED_SQL, insert_merged_answers
from annotator.store.classes.classes import DEFAULT_KEYS, find_description_problem, find_key_problems, find_name_problem
from annotator.store.database.database import Database, get_newest_decision_id
from annotator.store.images import selections

EDITABLE_FIELDS = ("name", "description", "key", "heading", "colour", "position", "synonyms", "examples")
MAX_EXAMPLES = 12
_COLOR_PATTERN = re.compile(r"#[0-9a-f]{6}")


@dataclass(frozen=True)
class MergePreview:
    """The preview of a class merge, as numbers of images."""

    # present, absent, unsure: images that get this label for the remaining class
    present: int
    absent: int
    unsure: int
    # images whose label would change from absent to present
    conflicts: int


def edit(
    db: Database, by: str, changes: Mapping[int, Mapping[str, Any]], uuid: str | None = None
) -> ClassChange | None:
    """Change class fields in one transaction (class id -> field -> value).

    A key moves from its former class. Returns None if nothing changes.

    Raises:
        AnnotatorError: Lists all invalid values.
    """

    def plan(sql: sqlite_utils.Database, states: dict[int, ClassState]) -> ChangePlan:
        cleaned = {class_id: _clean_fields(fields) for class_id, fields in changes.items()}
        problems = [
            problem for class_id, fields in cleaned.items() for problem in _find_problems(sql, states, class_id, fields)
        ]
        keys = {class_id: fields["key"] for class_id, fields in cleaned.items() if "key" in fields}
        problems += find_key_problems(keys, {class_id: state["name"] for class_id, state in states.items()})
        if problems:
            raise combine_problems("These changes of classes cannot be made:", problems)
        for class_id, state in states.items():
            if class_id not in keys and state["key"] in keys.values():
                state["key"] = ""
        for class_id, fields in cleaned.items():
            states[class_id] |= fields
        return ChangePlan(states)

    return make_change(db, "edit", by, uuid, plan)


def reorder(
    db: Database, by: str, class_ids: Sequence[int], heading: str | None = None, uuid: str | None = None
) -> ClassChange | None:
    """Move classes to the front in this order, under a new heading ("" for none, None keeps the present ones)."""
    rows = db.tuples("SELECT id FROM class WHERE archived = 0 ORDER BY position, id")
    order = list(dict.fromkeys([*class_ids, *(row[0] for row in rows)]))
    changes: dict[int, ClassState] = {class_id: {"position": place} for place, class_id in enumerate(order, start=1)}
    if heading is not None:
        for class_id in class_ids:
            changes[class_id]["heading"] = heading
    return edit(db, by, changes, uuid)


def preview_merge(db: Database, from_ids: Sequence[int], into_id: int, same: bool) -> MergePreview:
    """Return how many labels `merge` would change, or raise AnnotatorError if the merge is impossible."""
    with db.reading() as sql:
        rows = sql.execute("SELECT id, name, archived FROM class").fetchall()
        _check_merge({class_id: {"name": name, "archived": gone} for class_id, name, gone in rows}, from_ids, into_id)
        values = {"from": json.dumps(list(from_ids)), "into": into_id, "same": same}
        return MergePreview(*sql.execute(COUNT_MERGED_SQL, values).fetchone())


def merge(
    db: Database, by: str, from_ids: Sequence[int], into_id: int, *, same: bool, uuid: str | None = None
) -> ClassChange:
    """Merge classes into another: archive them, copy their answers, and add their names as synonyms.

    Present answers always count, unsure ones only where the remaining class is unanswered.

    Args:
        same: The classes mean the same, so absent fills unanswered labels too. False for subtypes, whose absence
            implies nothing.

    Raises:
        AnnotatorError: The classes cannot be merged.
    """
    name = uuid or str(uuids.uuid4())

    def plan(sql: sqlite_utils.Database, states: dict[int, ClassState]) -> ChangePlan:
        _check_merge(states, from_ids, into_id)
        newest, into = get_newest_decision_id(sql), states[into_id]
        for class_id in from_ids:
            merged = states[class_id]
            into["synonyms"] = sorted({*into["synonyms"], merged["name"], *merged["synonyms"]})
            merged |= _build_archived_state(newest) | {"merged_into": into_id, "merged_same": int(same), "synonyms": []}
        return ChangePlan(states, lambda sql: insert_merged_answers(sql, from_ids, into_id, same, name, by), batch=name)

    change = make_change(db, "merge", by, name, plan)
    assert change is not None  # it archives a class
    return change


def split_class(db: Database, by: str, class_id: int, name: str, uuid: str | None = None) -> tuple[int, str]:
    """Add an unanswered class that is split off another class.

    Returns:
        The new class id, and a selection (for /grid) of the other class's present images.

    Raises:
        AnnotatorError: Invalid class or name.
        DiskFull: The selection cannot be stored.
    """

    def plan(sql: sqlite_utils.Database, states: dict[int, ClassState]) -> ChangePlan:
        if problem := _find_class_problem(states, class_id) or find_name_problem(name):
            raise AnnotatorError(f"No class can be split off: {problem}.")
        old = states[class_id]
        for state in states.values():
            state["position"] += state["position"] > old["position"]
        taken = {state["key"] for state in states.values()}
        new = sql["class"].insert({"name": f"{uuids.uuid4()}\0", "since_decision": get_newest_decision_id(sql)}).last_pk
        states[new] = old | {
            "name": name,
            "description": f"Split off from {old['name']}.",
            "key": next((key for key in DEFAULT_KEYS if key not in taken), ""),
            "position": old["position"] + 1,
            "colour": "",
            "synonyms": [],
            "examples": [],
        }
        return ChangePlan(states)

    change = make_change(db, "split", by, uuid, plan)
    assert change is not None  # it adds a class
    [new_id] = [added for added, state in change.before.items() if state == {"archived": 1}]
    rows = db.tuples("SELECT image_id FROM label WHERE class_id = ? AND state = ?", [class_id, PRESENT])
    return new_id, selections.save(db, np.array(rows, np.int64).reshape(-1), by)


def archive(db: Database, by: str, class_ids: Sequence[int], uuid: str | None = None) -> ClassChange | None:
    """Archive classes: omit them from questions, exports and trainings, but keep answers.

    Raises:
        AnnotatorError: Unknown or archived classes.
    """

    def plan(sql: sqlite_utils.Database, states: dict[int, ClassState]) -> ChangePlan:
        if problems := [problem for class_id in class_ids if (problem := _find_class_problem(states, class_id))]:
            raise combine_problems("These classes cannot be archived:", problems)
        for class_id in class_ids:
            states[class_id] |= _build_archived_state(get_newest_decision_id(sql))
        return ChangePlan(states)

    return make_change(db, "archive", by, uuid, plan)


def restore(db: Database, by: str, class_ids: Sequence[int], uuid: str | None = None) -> ClassChange | None:
    """Restore archived classes with all answers, including later ones.

    Answers that a merge copied to another class remain.

    Raises:
        AnnotatorError: Unknown or active classes.
    """

    def plan(sql: sqlite_utils.Database, states: dict[int, ClassState]) -> ChangePlan:
        problems = [
            f"{states[class_id]['name']!r} is not archived" if class_id in states else f"there is no class {class_id}"
            for class_id in class_ids
            if not states.get(class_id, {}).get("archived")
        ]
        if problems:
            raise combine_problems("These classes cannot be restored:", problems)
        for class_id in class_ids:
            restored, before = states[class_id], _load_state_before_archiving(sql, class_id)
            own = _find_own_names(states, class_id, before) | {*restored["synonyms"]}
            lent = {name for state in states.values() for name in state["synonyms"] if name in own}
            for state in states.values():
                state["synonyms"] = [name for name in state["synonyms"] if name not in {*lent, restored["name"]}]
            restored["synonyms"] = sorted(lent)
            taken = {state["key"] for state in states.values()}
            key = next((key for key in (before.get("key", ""), *DEFAULT_KEYS) if key and key not in taken), "")
            restored |= {"archived": 0, "archived_since": 0, "merged_into": None, "merged_same": 0, "key": key}
        return ChangePlan(states)

    return make_change(db, "restore", by, uuid, plan)


def _find_own_names(states: dict[int, ClassState], class_id: int, before: ClassState) -> set[str]:
    """Return the synonyms to keep: those the class had before its merge, and the names of classes merged into it."""
    names = {state["name"] for state in states.values()}
    merged = {state["name"] for other, state in states.items() if class_id in follow_merges(states, other)}
    return merged | (set(before.get("synonyms", ())) - names)


def _build_archived_state(newest: int) -> ClassState:
    return {"archived": 1, "archived_since": newest, "merged_into": None, "merged_same": 0, "key": ""}


def _load_state_before_archiving(sql: sqlite_utils.Database, class_id: int) -> ClassState:
    for (text,) in sql.execute(
        "SELECT before FROM class_change WHERE kind IN ('archive', 'merge') ORDER BY id DESC"
    ).fetchall():
        if state := json.loads(text).get(str(class_id)):
            return state
    return {}


def _find_class_problem(states: dict[int, ClassState], class_id: int) -> str | None:
    if class_id not in states:
        return f"there is no class {class_id} in this project"
    return f"{states[class_id]['name']!r} is archived" if states[class_id]["archived"] else None


def _check_merge(states: dict[int, ClassState], from_ids: Sequence[int], into_id: int) -> None:
    problems = [problem for class_id in (*from_ids, into_id) if (problem := _find_class_problem(states, class_id))]
    if into_id in from_ids and not problems:
        problems.append(f"{states[into_id]['name']!r} cannot be merged into itself")
    if not from_ids:
        problems.append("no class to merge was given")
    if problems:
        raise combine_problems("These classes cannot be merged:", problems)


def _clean_fields(fields: Mapping[str, Any]) -> ClassState:
    """Strip texts, and change keys and colors to lower case."""
    cleaned: ClassState = {name: value.strip() if isinstance(value, str) else value for name, value in fields.items()}
    for name in ("key", "colour"):
        if isinstance(cleaned.get(name), str):
            cleaned[name] = cleaned[name].lower()
    for name in ("synonyms", "examples"):
        if name in cleaned:
            items = (item.strip() if isinstance(item, str) else item for item in cleaned[name])
            cleaned[name] = list(dict.fromkeys(items))
    if "synonyms" in cleaned:
        cleaned["synonyms"].sort()
    return cleaned


def _find_problems(
    sql: sqlite_utils.Database, states: dict[int, ClassState], class_id: int, fields: ClassState
) -> list[str]:
    if problem := _find_class_problem(states, class_id):
        return [problem]
    name = fields.get("name", states[class_id]["name"])
    problems = [
        f"{name!r} has no field {field!r} that can be changed; those are: {', '.join(EDITABLE_FIELDS)}"
        for field in fields
        if field not in EDITABLE_FIELDS
    ]
    checks = [find_name_problem(text) for text in (*([name] if "name" in fields else []), *fields.get("synonyms", ()))]
    checks.append(find_description_problem(name, fields.get("description", "")))
    if heading := fields.get("heading"):
        checks.append(find_name_problem(heading))
    problems += [problem for problem in checks if problem]
    if (colour := fields.get("colour")) and not _COLOR_PATTERN.fullmatch(colour):
        problems.append(f"{colour!r} of {name!r} is not a colour such as #1f77b4")
    examples = fields.get("examples", [])
    if len(examples) > MAX_EXAMPLES:
        problems.append(f"{name!r} would have {len(examples):,} example images; at most {MAX_EXAMPLES} are kept")
    known = {
        row[0]
        for row in sql.execute(
            "SELECT id FROM image WHERE id IN (SELECT value FROM json_each(?))", [json.dumps(examples)]
        )
    }
    problems += [f"there is no image {image_id} in this project" for image_id in examples if image_id not in known]
    return problems
