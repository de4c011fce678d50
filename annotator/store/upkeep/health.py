"""The health of a project: problems with their likely causes and remedies, and the repair of derived data.

A repair changes only what follows from decisions, and keeps a copy of the earlier project.db
(database/snapshot_copy.py); it deletes damaged arrays that are made again (array_health.py). All other problems are
reported, with what a person can do about them.
"""

import os
import platform
import shutil
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from itertools import islice
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.settings import IMPORTED, Paths
from annotator.shares import counted
from annotator.store.database import heartbeat, read_only
from annotator.store.database import snapshot_copy as database_copy
from annotator.store.database.database import Database
from annotator.store.disk import processes
from annotator.store.disk.private import OTHERS
from annotator.store.features.shards import read_shard, shard_files
from annotator.store.images import images
from annotator.store.labels import tagged_exports as tags
from annotator.store.locations.objects import is_remote
from annotator.store.pictures import files
from annotator.store.runs import runs
from annotator.store.schema import STEPS
from annotator.store.upkeep import array_health, consistency
from annotator.store.upkeep.array_health import Damage

Progress = Callable[[str, int, int], None]
EXAMPLES = 5
LEAST_FREE = 500_000_000  # bytes
PARTS_OLD = 86_400.0  # seconds after which a temporary file counts as abandoned
OTHERS_REMOVE = (IMPORTED, "uploads", "fetched")  # folders whose leftovers an import or a page resumes
FILES_AT_ONCE = 1000
PACKAGES = ("multilabel-annotator", "numpy", "streamlit", "torch", "timm")


@dataclass(frozen=True)
class Finding:
    """A problem of a project.

    Attributes:
        what: The problem.
        why: Its likely cause.
        todo: The action for a person.
        is_derived: The data follow from decisions or are made again, so a repair derives or deletes them.
        is_left: Files that killed processes were writing, which a repair removes.
    """

    what: str
    why: str
    todo: str
    is_derived: bool = False
    is_left: bool = False


@dataclass
class Health:
    """The problems of a project, the versions of programs, and the results of a repair.

    Attributes:
        findings: Problems that remain.
        repaired: Problems that the repair removed.
        kept: The copy of project.db from before the repair; None where none was made.
    """

    versions: dict[str, str]
    findings: list[Finding] = field(default_factory=list[Finding])
    repaired: list[Finding] = field(default_factory=list[Finding])
    kept: Path | None = None


def examine(project: Path, *, repair: bool = False, progress: Progress | None = None) -> Health:
    """Check everything in a project, and repair what can be derived again.

    Args:
        project: The project folder.
        repair: Derive again what does not agree with the decisions, delete damaged arrays that are made again, and
            remove what killed processes have left.
        progress: Called with (state, done, of).

    Raises:
        AnnotatorError: The project does not exist, or the disk has no room for the copy kept before a repair.
    """
    show = progress or _silent
    paths = Paths(project.resolve())
    health = Health(_versions())
    health.findings += _secret(paths)  # before the project is opened, because opening corrects the permissions
    try:
        db = Database(project)
        health.versions["schema"] = STEPS[-1].__name__
        found = consistency.differences(db, lambda done, of: show("Deriving labels again", done, of))
    except AnnotatorError as error:
        if not paths.database.exists():
            raise
        todo = "Restore the newest backup: annotator restore BACKUP NEW_FOLDER"
        health.findings.append(Finding(str(error), "The disk, or another program, damaged the file.", todo))
        return health
    health.findings += _of_database(found)
    damages: list[Damage] = []
    if not found.integrity:
        damages = list(array_health.damages(db))
        for part in (_files(db, show), _shards(paths, show), _arrays(db, damages), _worker(db), _leftovers(paths)):
            health.findings += part
    health.findings += _disk(db)
    if repair:
        db.refuse_read_only()
        _remove(left_behind(paths))
        _note_repaired(health, [finding for finding in health.findings if finding.is_left and not left_behind(paths)])
        if not found.integrity:
            _repair(db, health, found, damages, show)
    return health


def _repair(
    db: Database, health: Health, found: consistency.Differences, damages: list[Damage], show: Progress
) -> None:
    """Derive again what follows from decisions, and delete damaged arrays that are made again."""
    repaired = {damage.what for damage in array_health.remove(db, damages)}
    if found.derived:
        health.kept = database_copy.keep(db.paths.database, "repair", lambda done, of: show("Copying", done, of))
        consistency.repair(db, found.images, lambda done, of: show("Repairing", done, of))
        if not consistency.differences(db).derived:
            repaired.add(_few(found.derived))
    _note_repaired(health, [finding for finding in health.findings if finding.what in repaired])


def _note_repaired(health: Health, findings: list[Finding]) -> None:
    health.repaired += findings
    health.findings = [finding for finding in health.findings if finding not in findings]


def _silent(what: str, done: int, of: int) -> None:
    pass


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, "system": sys.platform}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def _secret(paths: Paths) -> Iterator[Finding]:
    try:
        mode = paths.secret.stat().st_mode
    except OSError:  # none yet: `annotator serve` makes it
        return
    if os.name != "nt" and mode & OTHERS:
        yield Finding(
            f"Others could read {paths.secret} (permissions {stat.S_IMODE(mode):o}); they are corrected now.",
            "It was copied, or unpacked, without its permissions.",
            "If others use this machine: annotator serve PROJECT --new-secret (every browser signs in again)",
        )


def _of_database(found: consistency.Differences) -> Iterator[Finding]:
    restore = "Keep this folder as it is, and restore the newest backup beside it: annotator restore BACKUP NEW_FOLDER"
    if found.integrity:
        yield Finding(_few(found.integrity), "The disk, or another program, damaged project.db.", restore)
    if found.foreign_keys:
        yield Finding(_few(found.foreign_keys), "project.db was edited by another program.", restore)
    if found.derived:
        yield Finding(
            _few(found.derived),
            "project.db was edited by another program, or this one has an error: please report it.",
            "annotator doctor PROJECT --repair derives them again from the decisions",
            is_derived=True,
        )


def _files(db: Database, show: Progress) -> Iterator[Finding]:
    """Yield findings about images without a local file; files at addresses are not requested."""
    of = db.value("SELECT count(*) FROM file WHERE image_id IS NOT NULL")
    there: set[int] = set()
    gone: dict[int, str] = {}
    rows = db.each(
        """SELECT d.path, f.path, f.image_id FROM file f JOIN folder d ON d.id = f.folder_id
        WHERE f.image_id IS NOT NULL"""
    )
    for done, (folder, path, image_id) in enumerate(rows):
        if is_remote(folder) or files.is_there(folder, path):
            there.add(image_id)
        else:
            gone[image_id] = f"{folder}/{path}"
        if done % FILES_AT_ONCE == 0:
            show("Looking for image files", done, of)
    missing = [path for image_id, path in gone.items() if image_id not in there]
    if missing:
        yield Finding(
            f"{len(missing):,} images have no file: {_few(missing)}",
            "Files were moved, renamed or deleted, or a disk is not connected. Their decisions are kept.",
            "Connect the disk, or name the folder that they lie in now: annotator init PROJECT --images FOLDER",
        )
    noted = [f"{bad.path} ({bad.reason})" for bad in islice(images.each_missing(db), EXAMPLES)]
    if noted and not missing:
        yield Finding(
            f"{images.count_missing(db):,} images cannot be shown: {', '.join(noted)}",
            "Their files could not be read when they were last looked at.",
            "Look at the files, then: annotator init PROJECT --images FOLDER",
        )


def _shards(paths: Paths, show: Progress) -> Iterator[Finding]:
    """Yield a finding about feature shards whose content is not what was written."""
    found = [path for folder in (paths.project / "features").glob("*/") for path in shard_files(folder)]
    damaged: list[str] = []
    for done, path in enumerate(found):
        show("Checking features", done, len(found))
        try:
            read_shard(path)
        except FileNotFoundError:  # taken away by the worker meanwhile
            continue
        except (OSError, ValueError) as error:  # DamagedShard is a ValueError
            damaged.append(f"{path.name[:16]}... ({error})")
    if damaged:
        yield Finding(
            f"{len(damaged):,} of {len(found):,} files of features cannot be used: {_few(damaged)}",
            "The disk, or another program, damaged them. No label depends on them.",
            "Nothing: the worker leaves them out and analyzes their images again; then they may be deleted",
        )


def _arrays(db: Database, damages: list[Damage]) -> Iterator[Finding]:
    train = "annotator worker PROJECT --once trains anew"
    if damaged := runs.damaged(db):
        yield Finding(f"The rows of runs {damaged} cannot be read.", "project.db was edited by another program.", train)
    for damage in damages:
        todo = f"{damage.todo}; --repair deletes what is damaged" if damage.removable else damage.todo
        why = f"Deleted, cut off or overwritten by a disk or another program. {damage.lost}"
        yield Finding(damage.what, why, todo, is_derived=damage.removable)
    for tag in tags.all_tags(db):
        try:
            tags.read_cells(tags.path_of(db, tag.id))
        except AnnotatorError as error:
            todo = "Restore the folder tags from a backup; without it this tag cannot be compared."
            yield Finding(f"Tag {tag.name!r}: {error}", "The file was deleted or cut off.", todo)


def _worker(db: Database) -> Iterator[Finding]:
    state = heartbeat.worker_state(db)
    if not state.alive and state.state not in ("stopped", "not started") and not processes.exists(state.pid):
        yield Finding(
            f"The worker said {state.state!r} and is gone (process {state.pid}).",
            "It was killed, or the machine was switched off. Nothing is lost.",
            "annotator serve PROJECT starts it again",
        )


def _leftovers(paths: Paths) -> Iterator[Finding]:
    left = [str(path.relative_to(paths.project)) for path in left_behind(paths)]
    if left:
        yield Finding(
            f"{counted(len(left), 'temporary file or folder', 'temporary files and folders')} that nobody writes any "
            f"more: {_few(left)}",
            "Processes were killed while they wrote them. Nothing reads them.",
            "Remove them: annotator doctor PROJECT --repair",
            is_left=True,
        )


def left_behind(paths: Paths) -> list[Path]:
    """Return what killed processes were writing in a project: temporary files and folders, and journals of copies."""
    found: list[Path] = []
    for place, folders, names in os.walk(paths.project):
        if Path(place) == paths.project:
            folders[:] = [name for name in folders if name not in OTHERS_REMOVE]
        for name in [*folders, *names]:
            if processes.is_temporary(name):
                with suppress(OSError):
                    if processes.is_abandoned(Path(place, name), PARTS_OLD):
                        found.append(Path(place, name))
        folders[:] = [name for name in folders if Path(place, name) not in found]
    return sorted(found)


def _remove(left: list[Path]) -> None:
    for path in left:
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _disk(db: Database) -> Iterator[Finding]:
    paths = db.paths
    if db.read_only:  # nothing is written, however full the disk is
        yield Finding(
            f"{paths.project} may not be written.",
            "It is on read-only media, or belongs to somebody else. Everything can be read.",
            read_only.ELSEWHERE,
        )
        return
    free, needed = shutil.disk_usage(paths.project).free, max(LEAST_FREE, 2 * paths.database.stat().st_size)
    if free < needed:
        older = list((paths.project / database_copy.FOLDER).glob("*.db"))
        size = sum(path.stat().st_size for path in older)
        copies = f"; copies/ holds {len(older)} older states of project.db with {size:,} bytes" if older else ""
        yield Finding(
            f"{free:,} bytes are free on the disk of {paths.project}; {needed:,} are needed for a copy of project.db.",
            "The disk fills up. What cannot be written is refused, and nothing that was saved is lost.",
            "Free some space; the folders thumbs, heatmaps, downloads and fetched may be deleted while nothing runs"
            + copies,
        )


def _few(sentences: list[str]) -> str:
    more = f"; and {len(sentences) - EXAMPLES:,} more" if len(sentences) > EXAMPLES else ""
    return "; ".join(sentences[:EXAMPLES]) + more
