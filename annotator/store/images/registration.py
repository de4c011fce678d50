"""Registration of a folder's new, moved and deleted files.

An image is a content, named by the path of one of its files. Old names stay as aliases. An image without
files keeps its decisions.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import sqlite_utils

from annotator.errors import AnnotatorError
from annotator.progress_callbacks import ProgressCallback
from annotator.records import BadFile
from annotator.store.database import project_identity
from annotator.store.database.database import DEFAULT_CACHE_KB, Database
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.images.fact_columns import FACT_COLUMNS, to_fact_values
from annotator.store.images.pixel_notes import PixelNotes
from annotator.store.locations.remote_files import is_remote
from annotator.store.pictures.bands import UNCHOSEN_REASON
from annotator.store.pictures.files import (
    GONE_PROBLEM,
    UNREAD_STATE,
    FileState,
    FoundFile,
    KnownFile,
    escape_path,
    inspect_files,
    path_exists,
)
from annotator.store.pictures.name_keys import build_name_key
from annotator.store.pictures.skipped_files import SkippedFiles

# files registered in one transaction: a kill loses at most this many, and those that are being read
FILES_PER_TRANSACTION = 1000
REGISTRATION_CACHE_KB = 64_000  # while registering: contents in no order are added to all sides of an index


@dataclass
class RegistrationResult:
    """The result of one folder scan."""

    added: int = 0
    known: int = 0
    # known images whose only file moved
    moved: int = 0
    # files with the content of another existing file
    copies: int = 0
    bad: list[BadFile] = field(default_factory=list)
    # images that lost their last file
    missing: list[BadFile] = field(default_factory=list)
    passed_over: int = 0
    # files excluded by name
    left_out: SkippedFiles = field(default_factory=SkippedFiles)
    notes: PixelNotes = field(default_factory=PixelNotes)
    # unix seconds of an interrupted listing, or None
    listed_at: float | None = None

    def format_sentences(self) -> list[str]:
        """Return sentences about pixel changes and files excluded by name."""
        return [*self.notes.format_sentences(), *self.left_out.format_sentences()]


def register_folder(
    db: Database,
    folder: Path,
    paths: Sequence[str],
    progress: ProgressCallback | None = None,
    kept_out: Sequence[BadFile] = (),
    threads: int | None = None,
) -> RegistrationResult:
    """Register the files of a folder as images, resuming after a kill.

    Args:
        paths: Files in the folder, sorted.
        progress: Called with (files checked, total). Its exceptions end the scan.

    Raises:
        AnnotatorError: The folder became empty.
    """
    folder = folder.resolve()
    name = escape_path(str(folder))
    with db.writing() as sql:
        sql.execute("INSERT INTO folder (path) VALUES (?) ON CONFLICT DO NOTHING", [name])
    if project_identity.is_inside(db.paths.project, folder):
        db.set_setting(project_identity.HOME_SETTING, escape_path(str(db.paths.project)))
    folder_id = db.value("SELECT id FROM folder WHERE path = ?", [name])
    count = db.value("SELECT count(*) FROM file WHERE folder_id = ?", [folder_id])
    had_images = db.value("SELECT 1 FROM file WHERE folder_id = ? AND image_id NOT NULL LIMIT 1", [folder_id])
    if had_images and not paths and not kept_out:
        raise AnnotatorError(
            f"{name} is empty, and {count:,} files are known from it. Is its disk mounted? Nothing was changed."
        )
    reasons = dict(db.tuples("SELECT path, reason FROM file WHERE folder_id = ? AND reason != ''", [folder_id]))
    # A folder that cannot be listed may still be entered: files known from it are looked for by their names.
    hidden = {bad.path for bad in kept_out}
    unlisted = _find_unlisted_files(db, folder_id, sorted({*paths, *hidden}), tuple(hidden)) if hidden else []
    paths = [*paths, *unlisted]
    scan = FolderScan(db, folder_id)
    scan.save_files([FoundFile(bad.path, reason=bad.reason) for bad in kept_out])
    batch: list[FoundFile] = []
    inspected = inspect_files(folder, paths, partial(_load_known_files, db, folder_id), threads, get_shown_bands(db))
    for number, (path, file) in enumerate(inspected, 1):
        if file is not None:
            batch.append(file)
        elif path in reasons:
            scan.result.bad.append(BadFile(path, reasons[path]))
        else:
            scan.result.known += 1
        if len(batch) >= FILES_PER_TRANSACTION:
            scan.save_files(batch)
            batch = []
        if progress:
            progress(number, len(paths))
    scan.save_files(batch)
    scan.remove_files(_find_unlisted_files(db, folder_id, sorted([*paths, *hidden])))
    scan.finish()
    increment_registrations(db)
    return scan.result


def _load_known_files(db: Database, folder_id: int, paths: Sequence[str]) -> dict[str, KnownFile]:
    # What was no image may be one for a newer decoder, with an extra, or with bands that were chosen since.
    rows = db.tuples(
        f"""SELECT f.path, f.bytes, f.modified_ns, f.stamp, coalesce(i.sha256, '') FROM file f
        LEFT JOIN image i ON i.id = f.image_id
        WHERE f.folder_id = ? AND f.path IN (SELECT value FROM json_each(?)) AND NOT ({_MAY_BE_READABLE_SQL})""",
        [folder_id, json.dumps(paths)],
    )
    return {row[0]: KnownFile(FileState(*row[1:4]), row[4]) for row in rows}


def _find_unlisted_files(
    db: Database, folder_id: int, paths: Sequence[str], below: tuple[str, ...] = ("",)
) -> list[str]:
    """Return the registered files below `below` that are missing from the sorted `paths`."""
    missing: list[str] = []
    place = 0
    # Both are in the order of their letters' code points; nothing holds all registered paths.
    for (path,) in db.sql.execute("SELECT path FROM file WHERE folder_id = ? ORDER BY path", [folder_id]):
        while place < len(paths) and paths[place] < path:
            place += 1
        if (place == len(paths) or paths[place] != path) and path.startswith(below):
            missing.append(path)
    return missing


def increment_registrations(db: Database) -> None:
    """Count a registration, so that the worker searches for missing features."""
    with db.writing():
        db.set_setting("registrations", db.get_setting("registrations", 0) + 1)


def load_file_states(db: Database, folder: Path) -> dict[str, FileState]:
    """Return path -> registered file state, UNREAD_STATE without an image."""
    rows = db.tuples(
        """SELECT f.path, bytes, modified_ns, stamp, image_id FROM file f JOIN folder d ON d.id = f.folder_id
        WHERE d.path = ?""",
        [escape_path(str(folder.resolve()))],
    )
    return {row[0]: FileState(*row[1:4]) if row[4] else UNREAD_STATE for row in rows}


class FolderScan:
    """One folder scan, which records files, then updates names and missing images."""

    def __init__(self, db: Database, folder_id: int):
        self.db, self.folder_id = db, folder_id
        self.result = RegistrationResult()
        db.sql.execute(f"PRAGMA cache_size = -{REGISTRATION_CACHE_KB}")
        self._last_before: int = db.value("SELECT coalesce(max(id), 0) FROM image")  # later ones are new
        self.new_files: dict[int, int] = {}  # known image -> how many files were found to hold it that did not before

    def save_files(self, batch: Sequence[FoundFile]) -> None:
        if not batch:
            return
        self.result.bad += [BadFile(file.path, file.reason) for file in batch if file.reason]
        good = [file for file in batch if not file.reason]
        # What a power cut undoes, the next scan finds again.
        with self.db.writing(durable=False) as sql:
            held = dict(
                sql.execute(
                    """SELECT path, image_id FROM file WHERE folder_id = ? AND image_id NOT NULL
                    AND path IN (SELECT value FROM json_each(?))""",
                    [self.folder_id, json.dumps([file.path for file in good])],
                ).fetchall()
            )
            known = _find_images_by_content(sql, good)
            self._add_images(sql, good, known)
            image_of = known | _find_images_by_content(sql, [file for file in good if file.sha256 not in known])
            first = {file.sha256: file.path for file in reversed(good)}
            for file in good:
                image_id = image_of[file.sha256]
                if held.get(file.path) == image_id:
                    self.result.known += 1
                elif file.sha256 in known or first[file.sha256] != file.path:
                    self.new_files[image_id] = self.new_files.get(image_id, 0) + 1
            rows = [
                (file.path, *file.state, None if file.reason else image_of.get(file.sha256), file.reason)
                for file in batch
            ]
            sql.execute(_INSERT_FILES_SQL, [self.folder_id, json.dumps(rows)])

    def _add_images(self, sql: sqlite_utils.Database, files: Sequence[FoundFile], known: Mapping[str, int]) -> None:
        """Add an image per unknown content, named after its first file."""
        new = {file.sha256: file for file in reversed(files) if file.sha256 not in known}
        taken = {
            row[0]
            for row in sql.execute(
                "SELECT name FROM image WHERE name IN (SELECT value FROM json_each(?))",
                [json.dumps([file.path for file in new.values()])],
            )
        }
        self.result.added += len(new)
        for file in new.values():
            if file.facts:
                self.result.notes.add_facts(file.facts)
        rows = {
            file.path: (file.sha256, build_name_key(self.folder_id, file.path), *to_fact_values(file.facts))
            for file in reversed(new.values())
        }
        sql.execute(
            _INSERT_IMAGES_SQL, [json.dumps([(path, *facts) for path, facts in rows.items() if path not in taken])]
        )
        for path in taken:
            name = _find_free_name(sql, self.folder_id, path, rows[path][0])
            sql.execute(_INSERT_IMAGES_SQL, [json.dumps([(name, *rows[path])])])

    def remove_files(self, gone: Sequence[str]) -> None:
        """Remove deleted files, whose paths remain image names."""
        for start in range(0, len(gone), FILES_PER_TRANSACTION):
            with self.db.writing() as sql:
                for path in gone[start : start + FILES_PER_TRANSACTION]:
                    _remove_file(sql, self.folder_id, path)

    def finish(self) -> None:
        """Rename images after their files, and mark images without files.

        After a kill, the next scan completes it.
        """
        forgotten = self._find_gone_elsewhere()
        for start in range(0, len(forgotten), FILES_PER_TRANSACTION):
            with self.db.writing() as sql:
                for file in forgotten[start : start + FILES_PER_TRANSACTION]:
                    _remove_file(sql, *file)
        for image_id, files in self.new_files.items():
            held = self.db.value("SELECT count(*) FROM file WHERE image_id = ?", [image_id])
            moved = held == files and image_id <= self._last_before
            self.result.moved += moved
            self.result.copies += files - moved
        self.db.sql.execute(f"PRAGMA cache_size = -{DEFAULT_CACHE_KB}")
        misnamed, missing = (
            _find_misnamed_images(self.db, self.folder_id),
            _find_missing_images(self.db, self.folder_id),
        )
        moved = _find_moved_images(self.db, self.folder_id)
        with self.db.writing() as sql:
            sql.conn.executemany("UPDATE image SET name_key = ? WHERE id = ?", moved)
            _rename_images(sql, misnamed)
            # A file that is back (a disk mounted, a file moved back) can be shown again.
            sql.execute(
                """UPDATE image SET problem = '' WHERE problem != ''
                AND id IN (SELECT image_id FROM file WHERE folder_id = ?)""",
                [self.folder_id],
            )
            for image_id, name, reason in missing:
                sql.execute("UPDATE image SET problem = ? WHERE id = ?", [reason or GONE_PROBLEM, image_id])
                self.result.missing.append(BadFile(name, reason or GONE_PROBLEM))

    def _find_gone_elsewhere(self) -> list[tuple[int, str]]:
        """Return (image id, path) pairs of missing files in other folders whose images were found here."""
        rows: list[tuple[int, str, str]] = []
        for image_id in self.new_files:
            rows += self.db.tuples(
                """SELECT folder_id, d.path, f.path FROM file f JOIN folder d ON d.id = folder_id
                WHERE image_id = ? AND folder_id != ?""",
                [image_id, self.folder_id],
            )
        standing = {folder: path_exists(folder, "") for _, folder, _ in rows}
        return [
            (row, path)
            for row, folder, path in rows
            if not is_remote(folder) and not (standing[folder] and path_exists(folder, path))
        ]


_MAY_BE_READABLE_SQL = f"f.reason LIKE 'not an image%' OR f.reason LIKE '%{UNCHOSEN_REASON}%'"
# One statement for all rows of a batch: between two statements Python waits for the threads that read the files.
_IMAGE_COLUMNS = ("name", "sha256", "name_key", *FACT_COLUMNS)
_INSERT_IMAGES_SQL = f"""INSERT INTO image ({", ".join(_IMAGE_COLUMNS)})
    SELECT {", ".join(f"value ->> {place}" for place in range(len(_IMAGE_COLUMNS)))} FROM json_each(?) ORDER BY key"""
_INSERT_FILES_SQL = """INSERT INTO file (folder_id, path, bytes, modified_ns, stamp, image_id, reason)
    SELECT ?, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM json_each(?)
    WHERE true ORDER BY key ON CONFLICT (folder_id, path) DO UPDATE SET
    bytes = excluded.bytes, modified_ns = excluded.modified_ns, stamp = excluded.stamp,
    image_id = excluded.image_id, reason = excluded.reason"""


def _find_images_by_content(sql: sqlite_utils.Database, files: Sequence[FoundFile]) -> dict[str, int]:
    query = "SELECT sha256, id FROM image WHERE sha256 IN (SELECT value FROM json_each(?))"
    return dict(sql.execute(query, [json.dumps([file.sha256 for file in files])]).fetchall())


def _remove_file(sql: sqlite_utils.Database, folder_id: int, path: str) -> None:
    row = sql.execute("SELECT image_id FROM file WHERE folder_id = ? AND path = ?", [folder_id, path]).fetchone()
    if row and row[0]:
        sql.execute("INSERT OR REPLACE INTO alias (name, image_id) VALUES (?, ?)", [path, row[0]])
    sql.execute("DELETE FROM file WHERE folder_id = ? AND path = ?", [folder_id, path])


def _find_misnamed_images(db: Database, folder_id: int) -> list[tuple[Any, ...]]:
    """Return images whose name is not a path of one of their files, each with the file to name it after."""
    rows = db.tuples(
        """SELECT i.id, i.name, i.sha256, f.folder_id, f.path, d.path FROM image i JOIN file f ON f.image_id = i.id
        JOIN folder d ON d.id = f.folder_id
        WHERE NOT EXISTS (SELECT 1 FROM file same WHERE same.image_id = i.id AND same.path = i.name)
        ORDER BY i.id, f.folder_id != ?, f.folder_id, f.path""",
        [folder_id],
    )
    named = {row[0] for row in rows if row[1] in _build_longer_names(row[5], row[4], row[2])}
    first: dict[int, tuple[Any, ...]] = {}
    for row in rows:
        if row[0] not in named:
            first.setdefault(row[0], row[:5])
    return list(first.values())


def _rename_images(sql: sqlite_utils.Database, misnamed: list[tuple[Any, ...]]) -> None:
    # Temporary names first: two files may have swapped names.
    for image_id, name, *_ in misnamed:
        sql.execute("INSERT OR REPLACE INTO alias (name, image_id) VALUES (?, ?)", [name, image_id])
        sql.execute("UPDATE image SET name = ? WHERE id = ?", [f"\0{image_id}", image_id])
    for image_id, _, sha256, folder_id, path in misnamed:
        name = _find_free_name(sql, folder_id, path, sha256)
        key = build_name_key(folder_id, path)
        sql.execute("UPDATE image SET name = ?, name_key = ? WHERE id = ?", [name, key, image_id])


def _find_moved_images(db: Database, folder_id: int) -> list[tuple[str, int]]:
    """Return (new sort key, image id) of images that left the folder named in their sort key."""
    rows = db.tuples(
        """SELECT i.id, f.path FROM file f JOIN image i ON i.id = f.image_id
        WHERE f.folder_id = ? AND NOT EXISTS (SELECT 1 FROM file held WHERE held.image_id = i.id
            AND held.folder_id = CAST(substr(i.name_key, 1, 6) AS INTEGER)) ORDER BY i.id, f.path DESC""",
        [folder_id],
    )
    return [(build_name_key(folder_id, path), image_id) for image_id, path in rows]


def _find_free_name(sql: sqlite_utils.Database, folder_id: int, path: str, sha256: str) -> str:
    holder = sql.execute("SELECT id, sha256 FROM image WHERE name = ?", [path]).fetchone()
    if holder is None:
        return path
    another = "SELECT 1 FROM file WHERE image_id = ? AND path = ? AND folder_id != ?"
    if sql.execute(another, [holder[0], path, folder_id]).fetchone() is None:
        sql.execute("UPDATE image SET name = ? WHERE id = ?", [_build_longer_names("", path, holder[1])[1], holder[0]])
        return path
    folder = sql.execute("SELECT path FROM folder WHERE id = ?", [folder_id]).fetchone()[0]
    longer = _build_longer_names(folder, path, sha256)
    taken = sql.execute("SELECT 1 FROM image WHERE name = ?", [longer[0]]).fetchone()
    return longer[1] if taken else longer[0]


def _build_longer_names(folder: str, path: str, sha256: str) -> tuple[str, str]:
    """Return an image name prefixed by its folder, and one suffixed by its sha256."""
    return f"{Path(folder).name}/{path}", f"{path}#{sha256[:12]}"


def _find_missing_images(db: Database, folder_id: int) -> list[tuple[int, str, str]]:
    return db.tuples(
        """SELECT i.id, i.name, f.reason FROM image i LEFT JOIN file f ON f.folder_id = ? AND f.path = i.name
        WHERE i.problem = '' AND NOT EXISTS (SELECT 1 FROM file WHERE image_id = i.id) ORDER BY i.name""",
        [folder_id],
    )
