"""The classes of a project: added at the end, never removed, so that a decision always keeps its meaning."""

from collections.abc import Sequence

from annotator.errors import AnnotatorError, did_you_mean, several
from annotator.records import Class
from annotator.store.database import Database

LONGEST_NAME = 200
TAKEN_NAMES = ("image",)  # the first column of a CSV export


def all_classes(db: Database) -> list[Class]:
    """Every class in the order in which it was added: the column order of arrays and exports."""
    return [Class(**row) for row in db.rows("SELECT id, name, description FROM class ORDER BY id")]


def add_classes(db: Database, new: Sequence[tuple[str, str]]) -> list[str]:
    """Add classes that do not exist yet; a description given again replaces the old one. Returns the added names.

    new    (name, description) pairs

    Raises AnnotatorError for names that cannot be used, all at once.
    """
    problems = [problem for name, _ in new if (problem := name_problem(name))]
    if problems:
        raise several("These classes cannot be used:", problems)
    with db.writing() as sql:
        known = {row["name"] for row in sql.query("SELECT name FROM class")}
        newest = sql.execute("SELECT coalesce(max(id), 0) FROM decision").fetchone()[0]
        for name, description in new:
            if name in known:
                if description:
                    sql.execute("UPDATE class SET description = ? WHERE name = ?", [description, name])
            else:
                sql["class"].insert({"name": name, "description": description, "since_decision": newest})
        # "Nothing else here" covered the classes of its time: images complete until now have something open again.
        added = [name for name, _ in new if name not in known]
        if added:
            sql.execute("UPDATE image SET stage = 2 WHERE stage = 3")
    return added


def find_class(db: Database, name: str) -> Class:
    """The class called `name`. Raises AnnotatorError naming near ones."""
    classes = all_classes(db)
    for known in classes:
        if known.name == name:
            return known
    raise AnnotatorError(f"No class is called {name!r}. {did_you_mean(name, [known.name for known in classes])}")


def name_problem(name: str) -> str | None:
    """Why a name cannot be a class, None when it can."""
    if not name.strip():
        return "a blank name"
    if name != name.strip():
        return f"{name!r} begins or ends with a space"
    if len(name) > LONGEST_NAME:
        return f"{name[:40]!r}... has {len(name)} letters; at most {LONGEST_NAME} are allowed"
    if "|" in name or any(ord(letter) < 32 for letter in name):
        return f"{name!r} contains '|' or a control character, which separate labels in files"
    if name in TAKEN_NAMES:
        return f"{name!r} is the name of the first column of an export"
    return None
