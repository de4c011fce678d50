"""The classes as JSON for pages, and adding one while labeling."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from annotator.errors import AnnotatorError
from annotator.humanize import format_count
from annotator.records import Class
from annotator.roles import Right
from annotator.store.classes import classes
from annotator.store.database import versions
from annotator.store.database.database import Database
from annotator.store.labels import project_counts
from annotator.store.relations import declared_relations

# a setting; on unless it was turned off, since the app serves this computer only
ADDING_ALLOWED_SETTING = "classes_added_while_labeling"


def build_classes_json(db: Database) -> dict[str, Any]:
    """Return all classes, relations and their version as JSON."""
    with db.reading():
        version, known, declared = (
            versions.get_class_version(db),
            classes.load_ordered_classes(db),
            declared_relations.load_relations(db),
        )
    related = {
        "parents": [(child, parent) for child, parents in declared.parents.items() for parent in parents],
        "groups": [
            {"name": group.name, "exactly_one": group.exactly_one, "classes": group.class_ids}
            for group in declared.groups
        ],
    }
    return {"class_version": version, "classes": [build_class_json(class_) for class_ in known], "relations": related}


def build_class_json(class_: Class) -> dict[str, Any]:
    """Return a class as JSON, without its example images."""
    return {name: value for name, value in asdict(class_).items() if name != "examples"}


def is_adding_allowed(db: Database) -> bool:
    return bool(db.get_setting(ADDING_ALLOWED_SETTING, True))


def set_adding_allowed(db: Database, allowed: bool) -> None:
    db.set_setting(ADDING_ALLOWED_SETTING, allowed)


def find_surprises(db: Database, names: Sequence[str]) -> list[str]:
    """Return sentences about surprising effects of adding these classes."""
    known = classes.load_classes_by_name(db)
    new = [name for name in names if name not in known]
    sentences = classes.find_name_warnings(new, known)
    complete = project_counts.count_images_by_stage(db)["complete"]
    if new and complete:
        becoming = format_count(complete, "complete image becomes", "complete images become")
        sentences.append(f"{becoming} incomplete: each new class has to be answered there.")
    return sentences


def add_class(db: Database, by: str, name: str, is_confirmed: bool) -> tuple[Class | None, list[str]]:
    """Add one class while labeling.

    Args:
        is_confirmed: The person has seen the surprises.

    Returns:
        The class and [], or None and surprises.

    Raises:
        AnnotatorError: Adding is not allowed, or the name not valid.
    """
    name = " ".join(name.split())
    if known := classes.load_classes_by_name(db).get(name):
        return known, []
    if not is_adding_allowed(db):
        raise AnnotatorError("Add it on the Classes page, or allow adding there.")
    classes.check_usable([(name, "")])
    sentences = [] if is_confirmed else find_surprises(db, [name])
    if sentences:
        return None, sentences
    classes.add_classes(db, [(name, "")], by, right=Right.ANSWER)
    return classes.load_classes_by_name(db)[name], []
