"""Descriptions of class changes, for pages and the command line."""

from collections.abc import Iterator

from annotator.humanize import format_count
from annotator.store.classes.class_history import ClassChange, ClassState, load_changes
from annotator.store.database.database import Database

_KIND_VERBS = {"add": "added", "split": "split off", "archive": "archived", "restore": "restored"}
_FIELD_SPELLINGS = {"colour": "color"}  # as pages spell it


def describe_history(db: Database, limit: int | None = None) -> Iterator[tuple[ClassChange, str]]:
    """Yield class changes with descriptions in the names of that time, newest first."""
    with db.reading():
        changes, names = load_changes(db, limit), dict(db.tuples("SELECT id, name FROM class"))
    for change in changes:
        yield change, describe_change(change, names)
        names |= {class_id: state["name"] for class_id, state in change.before.items() if "name" in state}


def describe_change(change: ClassChange, names: dict[int, str]) -> str:
    """Return a text that describes a class change (`names`: class id -> name after it, with archived classes)."""
    if change.kind == "undo":
        return f"undid change {change.undoes}"
    if change.kind == "edit":
        parts = [
            part
            for class_id, after in change.after.items()
            for part in _describe_edits(change.before[class_id], after, names.get(class_id, str(class_id)))
        ]
        moved = any("position" in after for after in change.after.values())
        return "; ".join([*parts, *(["reordered the classes"] if moved else [])])
    moved = [class_id for class_id, after in change.after.items() if "archived" in after]
    listed = ", ".join(repr(names.get(class_id, str(class_id))) for class_id in moved)
    if change.kind == "merge":
        into = next(state["merged_into"] for state in change.after.values() if state.get("merged_into"))
        return f"merged {listed} into {names.get(into, str(into))!r} ({format_count(change.decisions, 'answer')})"
    return f"{_KIND_VERBS[change.kind]} {listed}"


def _describe_edits(before: ClassState, after: ClassState, name: str) -> list[str]:
    parts: list[str] = []
    for field, new in after.items():
        old, words = before.get(field), f"{_FIELD_SPELLINGS.get(field, field)} of {name!r}"
        if field == "name":
            parts.append(f"renamed {old!r} to {new!r}")
        elif field in ("synonyms", "examples"):
            parts.append(f"{words}: {len(new):,}")
        elif field != "position":
            parts.append(f"{words}: {new or 'none'}")
    return parts
