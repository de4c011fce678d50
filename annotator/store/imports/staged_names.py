"""Resolution of image and class names in a staged source.

An image is found by its sha256 where the source states it, because its content identifies an image. Otherwise it is
found by its name, the path of a file, a former name, an absolute path in one of the project's folders, or by a part of
a path that names one image only ("a/1.jpg" for "train/a/1.jpg", and the other way round). Accents may be written in
either Unicode form: macOS lists files with "e" and an accent where other systems have one letter. A class is found by
its name or synonym, by the user's class map, and then by its name without regard to case and blanks.
"""

import json
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import sqlite_utils

from annotator.errors import did_you_mean
from annotator.records import Class
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.imports.staging import Staging
from annotator.store.pictures.files import escaped

DEEPEST = 12  # largest number of folders with which the end of a name is tried as another name
FORMS = ("NFC", "NFD")  # Unicode forms in which a name that is not ASCII may be written
OTHER_CONTENT = "the image of this name has another content"
NO_IMAGE = "no image of the project has this name"
SEVERAL = "several images have this name"
NO_FILE = "its file is not there"
SKIPPED = "its file was skipped: "
OUTSIDE = "an absolute path outside the image folders"

KNOWN, NEW, SYNONYM, ALIKE, MAPPED, LEFT_OUT = "known", "new", "synonym", "alike", "mapped", "left out"
RESTORED = "restored"  # its import was taken back
UNCLEAR = "unclear"  # not usable as it is: left out until a class map maps it


@dataclass(frozen=True)
class Rules:
    """The rules by which names are resolved.

    Attributes:
        class_map: Name in the source -> class of the project, which may be new; "" leaves the class out.
        strict: Unknown names are mistakes: of images, and of classes where the project or `listed` has any.
        listed: Classes that are about to be added.
        folder: The folder that the files of items are relative to; None: the source brings no images.
    """

    class_map: Mapping[str, str]
    strict: bool = False
    listed: Collection[str] = ()
    folder: Path | None = None


def resolve(staging: Staging, db: Database, rules: Rules, note: Callable[[str], None]) -> None:
    """Resolve the images and classes of all items; a second call resolves all of them again.

    Args:
        note: Receives a sentence for every name that cannot be used.
    """
    with staging.attached(db) as sql:
        sql.conn.create_function("tail", 2, _tail, deterministic=True)
        sql.conn.create_function("depth", 1, _depth, deterministic=True)
        sql.conn.create_function("normalized", 2, _normalized, deterministic=True)
        sql.conn.create_function("stem", 1, _stem, deterministic=True)
        sql.execute("UPDATE staged.item SET image_id = NULL, reason = '', is_part = 0")
        _images(sql, rules)
        _note_images(staging, sql, rules, note)
        _classes(staging, db, sql, rules, note)


def _depth(name: str) -> int:
    return name.count("/")


def _tail(name: str, folders: int) -> str | None:
    """Return the end of a path with `folders` folders; None where the path has fewer."""
    parts = name.rsplit("/", folders + 1)
    return name if len(parts) == folders + 1 else "/".join(parts[1:]) if len(parts) > folders + 1 else None


def _normalized(name: str, form: Literal["NFC", "NFD"]) -> str:
    return unicodedata.normalize(form, name)


def _forms(name: str) -> list[tuple[str, str]]:
    """Return (SQL of the name in a Unicode form, condition under which it may differ from the name) for each form."""
    return [(f"normalized({name}, '{form}')", f"{name} GLOB '*[^ -~]*'") for form in FORMS]


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0].replace("%20", " ")  # ids of VOC have no blanks


def _images(sql: sqlite_utils.Database, rules: Rules) -> None:
    by_content = "(SELECT id FROM image i WHERE i.sha256 = item.sha256)"
    sql.execute(f"UPDATE staged.item SET image_id = {by_content} WHERE sha256 != ''")
    if rules.folder:
        _files(sql, rules.folder)
        _written(sql)
    open_ = "image_id IS NULL AND file = ''"
    # A file about to be registered may have this content: that is known once it was read.
    coming = "SELECT number FROM staged.coming n WHERE n.path = item.name"
    sql.execute(f"UPDATE staged.item SET image_id = ({coming}) WHERE {open_} AND sha256 != ''")
    with_other = f"UPDATE staged.item SET reason = ? WHERE {open_} AND sha256 != ''"
    sql.execute(f"{with_other} AND name IN (SELECT name FROM image)", [OTHER_CONTENT])
    sql.execute(with_other + " AND reason = ''", [NO_IMAGE])
    open_ += " AND sha256 = ''"
    folders: list[tuple[int, str]] = sql.execute("SELECT id, path FROM folder ORDER BY id").fetchall()
    # Unchanged; without blanks and "./"; with the apostrophe that CSVs put before formulas; with "/" for "\".
    trimmed = "trim(item.name)"
    without_dot = f"iif(substr({trimmed}, 1, 2) = './', substr({trimmed}, 3), {trimmed})"
    for name in ("item.name", without_dot, "'''' || item.name", "replace(item.name, '\\', '/')"):
        _exactly(sql, open_, name, folders)
    for name, may_differ in _forms("item.name"):
        _exactly(sql, f"{open_} AND {may_differ}", name, folders)
    for folder_id, path in folders:
        prefix = path.rstrip("/") + "/"
        relative = "substr(item.name, length(?2) + 1)"
        sql.execute(
            f"""UPDATE staged.item SET image_id = (SELECT image_id FROM file WHERE folder_id = ?1 AND path = {relative})
            WHERE {open_} AND substr(name, 1, length(?2)) = ?2""",
            [folder_id, prefix],
        )
    for name, may_differ in [("item.name", "1"), *_forms("item.name")]:
        _by_parts(sql, f"{open_} AND {may_differ}", name)
    sql.execute(f"UPDATE staged.item SET reason = ? WHERE {open_} AND reason = '' AND name LIKE '/%'", [OUTSIDE])
    sql.execute(f"UPDATE staged.item SET reason = ? WHERE {open_} AND reason = ''", [NO_IMAGE])


def _exactly(sql: sqlite_utils.Database, open_: str, name: str, folders: list[tuple[int, str]]) -> None:
    """Find images by exact name, in the order of images.names_to_ids: image names, file paths, then former names."""
    lookups: list[tuple[str, list[int]]] = [("SELECT id FROM image i WHERE i.name = {name}", [])]
    by_file = "SELECT image_id FROM file f WHERE f.folder_id = ? AND f.path = {name} AND image_id NOT NULL"
    lookups += [(by_file, [folder_id]) for folder_id, _ in folders]
    for lookup, values in lookups:
        sql.execute(f"UPDATE staged.item SET image_id = ({lookup.format(name=name)}) WHERE {open_}", values)
    for folder_id, _ in folders:
        kept_out = f"SELECT reason FROM file f WHERE f.folder_id = ? AND f.path = {name} AND f.reason != ''"
        sql.execute(
            f"UPDATE staged.item SET reason = coalesce(? || ({kept_out}), reason) WHERE {open_}", [SKIPPED, folder_id]
        )
    coming = f"SELECT number FROM staged.coming n WHERE n.path = {name}"
    sql.execute(f"UPDATE staged.item SET image_id = ({coming}) WHERE {open_} AND reason = ''")
    former = f"SELECT image_id FROM alias a WHERE a.name = {name}"
    sql.execute(f"UPDATE staged.item SET image_id = ({former}) WHERE {open_} AND reason = ''")


def _files(sql: sqlite_utils.Database, folder: Path) -> None:
    """Find the images of items that bring a file: the registered image, or a negative number for a new one."""
    row = sql.execute("SELECT id FROM folder WHERE path = ?", [escaped(str(folder.resolve()))]).fetchone()
    for file, may_differ in [("item.file", "1"), *_forms("item.file")]:
        open_ = f"image_id IS NULL AND file != '' AND {may_differ}"
        if row:
            found = f"FROM file f WHERE f.folder_id = ? AND f.path = {file}"
            sql.execute(f"UPDATE staged.item SET image_id = (SELECT image_id {found}) WHERE {open_}", [row[0]])
            sql.execute(
                f"""UPDATE staged.item SET reason = coalesce(? || (SELECT f.reason {found} AND f.reason != ''), reason)
                WHERE {open_}""",
                [SKIPPED, row[0]],
            )
        coming = f"(SELECT number FROM staged.coming n WHERE n.path = {file})"
        sql.execute(f"UPDATE staged.item SET image_id = {coming} WHERE {open_} AND reason = ''")
    sql.execute("UPDATE staged.item SET reason = ? WHERE image_id IS NULL AND file != '' AND reason = ''", [NO_FILE])


def _written(sql: sqlite_utils.Database) -> None:
    """Find the images of items from files beside an export by the stem of the file, if it is that of one image only."""
    open_ = "image_id IS NULL AND written != ''"
    if not sql.execute(f"SELECT 1 FROM staged.item WHERE {open_} LIMIT 1").fetchone():
        return
    sql.execute("CREATE TEMP TABLE written (stem TEXT PRIMARY KEY, image_id INTEGER) WITHOUT ROWID")
    sql.execute(
        """INSERT INTO temp.written SELECT stem(file) AS stem, min(image_id) FROM staged.item
        WHERE file != '' AND image_id NOT NULL GROUP BY 1 HAVING min(image_id) = max(image_id)
        OR max(image_id) < 0"""  # copies, which are one image once they are registered
    )
    by_stem = "SELECT w.image_id FROM temp.written w WHERE w.stem = stem(item.written)"
    sql.execute(f"UPDATE staged.item SET image_id = ({by_stem}) WHERE {open_}")
    sql.execute("DROP TABLE temp.written")


def _by_parts(sql: sqlite_utils.Database, open_: str, name: str) -> None:
    """Find images whose name is the end of the item's name, or the other way round."""
    open_ += " AND reason = '' AND written = ''"
    if not sql.execute(f"SELECT 1 FROM staged.item WHERE {open_} LIMIT 1").fetchone():
        return
    # The item's name is longer: find its longest end that is the name of an image.
    deepest = sql.execute(f"SELECT min(max(depth(name)), ?) FROM staged.item WHERE {open_}", [DEEPEST]).fetchone()[0]
    for folders in range(deepest - 1, -1, -1):
        sql.execute(
            f"""UPDATE staged.item SET is_part = 1,
                image_id = coalesce((SELECT id FROM image i WHERE i.name = tail({name}, {folders})),
                    (SELECT number FROM staged.coming n WHERE n.path = tail({name}, {folders})))
            WHERE {open_} AND depth(name) > {folders}"""
        )
    # The item's name is shorter: find the only image whose name ends with it.
    wanted = sql.execute(f"SELECT DISTINCT depth(name) FROM staged.item WHERE {open_}").fetchall()
    for (folders,) in wanted:
        sql.execute("CREATE TEMP TABLE ends (name TEXT PRIMARY KEY, low INTEGER, high INTEGER) WITHOUT ROWID")
        sql.execute(
            f"""INSERT INTO temp.ends SELECT tail(name, {folders}) AS part, min(id), max(id) FROM (
                SELECT name, id FROM image UNION ALL SELECT path, image_id FROM file WHERE image_id NOT NULL
                UNION ALL SELECT path, number FROM staged.coming)
            WHERE depth(name) >= {folders} GROUP BY part"""
        )
        sql.execute(
            f"""UPDATE staged.item SET is_part = 1, reason = CASE WHEN e.low = e.high THEN '' ELSE ? END,
                image_id = CASE WHEN e.low = e.high THEN e.low END
            FROM temp.ends e WHERE {open_} AND e.name = {name}""",
            [SEVERAL],
        )
        sql.execute("DROP TABLE temp.ends")


def _note_images(staging: Staging, sql: sqlite_utils.Database, rules: Rules, note: Callable[[str], None]) -> None:
    """Note image names that are mistakes: ambiguous ones, and in strict mode unknown ones."""
    bad = f"reason = '{SEVERAL}'"
    if rules.strict:
        bad += f" OR reason IN ('{NO_IMAGE}', '{OUTSIDE}', '{OTHER_CONTENT}')"
    query = f"SELECT place, name, reason FROM staged.item WHERE image_id IS NULL AND ({bad}) ORDER BY id"
    for place, name, reason in sql.execute(query):
        words = f"no image is called {name!r}" if reason == NO_IMAGE else f"{name!r}: {reason}"
        note(f"{staging.place(place)}: {words}{'; give more of its path' if reason == SEVERAL else ''}")
    twice = """SELECT i.place, i.name, o.name, o.place, m.name FROM staged.item i
        JOIN (SELECT image_id, min(id) AS id FROM staged.item WHERE image_id > 0 AND written = '' GROUP BY image_id
            HAVING max(is_part) AND min(name) != max(name)) t ON t.image_id = i.image_id
        JOIN staged.item o ON o.id = t.id JOIN image m ON m.id = i.image_id
        WHERE i.id != o.id AND i.name != o.name AND i.written = '' AND (i.is_part OR o.is_part) ORDER BY i.id"""
    for place, name, other, first, image in sql.execute(twice):
        note(
            f"{staging.place(place)}: {name!r} and {other!r} ({staging.place(first)}) could both be the image "
            f"{image!r}; give names that tell them apart"
        )


def _classes(
    staging: Staging, db: Database, sql: sqlite_utils.Database, rules: Rules, note: Callable[[str], None]
) -> None:
    named = classes.by_name(db)
    gone = {class_.name: class_.id for class_ in classes.archived(db) if class_.name not in named}
    back = {name: class_id for name, class_id in gone.items() if class_id in taken_back_classes(sql)}
    archived = gone.keys() - back.keys()
    alike: dict[str, set[str]] = {}
    for name, class_ in named.items():
        alike.setdefault(classes.looks(name), set()).add(class_.name)
    rows: list[tuple[int, str, str]] = []
    listed: list[tuple[int, str]] = sql.execute("SELECT id, name FROM staged.class ORDER BY id").fetchall()
    rivals: dict[str, list[str]] = {}
    for _, name in listed:
        if name not in rules.class_map:
            rivals.setdefault(classes.looks(name), []).append(name)
    staging.unclear = {}
    staging.warnings = _of_the_map(rules, {name for _, name in listed}, named)
    for class_id, name in listed:
        target, how = _target(name, named, alike, rules)
        near = alike.get(classes.looks(name), set())
        unclear = ""
        if how in (NEW, ALIKE) and near and len(near) + len(rivals[classes.looks(name)]) > 2:
            unclear = _unclear(name, near, rivals[classes.looks(name)])
        elif target in archived and how != LEFT_OUT:
            unclear = f"the class {target!r} is archived: restore it, or choose another"
        elif target in back and how != LEFT_OUT:
            how = RESTORED
        elif how == NEW or (how == MAPPED and target not in named):
            if rules.strict and (named or rules.listed):
                if target not in rules.listed:
                    first = _first_place(staging, sql, class_id)
                    note(f"{first}no class is called {name!r}. {did_you_mean(name, [*rules.listed, *named])}")
            elif problem := classes.name_problem(target):
                unclear = f"{_first_place(staging, sql, class_id)}not usable as a class: {problem}"
        if unclear and rules.strict:
            note(unclear)
        elif unclear:
            how, staging.unclear[name] = UNCLEAR, unclear
        rows.append((class_id, target, how))
    ids = back | {name: class_.id for name, class_ in named.items()}
    sql.execute("DELETE FROM staged.target")
    for class_id, target, how in rows:
        number = None
        if how not in (LEFT_OUT, UNCLEAR):
            sql.execute("INSERT OR IGNORE INTO staged.target (name, class_id) VALUES (?, ?)", [target, ids.get(target)])
            number = sql.execute("SELECT id FROM staged.target WHERE name = ?", [target]).fetchone()[0]
        sql.execute("UPDATE staged.class SET target = ?, how = ? WHERE id = ?", [number, how, class_id])


def _of_the_map(rules: Rules, names: Collection[str], named: Collection[str]) -> list[str]:
    """Return warnings about possible slips in the class map: unused names, and classes that are new."""
    unused = [
        f"The class map names {name!r}, which is not in the source." for name in rules.class_map if name not in names
    ]
    added = {rules.class_map[name] for name in names if rules.class_map.get(name)} - {*named}
    return [*unused, *(f"The class map names the class {name!r}, which is new." for name in sorted(added))]


def _unclear(name: str, near: Collection[str], rivals: Collection[str]) -> str:
    """Return why a name that looks like an existing class is not taken for that class."""
    if len(near) > 1:
        could = " or ".join(map(repr, sorted(near)))
    else:
        twins = " and ".join(repr(other) for other in rivals if other != name)
        could = f"{next(iter(near))!r} or a class of its own, as the source has {twins} besides"
    return f"{name!r} could be {could}"


def taken_back_classes(sql: sqlite_utils.Database) -> set[int]:
    """Return the classes that are archived because the import that added them was taken back (imports.py)."""
    rows = sql.execute("SELECT counts FROM import WHERE undone_at NOT NULL").fetchall()
    ids = {class_id for (counts,) in rows for class_id in json.loads(counts).get("archived", ())}
    archived = sql.execute("SELECT id FROM class WHERE archived = 1 AND merged_into IS NULL").fetchall()
    return ids & {row[0] for row in archived}


def _target(name: str, named: Mapping[str, Class], alike: Mapping[str, set[str]], rules: Rules) -> tuple[str, str]:
    """Return the project's class that a name of the source stands for, and how it was found."""
    if name in rules.class_map:
        wanted = rules.class_map[name]
        return (named[wanted].name if wanted in named else wanted), MAPPED if wanted else LEFT_OUT
    if name in named:
        return named[name].name, KNOWN if named[name].name == name else SYNONYM
    near = alike.get(classes.looks(name), set())
    return (next(iter(near)), ALIKE) if len(near) == 1 else (name, NEW)


def _first_place(staging: Staging, sql: sqlite_utils.Database, class_id: int) -> str:
    query = (
        "SELECT i.place FROM staged.given g JOIN staged.item i ON i.id = g.item WHERE g.class = ? ORDER BY g.id LIMIT 1"
    )
    row = sql.execute(query, [class_id]).fetchone()
    return f"{staging.place(row[0])}: " if row else ""
