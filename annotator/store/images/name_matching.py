"""Finding images by name, for all sources and commands.

Exact matches come first (next to the naming file, image name, file path, former name, absolute path), then
looser kinds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import sqlite_utils

from annotator.store.database.database import Database
from annotator.store.images.name_forms import strip_query
from annotator.store.images.name_kinds import (
    MATCH_KINDS,
    NO_IMAGE_REASON,
    check_match_kind,
    define_functions,
    find_loosely,
)
from annotator.store.pictures.files import escape_path

UNICODE_FORMS = ("NFC", "NFD")  # Unicode forms in which a name that is not ASCII may be written
SKIPPED_REASON = "its file was skipped: "
RIVAL_REASON = "it could be the image that is named as "
LOOSEST_UNSEEN_KIND = "tail"
"""The loosest kind that counts where nobody sees beforehand how names are found."""
OUTSIDE_REASON = "an absolute path outside the image folders"


@dataclass(frozen=True)
class NameOrigin:
    """The origin of names."""

    # folder of the naming file, or None
    label_folder: Path | None = None
    # image folder that came with the names, or None
    root: Path | None = None

    @property
    def path_in_root(self) -> str | None:
        """Return the path of `label_folder` in `root`, "" or ending in "/", or None if outside."""
        if self.label_folder is None or self.root is None or not self.label_folder.is_relative_to(self.root.resolve()):
            return None
        path = self.label_folder.relative_to(self.root.resolve()).as_posix()
        return "" if path == "." else f"{escape_path(path)}/"


class NameMatch(NamedTuple):
    """The result of matching one name to an image."""

    # None if unknown or ambiguous
    image_id: int | None
    # kind of match, "" without an image
    kind: str
    # why no image was found
    reason: str


def find_images_by_name(db: Database, names: Iterable[str], match: str | None = None) -> dict[str, NameMatch]:
    """Return each name's match with an image, by kinds at most as loose as `match`."""
    wanted = {name: escape_path(name) for name in names if name}
    sql = db.sql
    for statement in _CREATE_TABLES_SQL:
        sql.execute(statement)
    try:
        sql.conn.executemany("INSERT OR IGNORE INTO temp.item (name) VALUES (?)", [(name,) for name in wanted.values()])
        match_names(sql, "temp", match)
        rows = sql.execute("SELECT name, image_id, kind, reason FROM temp.item").fetchall()
    finally:
        for table in ("item", "coming", "original"):
            sql.execute(f"DROP TABLE temp.{table}")
    found = {
        name: NameMatch(image_id, kind or "name", "") if image_id else NameMatch(None, "", reason)
        for name, image_id, kind, reason in rows
    }
    return _drop_rivals({name: found[stored] for name, stored in wanted.items()})


def _drop_rivals(found: dict[str, NameMatch]) -> dict[str, NameMatch]:
    """Reject an inexact match if another name matches the same image."""
    first: dict[int, str] = {}
    rivals: dict[str, str] = {}
    for name, one in sorted(found.items(), key=lambda pair: MATCH_KINDS.index(pair[1].kind or "name")):
        if one.image_id is None:
            continue
        other = first.setdefault(one.image_id, name)
        if one.kind != "name" and strip_query(other) != strip_query(name):
            rivals[name] = other
    return found | {name: NameMatch(None, "", f"{RIVAL_REASON}{other!r}") for name, other in rivals.items()}


_CREATE_TABLES_SQL = (
    """CREATE TEMP TABLE item (name TEXT PRIMARY KEY, image_id INTEGER, reason TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL DEFAULT '', found TEXT) WITHOUT ROWID""",
    "CREATE TEMP TABLE coming (path TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TEMP TABLE original (name TEXT PRIMARY KEY, path TEXT NOT NULL) WITHOUT ROWID",
)


def match_names(
    sql: sqlite_utils.Database,
    schema: str,
    match: str | None = None,
    origin: NameOrigin = NameOrigin(),
    where: str = "1",
    loosely: str = "1",
) -> None:
    """Find the image per row of a table `item`, and set its image_id, kind, found and reason.

    Tables `coming` (path, number) and `original` (name, path) list files still to register and renamed files.

    Args:
        where: SQL condition on the rows to match.
        loosely: SQL condition on rows that inexact kinds may match.
    """
    check_match_kind(match)
    define_functions(sql)
    item = f"{schema}.item"
    open_ = f"image_id IS NULL AND {where}"
    folders: list[tuple[int, str]] = sql.execute("SELECT id, path FROM folder ORDER BY id").fetchall()
    below = _find_containing_folders(folders, origin)
    _match_by_origin(sql, schema, open_, folders, below, origin)
    # Unchanged; without blanks and "./"; with the apostrophe that CSVs put before formulas; with "/" for "\".
    trimmed = "trim(item.name)"
    without_dot = f"iif(substr({trimmed}, 1, 2) = './', substr({trimmed}, 3), {trimmed})"
    for name in ("item.name", without_dot, "'''' || item.name", "replace(item.name, '\\', '/')"):
        _match_exactly(sql, schema, open_, name, folders)
    for name, may_differ in build_unicode_forms("item.name"):
        _match_exactly(sql, schema, f"{open_} AND {may_differ}", name, folders)
    for folder_id, path in folders:
        relative = "substr(item.name, length(?2) + 1)"
        sql.execute(
            f"""UPDATE {item} SET image_id = (SELECT image_id FROM file WHERE folder_id = ?1 AND path = {relative})
            WHERE {open_} AND substr(name, 1, length(?2)) = ?2""",
            [folder_id, path.rstrip("/") + "/"],
        )
    root_id = _find_folder_id(folders, origin.root)
    beside = dict.fromkeys(path for path in (origin.path_in_root, *(path for _, path in below)) if path)
    find_loosely(sql, schema, f"{open_} AND {loosely}", match, root_id, [*beside])
    sql.execute(f"UPDATE {item} SET reason = ? WHERE {open_} AND reason = '' AND name LIKE '/%'", [OUTSIDE_REASON])
    sql.execute(f"UPDATE {item} SET reason = ? WHERE {open_} AND reason = ''", [NO_IMAGE_REASON])


def build_unicode_forms(name: str) -> list[tuple[str, str]]:
    """Return (SQL of a name's Unicode form, condition that it may differ) per form."""
    return [(f"normalized({name}, '{one}')", f"{name} GLOB '*[^ -~]*'") for one in UNICODE_FORMS]


def _find_containing_folders(folders: list[tuple[int, str]], origin: NameOrigin) -> list[tuple[int, str]]:
    """Return the registered folders that contain the label folder, and its path below each."""
    own = f"{escape_path(str(origin.label_folder))}/" if origin.label_folder else ""
    around = [(folder_id, path.rstrip("/") + "/") for folder_id, path in folders]
    return [(folder_id, own[len(prefix) :]) for folder_id, prefix in around if own.startswith(prefix)]


def _match_by_origin(
    sql: sqlite_utils.Database,
    schema: str,
    open_: str,
    folders: list[tuple[int, str]],
    below: list[tuple[int, str]],
    origin: NameOrigin,
) -> None:
    """Match names by the renamed files of their source, then relative to the folder of the label file."""
    item, inside, slashed = f"{schema}.item", origin.path_in_root, "replace(item.name, '\\', '/')"
    if sql.execute(f"SELECT 1 FROM {schema}.original LIMIT 1").fetchone():
        values = {"folder": _find_folder_id(folders, origin.root), "inside": inside or ""}
        for name in ("item.name", slashed, "joined(:inside, item.name)"):
            path = f"(SELECT path FROM {schema}.original o WHERE o.name = {name})"
            known = f"(SELECT image_id FROM file WHERE folder_id = :folder AND path = {path})"
            coming = f"(SELECT number FROM {schema}.coming n WHERE n.path = {path})"
            sql.execute(f"UPDATE {item} SET image_id = coalesce({known}, {coming}) WHERE {open_}", values)
    names = (
        (":below || item.name", "1"),
        (f":below || {slashed}", "instr(item.name, '\\')"),
        ("joined(:below, item.name)", "instr(item.name, './')"),
    )
    for name, may_be in names:
        for folder_id, path in below:
            file = f"FROM file WHERE folder_id = :folder AND path = {name}"
            values = {"folder": folder_id, "below": path, "skipped": SKIPPED_REASON}
            sql.execute(f"UPDATE {item} SET image_id = (SELECT image_id {file}) WHERE {open_} AND {may_be}", values)
            kept_out = f"coalesce(:skipped || (SELECT reason {file} AND reason != ''), reason)"
            sql.execute(f"UPDATE {item} SET reason = {kept_out} WHERE {open_} AND {may_be}", values)
        if inside is not None:
            coming = f"(SELECT number FROM {schema}.coming n WHERE n.path = {name})"
            values = {"below": inside}
            sql.execute(f"UPDATE {item} SET image_id = {coming} WHERE {open_} AND {may_be} AND reason = ''", values)


def _find_folder_id(folders: list[tuple[int, str]], root: Path | None) -> int | None:
    wanted = escape_path(str(root.resolve())) if root else None
    return next((folder_id for folder_id, path in folders if path == wanted), None)


def _match_exactly(
    sql: sqlite_utils.Database, schema: str, open_: str, name: str, folders: list[tuple[int, str]]
) -> None:
    """Match exact names: image names, then file paths, then former names."""
    item = f"{schema}.item"
    lookups: list[tuple[str, list[int]]] = [("SELECT id FROM image i WHERE i.name = {name}", [])]
    by_file = "SELECT image_id FROM file f WHERE f.folder_id = ? AND f.path = {name} AND image_id NOT NULL"
    lookups += [(by_file, [folder_id]) for folder_id, _ in folders]
    for lookup, values in lookups:
        sql.execute(f"UPDATE {item} SET image_id = ({lookup.format(name=name)}) WHERE {open_}", values)
    for folder_id, _ in folders:
        kept_out = f"SELECT reason FROM file f WHERE f.folder_id = ? AND f.path = {name} AND f.reason != ''"
        sql.execute(
            f"UPDATE {item} SET reason = coalesce(? || ({kept_out}), reason) WHERE {open_}", [SKIPPED_REASON, folder_id]
        )
    coming = f"SELECT number FROM {schema}.coming n WHERE n.path = {name}"
    sql.execute(f"UPDATE {item} SET image_id = ({coming}) WHERE {open_} AND reason = ''")
    former = f"SELECT image_id FROM alias a WHERE a.name = {name}"
    sql.execute(f"UPDATE {item} SET image_id = ({former}) WHERE {open_} AND reason = ''")
