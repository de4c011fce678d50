"""Restoring of a backup into a new folder.

Backups are not trusted: names outside the folder, links and wrong content are refused first.
"""

import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from annotator.errors import AnnotatorError, DiskFull, combine_problems
from annotator.progress_callbacks import StepCallback, ignore_steps
from annotator.settings import DATABASE_FILE
from annotator.store.database import database_copies
from annotator.store.database.new_folders import remove_unfinished_folders
from annotator.store.disk.durable import make_folder, sync_folder
from annotator.store.disk.processes import build_temporary_path
from annotator.store.pictures.files import unescape_path
from annotator.store.upkeep.backup import (
    BACKED_UP_FOLDERS,
    MANIFEST_VERSION,
    MANIFESTS_FOLDER,
    PARTS_FOLDER,
    BackupPart,
    compute_digest,
)

MAX_MANIFEST_BYTES = 2 << 30
MAX_NAME_BYTES = 255  # bytes of a file's or folder's name
_HEX_DIGITS = frozenset("0123456789abcdef")
# characters refused in the name of a file or folder
_FORBIDDEN_CHARACTERS = frozenset("\0\\:" if os.name == "nt" else "\0")


@dataclass(frozen=True)
class RestoreResult:
    """The result of a restore: the backup's name and its number of files."""

    name: str
    files: int


def restore(source: Path, project: Path, name: str = "", progress: StepCallback | None = None) -> RestoreResult:
    """Restore a backup into a new folder, all or nothing.

    Args:
        name: Manifest name, "" for the newest.
        progress: Called with (state, done, of).

    Raises:
        AnnotatorError: `project` is not empty, or the backup is damaged.
        DiskFull: The folder cannot be written.
    """
    show = progress or ignore_steps
    source, project = source.resolve(), project.resolve()
    _check_target(project)
    if project.is_relative_to(source) or source.is_relative_to(project):
        raise AnnotatorError(f"{project} and the backup {source} lie in each other. Name another folder.")
    manifest = _find_manifest(source, name)
    parts = _read_parts(manifest)
    try:
        make_folder(project.parent)
        database_copies.check_free_space(project.parent, sum(part.bytes for part in parts), "Restoring the backup")
        with _open_unfinished(project) as folder:
            _copy_parts(source, folder, parts, show)
            _check_database(folder / DATABASE_FILE, show)
            _check_target(project)  # another process may have restored it meanwhile
            if project.is_dir():
                project.rmdir()  # checked to be empty; raises if it is no longer
            folder.rename(project)
        sync_folder(project.parent)
    except OSError as error:
        raise DiskFull(
            f"{project} could not be written: {error.strerror or error}. Nothing of it was kept.\n"
            "    Is the disk full, or may this folder not be written?"
        ) from error
    return RestoreResult(manifest.stem, len(parts))


def _check_target(project: Path) -> None:
    if project.is_symlink() or (project.exists() and (not project.is_dir() or any(project.iterdir()))):
        raise AnnotatorError(
            f"{project} is there and not empty, and nothing is restored over it.\n    Name a folder that is not there."
        )


def list_manifests(source: Path) -> list[Path]:
    """Return a backup folder's manifests, oldest first."""
    return sorted((source / MANIFESTS_FOLDER).glob("[0-9]*.json"))


def _find_manifest(source: Path, name: str) -> Path:
    there = list_manifests(source)
    if name:
        named = [path for path in there if path.stem == name.removesuffix(".json")]
        if not named:
            known = ", ".join(path.stem for path in there[-5:]) or "none"
            raise AnnotatorError(f"There is no backup {name!r} in {source}. The newest are: {known}.")
        return named[0]
    if not there:
        raise AnnotatorError(
            f"There is no complete backup in {source} (no manifest in {source / MANIFESTS_FOLDER}).\n"
            "    Was the first one killed? Back up again."
        )
    return there[-1]


def _read_parts(manifest: Path) -> list[BackupPart]:
    try:
        if manifest.stat().st_size > MAX_MANIFEST_BYTES:
            raise ValueError("it is too long")
        content = json.loads(manifest.read_bytes())
        if content["version"] != MANIFEST_VERSION:
            raise AnnotatorError(
                f"{manifest} is of version {content['version']!r}; this program reads {MANIFEST_VERSION}. Upgrade it."
            )
        listed = cast(list[Any], content["parts"])
        parts = [BackupPart(str(row["path"]), str(row["sha256"]), int(row["bytes"])) for row in listed]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise AnnotatorError(
            f"{manifest} is no whole manifest of a backup: {error}. Name an earlier backup."
        ) from error
    bad = [f"{part.path!a}" for part in parts if not _is_safe(part)]
    names = {part.path for part in parts}
    if bad or len(names) < len(parts) or DATABASE_FILE not in names:
        raise combine_problems(
            f"{manifest} was not written by annotator backup; nothing of it is restored.",
            [f"{name} is no file of a backup" for name in bad] or ["A file is named twice, or project.db is missing"],
        )
    return parts


def _is_safe(part: BackupPart) -> bool:
    names = unescape_path(part.path).split("/")
    is_ours = part.path == DATABASE_FILE or (len(names) > 1 and names[0] in BACKED_UP_FOLDERS)
    is_plain = all(
        name not in ("", ".", "..")
        and not set(name) & _FORBIDDEN_CHARACTERS
        and len(os.fsencode(name)) <= MAX_NAME_BYTES
        for name in names
    )
    return is_ours and is_plain and len(part.sha256) == 64 and set(part.sha256) <= _HEX_DIGITS and part.bytes >= 0


@contextmanager
def _open_unfinished(project: Path) -> Generator[Path]:
    """Yield an empty temporary folder of this process, and remove those of killed processes.

    Uses no lock, which a kill after the rename would leave.
    """
    remove_unfinished_folders(project.parent, project.name)
    folder = build_temporary_path(project)
    folder.mkdir(0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_parts(source: Path, folder: Path, parts: list[BackupPart], show: StepCallback) -> None:
    problems: list[str] = []
    for done, part in enumerate(parts):
        show("Restoring files", done, len(parts))
        stored = source / PARTS_FOLDER / part.sha256[:2] / part.sha256
        target = folder / unescape_path(part.path)
        try:
            facts = stored.lstat()
        except OSError:
            problems.append(f"{part.path!a}: its part {part.sha256} is missing")
            continue
        if not stat.S_ISREG(facts.st_mode) or facts.st_size != part.bytes:
            problems.append(f"{part.path!a}: its part {part.sha256} has {facts.st_size:,} of {part.bytes:,} bytes")
            continue
        target.parent.mkdir(0o700, parents=True, exist_ok=True)
        target.touch(0o600, exist_ok=False)
        if compute_digest(stored, target)[0] != part.sha256:
            problems.append(f"{part.path!a}: its part {part.sha256} has another content than its name says")
    if problems:
        raise combine_problems(
            f"The backup {source} is damaged; nothing was restored. Name an earlier one with --backup:", problems
        )
    for path, _, _ in os.walk(folder):
        sync_folder(Path(path))


def _check_database(database: Path, show: StepCallback) -> None:
    show("Checking the database", 0, 0)
    try:
        with closing(sqlite3.connect(database)) as sql:
            found = [row[0] for row in sql.execute("PRAGMA integrity_check")]
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    if found != ["ok"]:
        raise combine_problems("The project.db of this backup is damaged; nothing was restored.", found)
