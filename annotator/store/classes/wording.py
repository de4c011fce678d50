"""Changes of classes in words, for the Classes page and the command line."""

from collections.abc import Iterator

from annotator.shares import counted
from annotator.store.classes.history import ClassChange, State, history
from annotator.store.database.database import Database

_VERBS = {"add": "added", "split": "split off", "archive": "archived", "restore": "restored"}
_FIELDS = {"colour": "color"}  # as pages spell it


def history_in_words(db: Database, limit: int | None = None) -> Iterator[tuple[ClassChange, str]]:
    """Yield each change of classes with a text that uses the names of its time, newest first, at most `limit`."""
    with db.reading():
        changes, names = history(db, limit), dict(db.tuples("SELECT id, name FROM class"))
    for change in changes:
        yield change, in_words(change, names)
        names |= {class_id: state["name"] for class_id, state in change.before.items() if "name" in state}


def in_words(change: ClassChange, names: dict[int, str]) -> str:
    """Return a text of what a change did.

    Args:
        change: The change.
        names: Class id -> name right after the change, including archived classes.
    """
    if change.kind == "undo":
        return f"undid change {change.undoes}"
    if change.kind == "edit":
        parts = [
            part
            for class_id, after in change.after.items()
            for part in _edits(change.before[class_id], after, names.get(class_id, str(class_id)))
        ]
        moved = any("position" in after for after in change.after.values())
        return "; ".join([*parts, *(["reordered the classes"] if moved else [])])
    moved = [class_id for class_id, after in change.after.items() if "archived" in after]
    listed = ", ".join(repr(names.get(class_id, str(class_id))) for class_id in moved)
    if change.kind == "merge":
        into = next(state["merged_into"] for state in change.after.values() if state.get("merged_into"))
        return f"merged {listed} into {names.get(into, str(into))!r} ({counted(change.decisions, 'answer')})"
    return f"{_VERBS[change.kind]} {listed}"


def _edits(before: State, after: State, name: str) -> list[str]:
    parts: list[str] = []
    for field, new in after.items():
        old, words = before.get(field), f"{_FIELDS.get(field, field)} of {name!r}"
        if field == "name":
            parts.append(f"renamed {old!r} to {new!r}")
        elif field in ("synonyms", "examples"):
            parts.append(f"{words}: {len(new):,}")
        elif field != "position":
            parts.append(f"{words}: {new or 'none'}")
    return parts
