"""Registering images and finding their files again.

An image is a content. Its name is the path under which it was first seen and never changes; further files with the
same content only become further places to find it.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import sqlite_utils

from annotator.errors import AnnotatorError, did_you_mean
from annotator.records import BadFile, Image
from annotator.store.database import Database
from annotator.store.files import FoundFile, inspect_files, open_checked

BATCH = 200  # files registered in one transaction: a kill loses at most this much looking


@dataclass
class Registered:
    """What one look through a folder brought."""

    added: int = 0
    known: int = 0
    duplicates: int = 0
    bad: list[BadFile] = field(default_factory=list)


def register(
    db: Database, folder: Path, paths: list[str], progress: Callable[[int, int], None] | None = None
) -> Registered:
    """Register the files of a folder: every content once, every bad file with its reason.

    Safe to repeat and to kill: files that have not changed are passed over, batches are kept as they come.

    progress    called with (files looked at, files in all)
    """
    folder = folder.resolve()
    with db.writing() as sql:
        sql.execute("INSERT INTO folder (path) VALUES (?) ON CONFLICT DO NOTHING", [str(folder)])
    folder_id = db.value("SELECT id FROM folder WHERE path = ?", [str(folder)])
    rows = db.rows("SELECT path, bytes, modified_ns, reason FROM file WHERE folder_id = ?", [folder_id])
    known = {row["path"]: (row["bytes"], row["modified_ns"]) for row in rows}
    reasons = {row["path"]: row["reason"] for row in rows}
    result, batch = Registered(), []
    for number, (path, found) in enumerate(inspect_files(folder, paths, known), start=1):
        if found is None:
            if reasons[path]:
                result.bad.append(BadFile(path, reasons[path]))
            else:
                result.known += 1
        else:
            batch.append(found)
        if len(batch) >= BATCH:
            _keep(db, folder_id, batch, result)
            batch = []
        if progress:
            progress(number, len(paths))
    _keep(db, folder_id, batch, result)
    with db.writing() as sql:
        gone = [(folder_id, path) for path in set(known) - set(paths)]
        sql.conn.executemany("DELETE FROM file WHERE folder_id = ? AND path = ?", gone)
        # What is here again (a disk mounted, a file moved back) is fit to be shown again.
        sql.execute(
            "UPDATE image SET problem = '' WHERE problem != '' AND id IN (SELECT image_id FROM file WHERE folder_id=?)",
            [folder_id],
        )
    # Tells the worker to look for images without features; it would be dear to look all the time.
    db.set_setting("registrations", db.setting("registrations", 0) + 1)
    return result


def all_images(db: Database) -> list[Image]:
    """Every image, by id: the row order of arrays."""
    return [Image(**row) for row in db.rows("SELECT id, name, sha256, width, height FROM image ORDER BY id")]


def images(db: Database, ids: Iterable[int]) -> dict[int, Image]:
    ids = list(ids)
    rows = db.rows(f"SELECT id, name, sha256, width, height FROM image WHERE id IN ({','.join('?' * len(ids))})", ids)
    return {row["id"]: Image(**row) for row in rows}


def in_working_order(db: Database) -> list[int]:
    """Ids of all images that can be read: labeled ones first, then in the order in which people will see them."""
    rows = db.rows("SELECT id FROM image WHERE problem = '' ORDER BY stage < 2, stage, stage_decision, sha256")
    return [row["id"] for row in rows]


def from_place(db: Database, start: str, limit: int) -> list[int]:
    """Ids of up to `limit` images that can be read, in the order of their contents from a place on and round again.

    start    hexadecimal digits: a random one makes every image as likely as any other to be near the front
    """
    rows = db.tuples(
        """SELECT * FROM (SELECT id FROM image WHERE problem = '' AND sha256 >= ? ORDER BY sha256 LIMIT ?)
        UNION ALL SELECT * FROM (SELECT id FROM image WHERE problem = '' AND sha256 < ? ORDER BY sha256 LIMIT ?)
        LIMIT ?""",
        [start, limit, start, limit, limit],
    )
    return [row[0] for row in rows]


def without_label(db: Database) -> int:
    """How many images nobody has labeled yet."""
    return db.value("SELECT count(*) FROM image WHERE stage < 2")


def find_image(db: Database, name: str) -> Image:
    """The image of that name: its path in the image folder, another file with the same content, or a file name
    that occurs once. Raises AnnotatorError naming near ones, or the several it could be."""
    wanted = name.replace(os.sep, "/")
    rows = db.rows("SELECT id FROM image WHERE name = ?", [wanted])
    if not rows:
        rows = db.rows("SELECT DISTINCT image_id AS id FROM file WHERE path = ? AND image_id NOT NULL", [wanted])
    if not rows:
        rows = _by_full_path(db, name)
    if not rows:
        rows = [row for row in db.rows("SELECT id, name FROM image") if row["name"].rsplit("/", 1)[-1] == wanted]
    if len(rows) == 1:
        return images(db, [rows[0]["id"]])[rows[0]["id"]]
    if rows:
        names = ", ".join(sorted(row.get("name", str(row["id"])) for row in rows)[:10])
        raise AnnotatorError(f"{name!r} could be any of {len(rows)} images: {names}. Give the path.")
    reason = db.value("SELECT reason FROM file WHERE path = ? AND reason != ''", [wanted])
    if reason:
        raise AnnotatorError(f"The file {name!r} was kept out of the project: {reason}.")
    known = [row["name"] for row in db.rows("SELECT name FROM image ORDER BY name")]
    raise AnnotatorError(f"No image is called {name!r}. {did_you_mean(name, known, shown=5)}")


def names_to_ids(db: Database) -> dict[str, int]:
    """Every name an image may be given by in a file: its own, and the paths of further files with its content."""
    found = {row["path"]: row["image_id"] for row in db.rows("SELECT path, image_id FROM file WHERE image_id NOT NULL")}
    found.update({row["name"]: row["id"] for row in db.rows("SELECT id, name FROM image")})
    return found


def with_short_names(names: dict) -> dict:
    """The same with every bare file name that occurs once as a further name of its image."""
    short: dict = {}
    for name, image in names.items():
        last = name.rsplit("/", 1)[-1]
        short[last] = [*short.get(last, []), image]
    return {last: found[0] for last, found in short.items() if len(found) == 1} | names


def bad_files(db: Database) -> list[BadFile]:
    """Files kept out, and images whose file has gone since, with the reason."""
    rows = db.rows(
        """SELECT path, reason FROM file WHERE reason != ''
        UNION ALL SELECT name AS path, problem AS reason FROM image WHERE problem != '' ORDER BY path"""
    )
    return [BadFile(**row) for row in rows]


def image_path(db: Database, image_id: int) -> Path:
    """The file that holds this image, checked to hold it still. Raises AnnotatorError when there is none any more."""
    rows = db.rows(
        """SELECT d.path AS folder, f.path, f.bytes, f.modified_ns, i.sha256 FROM file f
        JOIN folder d ON d.id = f.folder_id JOIN image i ON i.id = f.image_id WHERE f.image_id = ?""",
        [image_id],
    )
    last = AnnotatorError(f"Image {image_id} has no file in any of the project's image folders any more.")
    for row in rows:
        try:
            return open_checked(Path(row["folder"]), row["path"], (row["bytes"], row["modified_ns"]), row["sha256"])
        except AnnotatorError as error:
            last = error
    raise last


def mark_problem(db: Database, image_id: int, problem: str) -> None:
    """Note that this image's file cannot be read any more: it is not offered until a new `init` finds it again."""
    with db.writing() as sql:
        sql.execute("UPDATE image SET problem = ? WHERE id = ?", [problem, image_id])


def _by_full_path(db: Database, name: str) -> list[dict]:
    place = Path(name)
    if not place.exists():
        return []
    for folder in db.rows("SELECT id, path FROM folder"):
        if place.resolve().is_relative_to(folder["path"]):
            path = place.resolve().relative_to(folder["path"]).as_posix()
            return db.rows(
                "SELECT image_id AS id FROM file WHERE folder_id = ? AND path = ? AND image_id NOT NULL",
                [folder["id"], path],
            )
    return []


def _keep(db: Database, folder_id: int, batch: list[FoundFile], result: Registered) -> None:
    with db.writing() as sql:
        for found in batch:
            image_id = None if found.reason else _image_for(sql, folder_id, found, result)
            if found.reason:
                result.bad.append(BadFile(found.path, found.reason))
            sql.execute(
                """INSERT INTO file (folder_id, path, bytes, modified_ns, image_id, reason) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (folder_id, path) DO UPDATE SET bytes = excluded.bytes,
                modified_ns = excluded.modified_ns, image_id = excluded.image_id, reason = excluded.reason""",
                [folder_id, found.path, found.bytes, found.modified_ns, image_id, found.reason],
            )


def _image_for(sql: sqlite_utils.Database, folder_id: int, found: FoundFile, result: Registered) -> int:
    row = sql.execute("SELECT id FROM image WHERE sha256 = ?", [found.sha256]).fetchone()
    if row:
        result.duplicates += 1
        return row[0]
    result.added += 1
    name = found.path
    if sql.execute("SELECT 1 FROM image WHERE name = ?", [name]).fetchone():
        # Another folder, or an older content of the same file, has that name already.
        folder = Path(sql.execute("SELECT path FROM folder WHERE id = ?", [folder_id]).fetchone()[0]).name
        name = f"{folder}/{found.path}"
        if sql.execute("SELECT 1 FROM image WHERE name = ?", [name]).fetchone():
            name = f"{found.path}#{found.sha256[:12]}"
    return (
        sql["image"]
        .insert({"name": name, "sha256": found.sha256, "width": found.width, "height": found.height})
        .last_pk
    )
