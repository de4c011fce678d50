"""Reasons to refuse a decision: invalid values, unknown images, conflicting uuids."""

import math
from collections.abc import Sequence
from typing import TypeGuard

import sqlite_utils

from annotator.records import ACTIONS, CELL_ACTIONS, SOURCES, STATE_NAMES, Decision
from annotator.store.events import event_answers

MAX_NOTE_CHARACTERS = 2000  # letters
MAX_NAME_CHARACTERS = 1000  # letters of a uuid, a batch or an annotator
MAX_ID = 2**53  # the largest whole number that a browser counts exactly
MAX_ANSWER_MILLISECONDS = 86_400_000  # milliseconds; a page that was open for longer measured no answer

_CONTENT_COLUMNS = "action, image_id, class_id, state, note, source, annotator, batch"


def find_problem(sql: sqlite_utils.Database, parts: Sequence[Decision]) -> str | None:
    """Return why these all-or-nothing decisions are invalid, or None."""
    if not parts:
        return "a batch without answers"
    seen: set[tuple[int | None, int | None]] = set()
    for number, part in enumerate(parts, start=1):
        problem = _find_bounds_problem(part) or _find_unknown_value(sql, part)
        if not problem and part.action in CELL_ACTIONS and (part.image_id, part.class_id) in seen:
            problem = f"it answers class {part.class_id} on image {part.image_id} twice"
        if problem:
            return problem if len(parts) == 1 else f"answer {number} of {len(parts)}: {problem}; none of them was saved"
        seen.add((part.image_id, part.class_id))
    return None


def find_stored(sql: sqlite_utils.Database, uuid: str, parts: Sequence[Decision]) -> tuple[bool, str | None]:
    """Return whether this uuid is stored, and why the decision is refused or None.

    A uuid is refused if invalid or stored with other content. Batch parts are named "<uuid>:0", "<uuid>:1", ...
    """
    if not is_text(uuid):
        return False, f"its uuid {uuid!r} cannot be stored as text"
    if ":" in uuid:
        return False, f"its uuid {uuid!r} contains a colon, which is reserved for the parts of a batch"
    rows = sql.execute(
        """SELECT uuid, id FROM decision WHERE uuid = ?
        UNION ALL SELECT uuid, id FROM decision WHERE uuid > ? AND uuid < ?""",
        [uuid, f"{uuid}:", f"{uuid};"],  # the semicolon is the letter after the colon
    ).fetchall()
    if not rows:
        return False, None
    known = dict(rows)
    if len(parts) == 1 and parts[0].action == "undo":
        same = uuid in known and _is_same_undo(sql, known[uuid], parts[0])
    else:
        # Answers to an event may have been left out when it was stored.
        needed = {part.uuid for part in parts if not isinstance(part, event_answers.EventAnswer)}
        same = needed <= known.keys() <= {part.uuid for part in parts}
        same = same and all(_is_same_content(sql, part) for part in parts if part.uuid in known)
    return True, None if same else "its uuid belongs to another decision; each needs its own"


def is_text(value: object) -> bool:
    """Return whether UTF-8 can encode the value (no lone surrogates)."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def normalize_time(milliseconds: object) -> int | None:
    """Return whole milliseconds, or None if out of bounds."""
    if not _is_number(milliseconds) or not 0 <= milliseconds <= MAX_ANSWER_MILLISECONDS:
        return None
    return round(milliseconds)


def _find_bounds_problem(decision: Decision) -> str | None:
    for what, value, most in (
        ("uuid", decision.uuid, MAX_NAME_CHARACTERS),
        ("annotator", decision.annotator, MAX_NAME_CHARACTERS),
        ("batch", decision.batch, MAX_NAME_CHARACTERS),
        ("uuid it undoes", decision.undoes, MAX_NAME_CHARACTERS),
        ("note", decision.note, MAX_NOTE_CHARACTERS),
    ):
        if value is not None and not is_text(value):
            return f"its {what} {value!r} cannot be stored as text"
        if value is not None and len(value) > most:
            return f"the {what} has {len(value):,} characters; the limit is {most:,}"
    front_id = decision.front_id if isinstance(decision, event_answers.EventAnswer) else None
    ids = (decision.image_id, "an image"), (front_id, "an image"), (decision.class_id, "a class")
    for value, what in (*ids, (decision.run_id, "a run")):
        if value is not None and not (_is_integer(value) and 1 <= value <= MAX_ID):
            return f"{value!r} is not the id of {what}"
    if decision.score is not None and not (_is_number(decision.score) and 0 <= decision.score <= 1):
        return f"its score {decision.score!r} is not a probability: it must lie between 0 and 1"
    return event_answers.find_problem(decision)


def _find_unknown_value(sql: sqlite_utils.Database, decision: Decision) -> str | None:
    if decision.action not in ACTIONS:
        return f"{decision.action!r} is not an action; there is: {', '.join(ACTIONS)}"
    if decision.source not in SOURCES:
        return f"{decision.source!r} is not a source; there is: {', '.join(SOURCES)}"
    if decision.action == "undo":
        return None
    if not sql.execute("SELECT 1 FROM image WHERE id = ?", [decision.image_id]).fetchone():
        return f"there is no image {decision.image_id} in this project"
    if decision.source == "aside" and decision.action != "flag":
        return f"the source 'aside' is of flags alone, and this is a {decision.action}"
    if decision.action == "comment" and not decision.note.strip():
        return "a comment without text"
    if decision.action not in CELL_ACTIONS:
        return None
    if decision.action == "label" and (not _is_integer(decision.state) or decision.state not in STATE_NAMES):
        return f"{decision.state!r} is not a state; there is: 1 (present), -1 (absent), 0 (unsure)"
    if not sql.execute("SELECT 1 FROM class WHERE id = ?", [decision.class_id]).fetchone():
        return f"there is no class {decision.class_id} in this project"
    return None


def _is_same_content(sql: sqlite_utils.Database, decision: Decision) -> bool:
    """Return whether the stored decision has this content, ignoring score, run and time."""
    row = sql.execute(f"SELECT {_CONTENT_COLUMNS} FROM decision WHERE uuid = ?", [decision.uuid]).fetchone()
    return row is not None and row == tuple(get_content(decision).values())


def get_content(decision: Decision) -> dict[str, object]:
    """Return the columns of a decision that a resend must repeat."""
    label = decision.action == "label"
    return {
        "action": decision.action,
        "image_id": decision.image_id,
        "class_id": decision.class_id if decision.action in CELL_ACTIONS else None,
        "state": decision.state if label else None,
        "note": decision.note if decision.action in ("flag", "comment") else "",
        "source": "done" if decision.action == "done" else decision.source,
        "annotator": decision.annotator,
        "batch": decision.batch,
    }


def _is_same_undo(sql: sqlite_utils.Database, decision_id: int, undo: Decision) -> bool:
    """Return whether the stored row is this undo (it may lack a target)."""
    action, annotator, target, batch = sql.execute(
        """SELECT u.action, u.annotator, t.uuid, t.batch FROM decision u LEFT JOIN decision t ON t.id = u.undoes
        WHERE u.id = ?""",
        [decision_id],
    ).fetchone()
    named = undo.undoes is None or target is None or batch == undo.undoes.removesuffix(":0")
    named = named or undo.undoes in (target, batch)
    return action == "undo" and annotator == undo.annotator and named


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[float]:
    return _is_integer(value) or (isinstance(value, float) and math.isfinite(value))
