"""Images: their names, files and problems."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annotator.errors import AnnotatorError, StorageTimeout, did_you_mean
from annotator.records import BadFile, Image
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.images import address_cache
from annotator.store.images.name_matching import LOOSEST_UNSEEN_KIND, find_images_by_name
from annotator.store.locations.location import ImageSource, Location, read_remote_file
from annotator.store.locations.remote_files import UNREADABLE_NOW_PROBLEM, is_remote
from annotator.store.pictures.decoding import BadImage, read_capture
from annotator.store.pictures.exif import CAPTURE_COLUMNS, UNKNOWN_CAPTURE
from annotator.store.pictures.files import (
    GONE_PROBLEM,
    FileState,
    escape_path,
    open_checked,
    path_exists,
    unescape_path,
)

PROBE_IMAGE_COUNT = 3  # images of an address that are read to see whether it answers again


class Folder(NamedTuple):
    """An added folder: escaped path, numbers of images and rejected files."""

    path: str
    images: int
    kept_out: int


def load_all_images(db: Database) -> list[Image]:
    """Return all images by id, the row order of arrays."""
    return [Image(**row) for row in db.rows("SELECT id, name, sha256, width, height FROM image ORDER BY id")]


def load_images(db: Database, ids: Iterable[int]) -> dict[int, Image]:
    ids = list(ids)
    rows = db.rows(f"SELECT id, name, sha256, width, height FROM image WHERE id IN ({','.join('?' * len(ids))})", ids)
    return {row["id"]: Image(**row) for row in rows}


def load_ids_in_working_order(db: Database) -> np.ndarray:
    """Return the readable images, (n,) int64, in processing order: labeled ones first."""
    query = "SELECT id FROM image WHERE problem = '' ORDER BY stage < 2, stage, stage_decision, sha256"
    return db.integer_rows(query)[:, 0]


def load_ids_labeled_since(db: Database, decision_id: int) -> np.ndarray:
    """Return the readable images labeled after a decision, (n,) int64."""
    query = """SELECT id FROM image WHERE stage IN (2, 3) AND stage_decision > ? AND problem = ''
        ORDER BY stage, stage_decision, sha256"""
    return db.integer_rows(query, [decision_id])[:, 0]


def load_ids_only_at_address(db: Database, address: str) -> np.ndarray:
    """Return the images whose files are all at this URL, (n,) int64."""
    query = """SELECT f.image_id FROM file f JOIN folder d ON d.id = f.folder_id
        WHERE f.image_id NOT NULL GROUP BY f.image_id HAVING min(d.path = ?)"""
    return db.integer_rows(query, [address])[:, 0]


def load_ids_from_hash(db: Database, first_hash: str, limit: int) -> list[int]:
    """Return up to `limit` readable images by sha256 from `first_hash` on, wrapping around."""
    rows = db.tuples(
        """SELECT * FROM (SELECT id FROM image WHERE problem = '' AND sha256 >= ? ORDER BY sha256 LIMIT ?)
        UNION ALL SELECT * FROM (SELECT id FROM image WHERE problem = '' AND sha256 < ? ORDER BY sha256 LIMIT ?)
        LIMIT ?""",
        [first_hash, limit, first_hash, limit, limit],
    )
    return [row[0] for row in rows]


def count_images(db: Database) -> int:
    return db.value("SELECT count(*) FROM image")


def count_unlabeled_images(db: Database) -> int:
    return db.value("SELECT count(*) FROM image WHERE stage < 2")


def find_image(db: Database, name: str) -> Image:
    """Return the image of a name, path, former name or URL. Raises AnnotatorError if it is unknown or ambiguous."""
    wanted = escape_path(name).replace(os.sep, "/")
    found = find_images_by_name(db, [name], "name")[name].image_id if name else None
    ids = [found] if found else [row["id"] for row in _find_by_full_path(db, name)]
    if not ids and name and (found := find_images_by_name(db, [name], LOOSEST_UNSEEN_KIND)[name].image_id):
        ids = [found]
    if ids:
        return load_images(db, ids)[ids[0]]
    rows = [row for row in db.rows("SELECT name FROM image") if row["name"].rsplit("/", 1)[-1] == wanted]
    if rows:
        names = ", ".join(sorted(row["name"] for row in rows)[:10])
        raise AnnotatorError(f"{name!r} could be any of {len(rows)} images: {names}. Give the path.")
    reason = db.value("SELECT reason FROM file WHERE path = ? AND reason != ''", [wanted])
    if reason:
        raise AnnotatorError(f"The file {name!r} was skipped: {reason}.")
    known = [row["name"] for row in db.rows("SELECT name FROM image ORDER BY name")]
    raise AnnotatorError(f"No image is called {name!r}. {did_you_mean(name, known, max_listed=5)}")


def load_ids_by_name(db: Database) -> dict[str, int]:
    """Return name -> image id for all names usable in label files."""
    ids = {row["name"]: row["image_id"] for row in db.rows("SELECT name, image_id FROM alias")}
    files = db.rows("SELECT path, image_id FROM file ORDER BY image_id IS NOT NULL")
    ids |= {row["path"]: row["image_id"] for row in files}
    ids |= {row["name"]: row["id"] for row in db.rows("SELECT id, name FROM image")}
    return {name: image_id for name, image_id in ids.items() if image_id is not None}


def add_short_names(names: dict[str, Any]) -> dict[str, Any]:
    """Return these names plus all unambiguous file names."""
    images_of: dict[str, list[Any]] = {}
    for name, image in names.items():
        images_of.setdefault(name.rsplit("/", 1)[-1], []).append(image)
    return {
        short: images[0] for short, images in images_of.items() if len(images) == 1 or _are_same_image(images)
    } | names


def _are_same_image(images: list[Any]) -> bool:
    return images[0] is not None and len(set(images)) == 1


def load_folders(db: Database) -> list[Folder]:
    rows = db.rows(
        """SELECT d.path, count(f.image_id) AS images, count(f.id) - count(f.image_id) AS kept_out FROM folder d
        LEFT JOIN file f ON f.folder_id = d.id GROUP BY d.id ORDER BY d.id"""
    )
    return [Folder(**row) for row in rows]


def load_rejected_files(db: Database, limit: int | None = None) -> list[BadFile]:
    """Return up to `limit` rejected files and folders with reasons."""
    rows = db.rows(
        "SELECT path, reason FROM file WHERE reason != '' ORDER BY path LIMIT ?", [-1 if limit is None else limit]
    )
    return [BadFile(**row) for row in rows]


def iterate_rejected_files(db: Database) -> Iterator[BadFile]:
    return starmap(BadFile, db.iterate_rows("SELECT path, reason FROM file WHERE reason != '' ORDER BY path"))


def count_rejected_by_reason(db: Database, limit: int | None = None) -> list[dict[str, Any]]:
    """Return rejected files by reason, most frequent first: reason, files, example."""
    return db.rows(
        """SELECT substr(reason, 1, instr(reason || ': ', ': ') - 1) AS reason, count(*) AS files, min(path) AS example
        FROM (SELECT reason, path FROM file WHERE reason != '' LIMIT ?) GROUP BY 1 ORDER BY files DESC, reason""",
        [-1 if limit is None else limit],
    )


def load_missing_images(db: Database, limit: int | None = None) -> list[BadFile]:
    """Return up to `limit` missing, changed or damaged images with reasons."""
    rows = db.rows(
        "SELECT name AS path, problem AS reason FROM image WHERE problem != '' ORDER BY name LIMIT ?",
        [-1 if limit is None else limit],
    )
    return [BadFile(**row) for row in rows]


def iterate_missing_images(db: Database) -> Iterator[BadFile]:
    """Yield all images that can no longer be displayed."""
    return starmap(BadFile, db.iterate_rows("SELECT name, problem FROM image WHERE problem != '' ORDER BY name"))


def count_missing_by_reason(db: Database, limit: int | None = None) -> list[dict[str, Any]]:
    """Return undisplayable images by reason, most frequent first: reason, images, example."""
    return db.rows(
        """SELECT substr(problem, 1, instr(problem || ': ', ': ') - 1) AS reason, count(*) AS images,
            min(name) AS example
        FROM (SELECT problem, name FROM image WHERE problem != '' LIMIT ?) GROUP BY 1 ORDER BY images DESC, reason""",
        [-1 if limit is None else limit],
    )


def load_missing_reasons(db: Database) -> dict[int, str]:
    """Return image id -> reason, for undisplayable images."""
    return dict(db.tuples("SELECT id, problem FROM image WHERE problem != ''"))


def count_rejected_files(db: Database) -> int:
    return db.value("SELECT count(*) FROM file WHERE reason != ''")


def count_missing(db: Database) -> int:
    return db.value("SELECT count(*) FROM image WHERE problem != ''")


def group_by_reason(bad: Iterable[BadFile]) -> dict[str, list[str]]:
    """Return reason kind (text before ": ") -> paths, most frequent first."""
    groups: dict[str, list[str]] = {}
    for file in bad:
        groups.setdefault(file.reason.partition(": ")[0], []).append(file.path)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def find_image_path(db: Database, image_id: int) -> Path:
    """Return a checked local or cached file of this image.

    Raises:
        AnnotatorError: There is none.
        StorageTimeout: It cannot be read now.
    """
    source = find_image_source(db, image_id)
    return source if isinstance(source, Path) else address_cache.fetch_file(db, image_id, source)


def find_image_source(db: Database, image_id: int) -> ImageSource:
    """Return a checked local file of this image, or its remote location."""
    problem = AnnotatorError(f"{GONE_PROBLEM}: image {image_id} has no file in any of the project's image folders.")
    for file_id, location in _load_files(db, image_id):
        if location.is_remote:
            return location
        folder, path, recorded, sha256 = location
        try:
            real, state = open_checked(Path(unescape_path(folder)), path, recorded, sha256)
        except AnnotatorError as error:
            problem = error
            continue
        if state != recorded:
            _record_file_state(db, file_id, state)
        return real
    raise problem


def find_remote_location(db: Database, image_id: int) -> Location | None:
    """Return the location of a remote-only image, or None."""
    files = _load_files(db, image_id)
    return files[0][1] if files and files[0][1].is_remote else None


def _load_files(db: Database, image_id: int) -> list[tuple[int, Location]]:
    """Return an image's (file id, location), local files first."""
    rows = db.tuples(
        """SELECT f.id, d.path, f.path, f.bytes, f.modified_ns, f.stamp, i.sha256 FROM file f
        JOIN folder d ON d.id = f.folder_id JOIN image i ON i.id = f.image_id WHERE f.image_id = ?""",
        [image_id],
    )
    files = [(row[0], Location(row[1], row[2], FileState(*row[3:6]), row[6])) for row in rows]
    return sorted(files, key=lambda file: file[1].is_remote)


def recheck_addresses(db: Database) -> int:
    """Read samples of unresponsive remote images, and return how many images are marked readable again.

    A bucket may respond but refuse its objects.
    """
    back: list[int] = []
    for folder_id, folder in db.tuples("SELECT id, path FROM folder"):
        if not is_remote(folder):
            continue
        noted = db.tuples(
            """SELECT d.path, f.path, f.bytes, f.modified_ns, f.stamp, i.sha256
            FROM image i INDEXED BY image_problem JOIN file f ON f.image_id = i.id JOIN folder d ON d.id = f.folder_id
            WHERE i.problem != '' AND i.problem LIKE ? || '%' AND d.id = ? ORDER BY random() LIMIT ?""",
            [UNREADABLE_NOW_PROBLEM, folder_id, PROBE_IMAGE_COUNT],
        )
        if any(_does_answer(Location(row[0], row[1], FileState(*row[2:5]), row[5])) for row in noted):
            back.append(folder_id)
    if not back:
        return 0
    with db.writing() as sql:
        changed = sql.execute(
            """UPDATE image SET problem = '' WHERE problem != '' AND problem LIKE ? || '%'
            AND id IN (SELECT image_id FROM file WHERE folder_id IN (SELECT value FROM json_each(?)))""",
            [UNREADABLE_NOW_PROBLEM, json.dumps(back)],
        ).rowcount
        # the worker looks for images that it left out
        db.set_setting("registrations", db.get_setting("registrations", 0) + 1)
    return changed


def _does_answer(location: Location) -> bool:
    try:
        read_remote_file(location)
    except StorageTimeout:
        return False
    except AnnotatorError:  # it is gone or changed: reported when it is needed
        return True
    return True


def update_missing_images(db: Database, after: int, limit: int) -> int | None:
    """Update which images miss their file, for ids in (after, after + limit].

    Nonexistent folders are skipped as unmounted disks. Returns the next `after`, or None at the end.
    """
    last = db.value("SELECT max(id) FROM image") or 0
    rows = db.tuples(
        """SELECT i.id, i.problem, d.path, f.path FROM image i JOIN file f ON f.image_id = i.id
        JOIN folder d ON d.id = f.folder_id
        WHERE i.id > ? AND i.id <= ? AND (i.problem = '' OR i.problem LIKE ? || '%')""",
        [after, after + limit, GONE_PROBLEM],
    )
    standing = {folder: path_exists(folder, "") for folder in {row[2] for row in rows}}
    exists: set[int] = set()
    unknown: set[int] = set()
    for image_id, _, folder, path in rows:
        if not standing[folder]:
            unknown.add(image_id)
        elif path_exists(folder, path):
            exists.add(image_id)
    problems = {row[0]: row[1] for row in rows}
    changed = [("", image_id) for image_id in exists if problems[image_id]]
    changed += [(GONE_PROBLEM, image_id) for image_id in problems.keys() - exists - unknown if not problems[image_id]]
    if changed:
        with db.writing() as sql:
            sql.conn.executemany("UPDATE image SET problem = ? WHERE id = ?", changed)
    return after + limit if after + limit < last else None


def read_capture_times(db: Database, after: int, limit: int) -> int | None:
    """Read missing capture times of `limit` images above `after`, and return the next `after`, or None at the end."""
    rows = db.tuples(
        """SELECT id FROM image WHERE capture_read = 0 AND problem = '' AND width > 0 AND id > ?
        ORDER BY id LIMIT ?""",
        [after, limit],
    )
    captures: list[tuple[float | str | int | None, ...]] = []
    for (image_id,) in rows:
        try:
            captures.append((*read_capture(find_image_path(db, image_id)).to_row(), image_id))
        except BadImage:
            captures.append((*UNKNOWN_CAPTURE.to_row(), image_id))
        except AnnotatorError:
            continue
    if captures:
        columns = ", ".join(f"{name} = ?" for name in CAPTURE_COLUMNS)
        with db.writing(durable=False) as sql:
            sql.conn.executemany(f"UPDATE image SET {columns}, capture_read = 1 WHERE id = ?", captures)
    return rows[-1][0] if len(rows) == limit else None


def mark_problem(db: Database, image_id: int, problem: str) -> None:
    """Record why an image is unreadable, which hides it from queues."""
    if db.read_only:
        return
    with db.writing(right=Right.LOOK) as sql:
        sql.execute("UPDATE image SET problem = ? WHERE id = ?", [problem, image_id])


def _record_file_state(db: Database, file_id: int, state: FileState) -> None:
    # In a read-only project the file is hashed every time.
    with suppress(AnnotatorError), db.writing(durable=False, right=Right.LOOK) as sql:
        sql.execute("UPDATE file SET bytes = ?, modified_ns = ?, stamp = ? WHERE id = ?", [*state, file_id])


def record_hard_links(db: Database, links: np.ndarray) -> None:
    """Update the ctime of files with new hard links: (n, 4) int64 of image id, inode, old and new ctime in ns."""
    for start in range(0, len(links), 5000):
        rows = [
            (f"{inode}:{after}", image_id, f"{inode}:{before}")
            for image_id, inode, before, after in links[start : start + 5000].tolist()
        ]
        with db.writing(durable=False) as sql:
            sql.conn.executemany("UPDATE file SET stamp = ? WHERE image_id = ? AND stamp = ?", rows)


def _find_by_full_path(db: Database, name: str) -> list[dict[str, Any]]:
    if is_remote(name):
        return db.rows(
            """SELECT f.image_id AS id FROM folder d JOIN file f ON f.folder_id = d.id AND f.image_id NOT NULL
            AND f.path = substr(?1, length(d.path) + 2) WHERE substr(?1, 1, length(d.path) + 1) = d.path || '/'""",
            [escape_path(name)],
        )
    place = Path(name)
    if not os.path.lexists(place):
        return []
    for folder in db.rows("SELECT id, path FROM folder"):
        if place.resolve().is_relative_to(unescape_path(folder["path"])):
            path = escape_path(place.resolve().relative_to(unescape_path(folder["path"])).as_posix())
            return db.rows(
                "SELECT image_id AS id FROM file WHERE folder_id = ? AND path = ? AND image_id NOT NULL",
                [folder["id"], path],
            )
    return []
