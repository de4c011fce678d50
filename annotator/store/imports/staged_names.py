"""Matching of a staged source's image and class names to those of the project.

Images match by sha256, else name. Classes match by class map, else name or synonym, else name without case and spaces.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlite_utils

from annotator.errors import did_you_mean
from annotator.records import Class
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images.name_forms import strip_query
from annotator.store.images.name_kinds import (
    NO_IMAGE_REASON,
    OTHER_FOLDER_REASON,
    SEVERAL_IMAGES_REASON,
    define_functions,
)
from annotator.store.images.name_matching import (
    OUTSIDE_REASON,
    SKIPPED_REASON,
    NameOrigin,
    build_unicode_forms,
    match_names,
)
from annotator.store.imports.staging import Staging
from annotator.store.pictures.files import escape_path

OTHER_CONTENT_REASON = "the image of this name has another content"
NO_FILE_REASON = "its file is not there"

KNOWN, NEW, SYNONYM, ALIKE, MAPPED, LEFT_OUT = "known", "new", "synonym", "alike", "mapped", "left out"
RESTORED = "restored"  # its import was taken back
UNCLEAR = "unclear"  # not usable as it is: left out until a class map maps it


@dataclass(frozen=True)
class NameRules:
    """The rules by which names in an import source are matched to those of the project."""

    # source name -> project class, possibly new, or "" to omit
    class_map: Mapping[str, str]
    # unknown names are errors
    strict: bool = False
    listed: Collection[str] = ()
    # base folder of the items' image files, or None without images
    folder: Path | None = None
    # loosest kind of match allowed, or None for all
    match: str | None = None
    origin: NameOrigin = field(default_factory=NameOrigin)


def resolve_names(staging: Staging, db: Database, rules: NameRules, note: Callable[[str], None]) -> None:
    """Match the image and class names of all staged items (`note` receives a sentence per unusable name)."""
    with staging.attach(db) as sql:
        define_functions(sql)
        sql.conn.create_function("stem", 1, _get_stem, deterministic=True)
        sql.execute("UPDATE staged.item SET image_id = NULL, reason = '', kind = '', found = NULL")
        _resolve_images(sql, rules)
        _report_image_names(staging, sql, rules, note)
        _resolve_classes(staging, db, sql, rules, note)


def _get_stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0].replace("%20", " ")  # ids of VOC have no blanks


def _resolve_images(sql: sqlite_utils.Database, rules: NameRules) -> None:
    by_content = "(SELECT id FROM image i WHERE i.sha256 = item.sha256)"
    sql.execute(f"UPDATE staged.item SET image_id = {by_content} WHERE sha256 != ''")
    if rules.folder:
        _resolve_files(sql, rules.folder)
        _resolve_written_names(sql)
    open_ = "image_id IS NULL AND file = ''"
    # A file about to be registered may have this content: that is known once it was read.
    coming = "SELECT number FROM staged.coming n WHERE n.path = item.name"
    sql.execute(f"UPDATE staged.item SET image_id = ({coming}) WHERE {open_} AND sha256 != ''")
    with_other = f"UPDATE staged.item SET reason = ? WHERE {open_} AND sha256 != ''"
    sql.execute(f"{with_other} AND name IN (SELECT name FROM image)", [OTHER_CONTENT_REASON])
    sql.execute(with_other + " AND reason = ''", [NO_IMAGE_REASON])
    match_names(sql, "staged", rules.match, rules.origin, "item.file = '' AND item.sha256 = ''", "item.written = ''")


def _resolve_files(sql: sqlite_utils.Database, folder: Path) -> None:
    """Set the images of staged items that have a file. New images get negative numbers."""
    row = sql.execute("SELECT id FROM folder WHERE path = ?", [escape_path(str(folder.resolve()))]).fetchone()
    for file, may_differ in [("item.file", "1"), *build_unicode_forms("item.file")]:
        open_ = f"image_id IS NULL AND file != '' AND {may_differ}"
        if row:
            found = f"FROM file f WHERE f.folder_id = ? AND f.path = {file}"
            sql.execute(f"UPDATE staged.item SET image_id = (SELECT image_id {found}) WHERE {open_}", [row[0]])
            sql.execute(
                f"""UPDATE staged.item SET reason = coalesce(? || (SELECT f.reason {found} AND f.reason != ''), reason)
                WHERE {open_}""",
                [SKIPPED_REASON, row[0]],
            )
        coming = f"(SELECT number FROM staged.coming n WHERE n.path = {file})"
        sql.execute(f"UPDATE staged.item SET image_id = {coming} WHERE {open_} AND reason = ''")
    sql.execute(
        "UPDATE staged.item SET reason = ? WHERE image_id IS NULL AND file != '' AND reason = ''", [NO_FILE_REASON]
    )


def _resolve_written_names(sql: sqlite_utils.Database) -> None:
    """Match files next to an export to images by their file name without extension, where it is unique."""
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


def _report_image_names(
    staging: Staging, sql: sqlite_utils.Database, rules: NameRules, note: Callable[[str], None]
) -> None:
    bad = f"reason = '{SEVERAL_IMAGES_REASON}'"
    if rules.strict:
        bad += f" OR reason IN ('{NO_IMAGE_REASON}', '{OUTSIDE_REASON}', '{OTHER_CONTENT_REASON}')"
        bad += f" OR substr(reason, 1, {len(OTHER_FOLDER_REASON)}) = '{OTHER_FOLDER_REASON}'"
    query = f"SELECT place, name, reason FROM staged.item WHERE image_id IS NULL AND ({bad}) ORDER BY id"
    for place, name, reason in sql.execute(query):
        words = f"no image is called {name!r}" if reason == NO_IMAGE_REASON else f"{name!r}: {reason}"
        note(
            f"{staging.format_place(place)}: "
            f"{words}{'; give more of its path' if reason == SEVERAL_IMAGES_REASON else ''}"
        )
    _report_rivals(staging, sql, note)


def _report_rivals(staging: Staging, sql: sqlite_utils.Database, note: Callable[[str], None]) -> None:
    # Two names of an image that has two files are no mistake, so it is files that are compared.
    path = """coalesce(i.found,
        iif(EXISTS (SELECT 1 FROM file f WHERE f.image_id = i.image_id AND f.path = i.name), i.name, NULL),
        m.name, (SELECT n.path FROM staged.coming n WHERE n.number = i.image_id))"""
    of_each = f"""SELECT i.id, i.place, i.name, i.kind, i.image_id, {path} AS path FROM staged.item i
        LEFT JOIN image m ON m.id = i.image_id WHERE i.written = '' AND i.file = '' AND i.image_id IN (
            SELECT image_id FROM staged.item WHERE image_id NOT NULL AND written = '' AND file = ''
            GROUP BY image_id HAVING max(kind) != '' AND min(name) != max(name))"""
    if not sql.execute("SELECT 1 FROM staged.item WHERE kind != '' LIMIT 1").fetchone():
        return
    rows = sql.execute(f"SELECT * FROM ({of_each}) ORDER BY image_id, path, id")
    first: tuple[Any, ...] = (None,) * 6
    meant: dict[str, str] = {}  # of one file: the name without query and the like -> kind
    for row in rows.fetchall():
        _, place, name, kind, image_id, file = row
        if (image_id, file) != first[4:]:
            first, meant = row, {}
        plain = strip_query(name)
        if plain not in meant and meant and (kind or any(meant.values())):
            both = f"{name!r} and {first[2]!r} ({staging.format_place(first[1])}) could both be the image {file!r}"
            note(
                f"{staging.format_place(place)}: {both}; give names that tell them apart, or only exact ones (--match "
                "name)"
            )
        meant.setdefault(plain, kind)


def _resolve_classes(
    staging: Staging, db: Database, sql: sqlite_utils.Database, rules: NameRules, note: Callable[[str], None]
) -> None:
    named = classes.load_classes_by_name(db)
    gone = {class_.name: class_.id for class_ in classes.load_archived_classes(db) if class_.name not in named}
    back = {name: class_id for name, class_id in gone.items() if class_id in find_undone_classes(sql)}
    archived = gone.keys() - back.keys()
    alike: dict[str, set[str]] = {}
    for name, class_ in named.items():
        alike.setdefault(classes.build_lookalike_key(name), set()).add(class_.name)
    rows: list[tuple[int, str, str]] = []
    listed: list[tuple[int, str]] = sql.execute("SELECT id, name FROM staged.class ORDER BY id").fetchall()
    rivals: dict[str, list[str]] = {}
    for _, name in listed:
        if name not in rules.class_map:
            rivals.setdefault(classes.build_lookalike_key(name), []).append(name)
    staging.unclear = {}
    staging.warnings = _find_map_warnings(rules, {name for _, name in listed}, named)
    for class_id, name in listed:
        target, how = _find_target(name, named, alike, rules)
        near = alike.get(classes.build_lookalike_key(name), set())
        unclear = ""
        if how in (NEW, ALIKE) and near and len(near) + len(rivals[classes.build_lookalike_key(name)]) > 2:
            unclear = _explain_unclear(name, near, rivals[classes.build_lookalike_key(name)])
        elif target in archived and how != LEFT_OUT:
            unclear = f"the class {target!r} is archived: restore it, or choose another"
        elif target in back and how != LEFT_OUT:
            how = RESTORED
        elif how == NEW or (how == MAPPED and target not in named):
            if rules.strict and (named or rules.listed):
                if target not in rules.listed:
                    first = _format_first_place(staging, sql, class_id)
                    note(f"{first}no class is called {name!r}. {did_you_mean(name, [*rules.listed, *named])}")
            elif problem := classes.find_name_problem(target):
                unclear = f"{_format_first_place(staging, sql, class_id)}not usable as a class: {problem}"
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


def _find_map_warnings(rules: NameRules, names: Collection[str], named: Collection[str]) -> list[str]:
    unused = [
        f"The class map names {name!r}, which is not in the source." for name in rules.class_map if name not in names
    ]
    added = {rules.class_map[name] for name in names if rules.class_map.get(name)} - {*named}
    return [*unused, *(f"The class map names the class {name!r}, which is new." for name in sorted(added))]


def _explain_unclear(name: str, near: Collection[str], rivals: Collection[str]) -> str:
    if len(near) > 1:
        could = " or ".join(map(repr, sorted(near)))
    else:
        twins = " and ".join(repr(other) for other in rivals if other != name)
        could = f"{next(iter(near))!r} or a class of its own, as the source has {twins} besides"
    return f"{name!r} could be {could}"


def find_undone_classes(sql: sqlite_utils.Database) -> set[int]:
    """Return the classes archived by the undo of their import."""
    rows = sql.execute("SELECT counts FROM import WHERE undone_at NOT NULL").fetchall()
    ids = {class_id for (counts,) in rows for class_id in json.loads(counts).get("archived", ())}
    archived = sql.execute("SELECT id FROM class WHERE archived = 1 AND merged_into IS NULL").fetchall()
    return ids & {row[0] for row in archived}


def _find_target(
    name: str, named: Mapping[str, Class], alike: Mapping[str, set[str]], rules: NameRules
) -> tuple[str, str]:
    if name in rules.class_map:
        wanted = rules.class_map[name]
        return (named[wanted].name if wanted in named else wanted), MAPPED if wanted else LEFT_OUT
    if name in named:
        return named[name].name, KNOWN if named[name].name == name else SYNONYM
    near = alike.get(classes.build_lookalike_key(name), set())
    return (next(iter(near)), ALIKE) if len(near) == 1 else (name, NEW)


def _format_first_place(staging: Staging, sql: sqlite_utils.Database, class_id: int) -> str:
    query = (
        "SELECT i.place FROM staged.given g JOIN staged.item i ON i.id = g.item WHERE g.class = ? ORDER BY g.id LIMIT 1"
    )
    row = sql.execute(query, [class_id]).fetchone()
    return f"{staging.format_place(row[0])}: " if row else ""
