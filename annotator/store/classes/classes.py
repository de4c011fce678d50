"""The classes of a project, never removed so that decisions keep their meaning."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import sqlite_utils

from annotator.errors import AnnotatorError, combine_problems, did_you_mean
from annotator.records import Class
from annotator.roles import Right
from annotator.store.classes.class_history import record_added, record_descriptions
from annotator.store.database.database import Database, get_newest_decision_id

MAX_NAME_CHARACTERS = 200
MAX_DESCRIPTION_CHARACTERS = 2000
RESERVED_NAMES = ("image",)  # the first column of a CSV export
DEFAULT_KEYS = "1234567890qwertyuiopasdfghjklzxcvbnm"
"""Default keys, in the order of the classes; any letter or digit may be chosen. Punctuation is for commands."""


def load_active_classes(db: Database) -> list[Class]:
    """Return the active classes in the order added (columns of arrays and exports)."""
    return _load_classes(db, archived=0)


def count_classes(db: Database) -> int:
    return db.value("SELECT count(*) FROM class WHERE archived = 0")


def load_archived_classes(db: Database) -> list[Class]:
    """Return the archived classes in the order added."""
    return _load_classes(db, archived=1)


def load_archived_class_ids(db: Database) -> list[int]:
    return [row[0] for row in db.tuples("SELECT id FROM class WHERE archived = 1")]


def load_ordered_classes(db: Database) -> list[Class]:
    """Return the active classes by heading and position."""
    known = load_active_classes(db)
    first: dict[str, int] = {"": -1}
    for class_ in known:
        first[class_.heading] = min(first.get(class_.heading, class_.position), class_.position)
    return sorted(known, key=lambda class_: (first[class_.heading], class_.heading, class_.position, class_.id))


def _load_classes(db: Database, archived: int) -> list[Class]:
    with db.reading() as sql:
        synonyms, examples = defaultdict[int, list[str]](list), defaultdict[int, list[int]](list)
        for class_id, name in sql.execute("SELECT class_id, name FROM synonym ORDER BY name").fetchall():
            synonyms[class_id].append(name)
        for class_id, image_id in sql.execute("SELECT class_id, image_id FROM example ORDER BY place").fetchall():
            examples[class_id].append(image_id)
        rows = sql.execute(
            """SELECT id, name, description, key, position, heading, colour FROM class WHERE archived = ?
            ORDER BY id""",
            [archived],
        ).fetchall()
    return [Class(*row, synonyms=tuple(synonyms[row[0]]), examples=tuple(examples[row[0]])) for row in rows]


def add_classes(db: Database, new: Sequence[tuple[str, str]], by: str = "", right: Right = Right.OWN) -> list[str]:
    """Add classes or update their descriptions, and return the added names.

    New classes get the first free DEFAULT_KEYS.

    Args:
        new: (name, description) pairs.

    Raises:
        AnnotatorError: Lists all invalid texts and archived names.
    """
    check_usable(new)
    with db.writing(right=right) as sql:
        check_not_archived(sql, [name for name, _ in new])
        known = dict(sql.execute("SELECT name, class_id FROM synonym").fetchall())
        known |= dict(sql.execute("SELECT name, id FROM class WHERE archived = 0").fetchall())
        taken = {row[0] for row in sql.execute("SELECT key FROM class").fetchall()}
        free = [key for key in DEFAULT_KEYS if key not in taken]
        newest = get_newest_decision_id(sql)
        position = sql.execute("SELECT coalesce(max(position), 0) FROM class").fetchone()[0]
        before = _load_descriptions(sql)
        added: list[str] = []
        for name, description in new:
            if name not in known:
                position += 1
                row = {"name": name, "description": description, "since_decision": newest, "position": position}
                known[name] = sql["class"].insert(row | {"key": free.pop(0) if free else ""}).last_pk
                added.append(name)
            elif description:
                sql.execute("UPDATE class SET description = ? WHERE id = ?", [description, known[name]])
        # "Nothing else here" covered only the classes of its time, so complete images get an open class.
        if added:
            record_added(sql, by, [known[name] for name in added])
        record_descriptions(sql, by, before, _load_descriptions(sql))
    return added


def _load_descriptions(sql: sqlite_utils.Database) -> dict[int, str]:
    return dict(sql.execute("SELECT id, description FROM class").fetchall())


def check_usable(new: Sequence[tuple[str, str]]) -> None:
    """Raise AnnotatorError that lists all invalid names and descriptions."""
    problems = [problem for name, _ in new if (problem := find_name_problem(name))]
    problems += [problem for name, text in new if (problem := find_description_problem(name, text))]
    if problems:
        raise combine_problems("These classes cannot be used:", problems)


def check_not_archived(sql: sqlite_utils.Database, names: Iterable[str]) -> None:
    """Raise AnnotatorError that lists the names of archived classes among these. Synonyms of other classes pass."""
    rows = sql.execute(
        "SELECT name FROM class WHERE archived = 1 AND name NOT IN (SELECT name FROM synonym) ORDER BY id"
    ).fetchall()
    archived_names = {row[0] for row in rows}
    problems = [f"{name!r} is archived: restore it" for name in dict.fromkeys(names) if name in archived_names]
    if problems:
        raise combine_problems("These classes exist already:", problems)


def find_class(db: Database, name: str) -> Class:
    """Return the class with this name or synonym, or raise AnnotatorError that suggests similar names."""
    named = load_classes_by_name(db)
    if name in named:
        return named[name]
    hint = did_you_mean(name, named)
    if any(class_.name == name for class_ in load_archived_classes(db)):
        hint = f"It is archived: annotator classes restore {db.paths.project} {name!r} brings it back."
    raise AnnotatorError(f"No class is called {name!r}. {hint}")


def load_class_names(db: Database) -> dict[int, str]:
    """Return class id -> name, including archived classes."""
    return dict(db.tuples("SELECT id, name FROM class ORDER BY id"))


def load_classes_by_name(db: Database) -> dict[str, Class]:
    """Return the active classes by name, else by synonym."""
    known = load_active_classes(db)
    named = {class_.name: class_ for class_ in known}
    for class_ in known:
        for synonym in class_.synonyms:
            named.setdefault(synonym, class_)
    return named


def find_name_problem(name: str) -> str | None:
    """Return why a text cannot be a class name, or None."""
    if not name.strip():
        return "a blank name"
    if name != name.strip():
        return f"{name!r} begins or ends with a space"
    if len(name) > MAX_NAME_CHARACTERS:
        return f"{name[:40]!r}... has {len(name):,} letters; at most {MAX_NAME_CHARACTERS} are allowed"
    if "|" in name or any(unicodedata.category(letter) in _SEPARATOR_CATEGORIES for letter in name):
        return f"{name!r} contains '|' or a control character, which separate labels in files"
    if any(unicodedata.category(letter) == "Cs" for letter in name):
        return f"{name!r} contains half a letter (a lone surrogate), which no file can hold"
    if name in RESERVED_NAMES:
        return f"{name!r} is the name of the first column of an export"
    return None


def find_description_problem(name: str, description: str) -> str | None:
    """Return why a text cannot be a class description, or None."""
    if len(description) > MAX_DESCRIPTION_CHARACTERS:
        return (
            f"the description of {name[:40]!r} has {len(description):,} letters; at most "
            f"{MAX_DESCRIPTION_CHARACTERS:,} are allowed"
        )
    if any(unicodedata.category(letter) == "Cs" for letter in description):
        return f"the description of {name[:40]!r} contains half a letter (a lone surrogate), which no file can hold"
    return None


def find_name_warnings(new: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return warnings about new names, such as look-alikes."""
    existing = set(known)
    first = {build_lookalike_key(name): name for name in sorted(existing, reverse=True)}
    warnings: list[str] = []
    for name in dict.fromkeys(new):
        if name in existing:
            continue
        twin = first.setdefault(build_lookalike_key(name), name)
        invisible = any(unicodedata.category(letter) == "Cf" for letter in name)
        if twin != name:
            warnings.append(f"{ascii(name) if invisible else repr(name)} looks like {twin!r}. Is it the same class?")
        elif invisible:
            warnings.append(f"{name!a} contains characters that cannot be seen. Were they copied by mistake?")
    return warnings


# control characters, and the separators at which Python and editors break lines
_SEPARATOR_CATEGORIES = ("Cc", "Zl", "Zp")


def build_lookalike_key(name: str) -> str:
    """Return a key shared by look-alike names."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    visible = "".join(letter for letter in plain if unicodedata.category(letter) != "Cf")
    return " ".join(unicodedata.normalize("NFKC", visible).split())


def find_key_problems(wanted: Mapping[int, str], names: Mapping[int, str]) -> list[str]:
    """Return why classes cannot get these keyboard keys (class id -> letter or digit, or "" for none)."""
    problems = [f"there is no class {class_id} in this project" for class_id in wanted if class_id not in names]
    for class_id, key in wanted.items():
        if key and not (len(key) == 1 and key.isalnum()):
            problems.append(
                f"{key!r} of {names.get(class_id, class_id)!r} is not one letter or digit"
                + (" (punctuation belongs to commands)" if len(key) == 1 else "")
            )
    for key, times in Counter(key for key in wanted.values() if key).items():
        if times > 1:
            both = " and ".join(
                repr(names.get(class_id, class_id)) for class_id, other in wanted.items() if other == key
            )
            problems.append(f"{key!r} is given to {both}: a key belongs to one class")
    return problems
