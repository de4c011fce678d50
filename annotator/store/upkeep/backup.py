"""Backups of a project: content-addressed parts and one manifest per backup.

    backup/parts/ab/<sha256>             a project file, stored once
          /manifests/<time>.json         names of the parts, written last: a backup is complete or absent

A second backup stores only changes. project.db is copied first: files are written before their rows, so
files named in the copy exist unless just deleted.
"""

import hashlib
import json
import os
import sqlite3
import stat
import time
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from annotator import __version__
from annotator.errors import AlreadyRunning, AnnotatorError, DiskFull
from annotator.progress_callbacks import StepCallback, ignore_steps
from annotator.settings import DATABASE_FILE, IMPORTED_FOLDER, Paths
from annotator.store.database import database_copies, read_only
from annotator.store.database.arrays import remove_unfinished_files
from annotator.store.disk import system_errors
from annotator.store.disk.durable import make_folder, sync_folder
from annotator.store.disk.processes import is_temporary
from annotator.store.pictures.files import escape_path

BACKED_UP_FOLDERS = (IMPORTED_FOLDER, "predictions", "adapted", "adapting", "tags", "selections", "audits")
"""Folders of a project with files that nothing computes again (docs/deploy.md says what each holds)."""
EXCLUDED_NAMES = {
    "secret": "the next annotator serve makes a new one; every browser signs in again",
    "features": "the worker computes them again",
    "runs": "the next training makes one",
    "first_orders": "the worker makes them again",
    "map": "the worker lays it out again",
    "heatmaps": "drawn again when somebody looks",
    "thumbs": "made again when somebody looks",
    "fetched": "read again from the address",
    "exports": "export again, or copy them yourself",
    "predictions/names": "the worker computes it again",
    "downloads": "export again",
    "uploads": "what was sent and not imported: send it again",
    "copies": "older states of project.db",
}
PARTS_FOLDER, MANIFESTS_FOLDER, LOCK_FILE = "parts", "manifests", "backup.lock"
MANIFEST_VERSION = 1
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class BackupPart:
    """A backed-up file with its escaped path."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class BackupResult:
    """The content of a backup."""

    manifest: Path
    files: int
    bytes: int
    new_files: int
    new_bytes: int
    # project names -> how to restore them
    left_out: dict[str, str]


def create_backup(project: Path, target: Path, progress: StepCallback | None = None) -> BackupResult:
    """Add a backup of a live project to a folder.

    Raises:
        AnnotatorError: The project is missing, or `target` overlaps it or holds other files.
        AlreadyRunning: Another process backs up.
        DiskFull: `target` cannot be written.
    """
    show = progress or ignore_steps
    paths, target = Paths(project.resolve()), target.resolve()
    if not read_only.database_exists(paths):
        raise AnnotatorError(f"There is no project in {paths.project} (no {DATABASE_FILE} in it).")
    _check_target(paths, target)
    try:
        make_folder(target, 0o700)
        with lock_backup(target):
            return _write_backup(paths, target, show)
    except sqlite3.DatabaseError as error:
        told = system_errors.translate_sqlite_error(error, target)
        if isinstance(told, DiskFull):
            raise told from error
        raise AnnotatorError(f"{paths.database} could not be copied: {error}. annotator doctor may say why.") from error
    except OSError as error:
        raise DiskFull(
            f"{target} could not be written: {error.strerror or error}. The backups that were there are as they were."
            "\n    Is the disk full, or may this folder not be written? The same command goes on where this one ended."
        ) from error


def _check_target(paths: Paths, target: Path) -> None:
    if target.is_relative_to(paths.project) or paths.project.is_relative_to(target):
        raise AnnotatorError(f"The backup {target} and the project {paths.project} lie in each other. Name another.")
    if target.exists() and not target.is_dir():
        raise AnnotatorError(f"{target} is a file; a backup is a folder. Name a folder, or one that is not there yet.")
    ours = {PARTS_FOLDER, MANIFESTS_FOLDER, LOCK_FILE}
    if target.is_dir() and (others := {entry.name for entry in target.iterdir()} - ours):
        raise AnnotatorError(
            f"{target} holds other things ({min(others)}). Name a folder of its own, or an earlier backup."
        )


@contextmanager
def lock_backup(target: Path) -> Generator[None]:
    """Lock a backup folder. Raises AlreadyRunning."""
    lock = FileLock(target / LOCK_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise AlreadyRunning(f"Another process backs up to {target} right now. Wait until it has ended.") from error
    try:
        yield
    finally:
        lock.release()


def _write_backup(paths: Paths, target: Path, show: StepCallback) -> BackupResult:
    store = target / PARTS_FOLDER
    make_folder(store, 0o700)
    make_folder(target / MANIFESTS_FOLDER, 0o700)
    for folder in (store, target / MANIFESTS_FOLDER):
        remove_unfinished_files(folder, ".*", exclusive=True)  # left by a killed process: this process holds the lock
    database_copies.check_free_space(target, paths.database.stat().st_size, "The copy of project.db")
    database = store / f".{uuid.uuid4().hex}.part"
    try:
        database.touch(0o600)
        database_copies.copy_database(paths.database, database, lambda done, of: show("Copying the database", done, of))
        with database.open("rb+") as file:
            os.fsync(file.fileno())
        digest, size = compute_digest(database)
        new, new_bytes = int(_move_to_part(store, database, digest)), size
        new_bytes *= new
        parts = [BackupPart(DATABASE_FILE, digest, size)]
    finally:
        database.unlink(missing_ok=True)
    files = list(_iterate_files(paths.project))
    for done, path in enumerate(files):
        show("Copying files", done, len(files))
        part, is_new = _store_file(store, path, escape_path(path.relative_to(paths.project).as_posix()))
        if part:
            parts.append(part)
            new, new_bytes = new + is_new, new_bytes + is_new * part.bytes
    written = {"version": MANIFEST_VERSION, "annotator": __version__, "made_at": time.time()}
    text = json.dumps(written | {"parts": [asdict(part) for part in parts]})
    sync_folder(store)
    stamp = database_copies.create_next_stamp(path.stem for path in (target / MANIFESTS_FOLDER).glob("[0-9]*.json"))
    manifest = target / MANIFESTS_FOLDER / f"{stamp}.json"
    _write_manifest(manifest, text.encode())
    left_out = {name: how for name, how in EXCLUDED_NAMES.items() if (paths.project / name).exists()}
    return BackupResult(manifest, len(parts), sum(part.bytes for part in parts), new, new_bytes, left_out)


def _iterate_files(project: Path) -> Iterator[Path]:
    """Yield files to back up, except database, links and temporary files."""
    for name in BACKED_UP_FOLDERS:
        if (project / name).is_symlink():
            continue
        for folder, folders, names in os.walk(project / name):
            others = {"names"} if folder == str(project / "predictions") else set[str]()
            folders[:] = sorted(each for each in folders if each not in others and not is_temporary(each))
            for file in sorted(names):
                path = Path(folder, file)
                if not is_temporary(file) and not file.endswith(("-wal", "-shm", ".lock")) and _is_regular(path):
                    yield path


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:  # deleted meanwhile
        return False


def _store_file(store: Path, path: Path, name: str) -> tuple[BackupPart | None, bool]:
    """Store a file in a backup folder, and return (its part, whether it is new), or (None, False) if it is gone."""
    temporary = store / f".{uuid.uuid4().hex}.part"
    try:
        if path.suffix == ".db":  # of a running import (disk/fetched_manifest.py): copied at one moment
            temporary.touch(0o600)
            database_copies.copy_database(path, temporary)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            digest, size = compute_digest(temporary)
            return BackupPart(name, digest, size), _move_to_part(store, temporary, digest)
        digest, size = compute_digest(path)
        if not (store / digest[:2] / digest).exists():
            temporary.touch(0o600)
            digest, size = compute_digest(path, temporary)  # digest of the copy: the file may have changed since
            return BackupPart(name, digest, size), _move_to_part(store, temporary, digest)
        return BackupPart(name, digest, size), False
    except FileNotFoundError:
        return None, False
    finally:
        temporary.unlink(missing_ok=True)


def compute_digest(path: Path, copy: Path | None = None) -> tuple[str, int]:
    """Return a file's sha256 and size, and copy the file to `copy` if given."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file, (copy or Path(os.devnull)).open("wb") as written:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
            written.write(chunk)
        if copy:
            written.flush()
            os.fsync(written.fileno())
    return digest.hexdigest(), size


def _move_to_part(store: Path, file: Path, digest: str) -> bool:
    """Move a synced file to the store under its sha256. Return False if the store has it already."""
    part = store / digest[:2] / digest
    if part.exists():
        return False
    make_folder(part.parent, 0o700)
    file.rename(part)
    sync_folder(part.parent)
    return True


def _write_manifest(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.touch(0o600)
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    sync_folder(path.parent)


@dataclass(frozen=True)
class PruneResult:
    """The result of pruning."""

    backups: int
    # parts, bytes: removed files
    parts: int
    bytes: int
    # names of remaining backups
    kept: list[str]


def prune(target: Path, keep: int) -> PruneResult:
    """Keep the newest `keep` backups, and delete the others with the files that only they use.

    Manifests are removed before files, so that listed backups stay complete.

    Raises:
        AnnotatorError: `keep` is below 1, or a kept manifest is unreadable.
        AlreadyRunning: Another process backs up.
    """
    if keep < 1:
        raise AnnotatorError(f"At least the newest backup stays: {keep} cannot be kept.")
    with lock_backup(target):
        manifests = sorted((target / MANIFESTS_FOLDER).glob("[0-9]*.json"))
        stay, go = manifests[-keep:], manifests[:-keep]
        named = _load_named_parts(stay)
        for manifest in go:
            manifest.unlink()
        sync_folder(target / MANIFESTS_FOLDER)
        gone = [part for part in (target / PARTS_FOLDER).glob("??/*") if part.is_file() and part.name not in named]
        size = sum(part.stat().st_size for part in gone)
        for part in gone:
            part.unlink()
    return PruneResult(len(go), len(gone), size, [manifest.stem for manifest in stay])


def _load_named_parts(manifests: Sequence[Path]) -> set[str]:
    named: set[str] = set()
    for manifest in manifests:
        try:
            named |= {part["sha256"] for part in json.loads(manifest.read_text())["parts"]}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise AnnotatorError(
                f"The backup {manifest} cannot be read ({error}), so nobody knows which files it needs. Nothing was "
                "removed.\n    Delete this manifest if a newer backup is whole, and try again."
            ) from error
    return named
