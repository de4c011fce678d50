"""Class fields besides name and description (color, key, ...) imported from another project.

Only newly added classes get them, and conflicting fields are dropped.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotator.store.classes import class_changes
from annotator.store.classes.class_changes import MAX_EXAMPLES
from annotator.store.classes.classes import DEFAULT_KEYS, find_name_problem
from annotator.store.database.database import Database

_COLOR_PATTERN = re.compile(r"#[0-9a-f]{6}")


@dataclass(frozen=True)
class ClassFacts:
    """Class fields of another project, named as in `records.Class` and not yet checked."""

    name: str
    description: str = ""
    key: str = ""
    # sort key within the source
    position: int = 0
    heading: str = ""
    colour: str = ""
    synonyms: Sequence[str] = ()
    # sha256 of example images
    examples: Sequence[str] = ()


def apply_facts(db: Database, by: str, facts: Mapping[int, ClassFacts]) -> None:
    """Give newly added classes the imported fields of their source (class id -> fields), as one class change."""
    with db.writing() as sql:
        held: dict[int, tuple[str, int]] = {
            class_id: (key, position)
            for class_id, key, position in sql.execute("SELECT id, key, position FROM class").fetchall()
        }
        names = {name for (name,) in sql.execute("SELECT name FROM class UNION SELECT name FROM synonym").fetchall()}
        wanted = {image for fact in facts.values() for image in fact.examples}
        query = "SELECT sha256, id FROM image WHERE sha256 IN (SELECT value FROM json_each(?))"
        id_of: dict[str, int] = dict(sql.execute(query, [json.dumps(sorted(wanted))]).fetchall())
        keys = _choose_keys(facts, {key for class_id, (key, _) in held.items() if class_id not in facts})
        places = sorted(held[class_id][1] for class_id in facts)
        order = sorted(facts, key=lambda class_id: (facts[class_id].position, held[class_id][1]))
        changes: dict[int, dict[str, Any]] = {
            class_id: {"key": keys[class_id], "position": place} for class_id, place in zip(order, places, strict=True)
        }
        for class_id, fact in facts.items():
            synonyms = [
                name for name in dict.fromkeys(fact.synonyms) if name not in names and not find_name_problem(name)
            ]
            names |= set(synonyms)
            examples = [id_of[image] for image in fact.examples if image in id_of]
            changes[class_id] |= {"synonyms": synonyms, "examples": examples[:MAX_EXAMPLES]}
            if fact.heading and not find_name_problem(fact.heading):
                changes[class_id]["heading"] = fact.heading
            if _COLOR_PATTERN.fullmatch(fact.colour):
                changes[class_id]["colour"] = fact.colour
        class_changes.edit(db, by, changes)


def _choose_keys(facts: Mapping[int, ClassFacts], taken: set[str]) -> dict[int, str]:
    """Return a keyboard key per class: its own, or a free one if its own is invalid or taken."""
    keys: dict[int, str] = {}
    for class_id, fact in facts.items():
        if not fact.key or (len(fact.key) == 1 and fact.key.isalnum() and fact.key.lower() not in taken):
            keys[class_id] = fact.key.lower()
            taken.add(keys[class_id])
    free = [key for key in DEFAULT_KEYS if key not in taken]
    return keys | {class_id: free.pop(0) if free else "" for class_id in facts if class_id not in keys}
