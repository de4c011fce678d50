"""The classes as pages hold them, and adding one: what may be a surprise about it, and whether pages may do it where a
class is missing.

Adding is safe when two people add the same name at once: both get the same class. What somebody types as a new name and
is one already, or the synonym of one, adds nothing.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from annotator.errors import AnnotatorError
from annotator.records import Class
from annotator.roles import Right
from annotator.shares import counted
from annotator.store.classes import classes
from annotator.store.database import versions
from annotator.store.database.database import Database
from annotator.store.labels import counts as overview

ALLOWED = (
    "classes_added_while_labeling"  # a setting; on unless it was turned off, since the app serves this computer only
)


def all_classes(db: Database) -> dict[str, Any]:
    """Every class in the order of lists, as JSON, and the version of the classes that this is."""
    with db.reading():
        version, known = versions.class_version(db), classes.in_order(db)
    return {"class_version": version, "classes": [as_json(class_) for class_ in known]}


def as_json(class_: Class) -> dict[str, Any]:
    """A class without its examples: some people are still to answer them blind (routes/work.py shows the others)."""
    return {name: value for name, value in asdict(class_).items() if name != "examples"}


def is_allowed(db: Database) -> bool:
    """Whether a class may be added where somebody looks for one that is missing (the finder of Annotate)."""
    return bool(db.setting(ALLOWED, True))


def allow(db: Database, allowed: bool) -> None:
    """Let people add classes while they label, or not."""
    db.set_setting(ALLOWED, allowed)


def surprises(db: Database, names: Sequence[str]) -> list[str]:
    """What may be a surprise about adding these classes, as sentences; [] where nothing is."""
    known = classes.by_name(db)
    new = [name for name in names if name not in known]
    sentences = classes.name_warnings(new, known)
    complete = overview.image_counts(db)["complete"]
    if new and complete:
        becoming = counted(complete, "complete image becomes", "complete images become")
        sentences.append(f"{becoming} incomplete: each new class has to be answered there.")
    return sentences


def add_class(db: Database, by: str, name: str, sure: bool) -> tuple[Class | None, list[str]]:
    """Add one class while labeling: the class of this name, or None and what may be a surprise.

    Args:
        by: Who adds it.
        sure: The person has seen what may be a surprise.

    Raises AnnotatorError where that is not allowed, and for a name that cannot be used.
    """
    name = " ".join(name.split())
    if known := classes.by_name(db).get(name):
        return known, []
    if not is_allowed(db):
        raise AnnotatorError(
            "Classes are not added while labeling in this project. Add it on the Classes page, or allow it there."
        )
    classes.refuse_unusable([(name, "")])
    sentences = [] if sure else surprises(db, [name])
    if sentences:
        return None, sentences
    classes.add_classes(db, [(name, "")], by, right=Right.ANSWER)
    return classes.by_name(db)[name], []
