"""Health checks of a project with causes and remedies, and repair of derived data.

A repair keeps a copy of project.db.
"""

import os
import platform
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from itertools import islice
from pathlib import Path

from annotator.errors import AnnotatorError, UnsupportedVersion
from annotator.humanize import format_count
from annotator.progress_callbacks import StepCallback, ignore_steps
from annotator.settings import IMPORTED_FOLDER, Paths
from annotator.store.database import database_copies, heartbeat, read_only
from annotator.store.database.database import Database
from annotator.store.database.heartbeat import WorkerCondition
from annotator.store.disk import processes
from annotator.store.disk.file_permissions import is_open_to_others
from annotator.store.features.shards import list_shards, read_shard
from annotator.store.images import images
from annotator.store.labels import tagged_exports
from annotator.store.locations.remote_files import is_remote
from annotator.store.pictures import files
from annotator.store.runs import runs
from annotator.store.schema import STEP_NAMES
from annotator.store.upkeep import array_health, consistency
from annotator.store.upkeep.array_health import ArrayDamage

MAX_EXAMPLES = 5
MIN_FREE_BYTES = 500_000_000
ABANDONED_SECONDS = 86_400.0  # after which a temporary file counts as abandoned
RESUMABLE_FOLDERS = (IMPORTED_FOLDER, "uploads", "fetched")  # folders whose leftovers an import or a page resumes
FILES_PER_PROGRESS = 1000
REPORTED_PACKAGES = ("multilabel-annotator", "numpy", "streamlit", "torch", "timm")


@dataclass(frozen=True)
class HealthFinding:
    """A problem that a health check found in a project."""

    what: str
    # likely cause
    why: str
    todo: str
    # whether a repair can rebuild or delete the data
    is_derived: bool = False
    # whether these are files left by crashed processes
    is_left: bool = False


@dataclass
class HealthReport:
    """Problems, program versions and repair results."""

    versions: dict[str, str]
    # remaining problems
    findings: list[HealthFinding] = field(default_factory=list[HealthFinding])
    repaired: list[HealthFinding] = field(default_factory=list[HealthFinding])
    # copy of project.db before the repair, or None
    kept: Path | None = None


def examine(project: Path, *, repair: bool = False, progress: StepCallback | None = None) -> HealthReport:
    """Check everything in a project, and optionally repair what can be rebuilt.

    Args:
        repair: Rebuild data that differs from the decisions, and delete damaged arrays that are recreated and
            files left by crashed processes.
        progress: Called with (state, done, of).

    Raises:
        UnsupportedVersion: This program cannot open the project's version.
        AnnotatorError: The project does not exist, or the disk has no space for the copy made before a repair.
    """
    show = progress or ignore_steps
    paths = Paths(project.resolve())
    health = HealthReport(_load_versions())
    health.findings += _check_secret(paths)  # before the project is opened, because opening corrects the permissions
    try:
        db = Database(project)
        health.versions["schema"] = STEP_NAMES[-1]
        found = consistency.find_differences(db, lambda done, of: show("Deriving labels again", done, of))
    except UnsupportedVersion:
        raise
    except AnnotatorError as error:
        if not paths.database.exists():
            raise
        todo = "Restore the newest backup: annotator restore BACKUP NEW_FOLDER"
        health.findings.append(HealthFinding(str(error), "The disk, or another program, damaged the file.", todo))
        return health
    health.findings += _check_database(found)
    damages: list[ArrayDamage] = []
    if not found.integrity:
        damages = list(array_health.find_damages(db))
        for part in (
            _check_lost_decisions(db),
            _check_files(db, show),
            _check_shards(paths, show),
            _check_arrays(db, damages),
            _check_worker(db),
            _check_leftovers(paths),
        ):
            health.findings += part
    health.findings += _check_disk(db)
    if repair:
        db.check_writable()
        db.forget_lost_decisions()
        _remove_leftovers(find_leftovers(paths))
        _record_repaired(
            health, [finding for finding in health.findings if finding.is_left and not find_leftovers(paths)]
        )
        if not found.integrity:
            _repair(db, health, found, damages, show)
    return health


def _repair(
    db: Database,
    health: HealthReport,
    findings: consistency.Differences,
    damages: list[ArrayDamage],
    show: StepCallback,
) -> None:
    repaired = {damage.what for damage in array_health.remove_damaged(db, damages)}
    if findings.derived:
        health.kept = database_copies.keep_copy(db.paths.database, "repair", lambda done, of: show("Copying", done, of))
        consistency.repair(db, findings.images, lambda done, of: show("Repairing", done, of))
        if not consistency.find_differences(db).derived:
            repaired.add(_join_examples(findings.derived))
    _record_repaired(health, [finding for finding in health.findings if finding.what in repaired])


def _record_repaired(health: HealthReport, findings: list[HealthFinding]) -> None:
    health.repaired += findings
    health.findings = [finding for finding in health.findings if finding not in findings]


def _load_versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, "system": sys.platform}
    for package in REPORTED_PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def _check_secret(paths: Paths) -> Iterator[HealthFinding]:
    try:
        facts = paths.secret.stat()
    except OSError:  # none yet: `annotator serve` makes it
        return
    if is_open_to_others(facts):
        yield HealthFinding(
            f"Others could read {paths.secret} (permissions {stat.S_IMODE(facts.st_mode):o}); they are corrected now.",
            "It was copied, or unpacked, without its permissions.",
            "If others use this machine: annotator serve PROJECT --new-secret (every browser signs in again)",
        )


def _check_database(found: consistency.Differences) -> Iterator[HealthFinding]:
    restore = "Keep this folder as it is, and restore the newest backup beside it: annotator restore BACKUP NEW_FOLDER"
    if found.integrity:
        yield HealthFinding(
            _join_examples(found.integrity), "The disk, or another program, damaged project.db.", restore
        )
    if found.foreign_keys:
        yield HealthFinding(_join_examples(found.foreign_keys), "project.db was edited by another program.", restore)
    if found.derived:
        yield HealthFinding(
            _join_examples(found.derived),
            "project.db was edited by another program, or this one has an error: please report it.",
            "annotator doctor PROJECT --repair derives them again from the decisions",
            is_derived=True,
        )


def _check_lost_decisions(db: Database) -> Iterator[HealthFinding]:
    lost = db.find_lost_decisions()
    if lost is not None:
        yield HealthFinding(
            f"project.db lacks {format_count(lost.stored - lost.found, 'stored decision')}: the newest stored one had "
            f"the number {lost.stored:,}, and the newest found had {lost.found:,}",
            "project.db-wal was deleted or replaced while it held decisions that were not in project.db yet.",
            "Stop annotator serve, and restore the newest backup next to this folder to compare: annotator restore "
            "BACKUP NEW_FOLDER. After --repair this is not reported any more",
        )


def _check_files(db: Database, show: StepCallback) -> Iterator[HealthFinding]:
    of = db.value("SELECT count(*) FROM file WHERE image_id IS NOT NULL")
    there: set[int] = set()
    gone: dict[int, str] = {}
    rows = db.iterate_rows(
        """SELECT d.path, f.path, f.image_id FROM file f JOIN folder d ON d.id = f.folder_id
        WHERE f.image_id IS NOT NULL"""
    )
    for done, (folder, path, image_id) in enumerate(rows):
        if is_remote(folder) or files.path_exists(folder, path):
            there.add(image_id)
        else:
            gone[image_id] = f"{folder}/{path}"
        if done % FILES_PER_PROGRESS == 0:
            show("Looking for image files", done, of)
    missing = [path for image_id, path in gone.items() if image_id not in there]
    if missing:
        yield HealthFinding(
            f"{len(missing):,} images have no file: {_join_examples(missing)}",
            "Files were moved, renamed or deleted, or a disk is not connected. Their decisions are kept.",
            "Connect the disk, or name the folder that they lie in now: annotator init PROJECT --images FOLDER",
        )
    noted = [f"{bad.path} ({bad.reason})" for bad in islice(images.iterate_missing_images(db), MAX_EXAMPLES)]
    if noted and not missing:
        yield HealthFinding(
            f"{images.count_missing(db):,} images cannot be shown: {', '.join(noted)}",
            "Their files could not be read when they were last looked at.",
            "Look at the files, then: annotator init PROJECT --images FOLDER",
        )


def _check_shards(paths: Paths, show: StepCallback) -> Iterator[HealthFinding]:
    found = [path for folder in (paths.project / "features").glob("*/") for path in list_shards(folder)]
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
        yield HealthFinding(
            f"{len(damaged):,} of {len(found):,} files of features cannot be used: {_join_examples(damaged)}",
            "The disk, or another program, damaged them. No label depends on them.",
            "Nothing: the worker leaves them out and analyzes their images again; then they may be deleted",
        )


def _check_arrays(db: Database, damages: list[ArrayDamage]) -> Iterator[HealthFinding]:
    train = "annotator worker PROJECT --once trains anew"
    if damaged := runs.find_damaged_runs(db):
        yield HealthFinding(
            f"The rows of runs {damaged} cannot be read.", "project.db was edited by another program.", train
        )
    for damage in damages:
        todo = f"{damage.todo}; --repair deletes what is damaged" if damage.removable else damage.todo
        why = f"Deleted, cut off or overwritten by a disk or another program. {damage.lost}"
        yield HealthFinding(damage.what, why, todo, is_derived=damage.removable)
    for tag in tagged_exports.load_tags(db):
        try:
            tagged_exports.read_cells(tagged_exports.get_cells_path(db, tag.id))
        except AnnotatorError as error:
            todo = "Restore the folder tags from a backup; without it this tag cannot be compared."
            yield HealthFinding(f"Tag {tag.name!r}: {error}", "The file was deleted or cut off.", todo)


def _check_worker(db: Database) -> Iterator[HealthFinding]:
    state = heartbeat.load_worker_state(db)
    if state.condition is WorkerCondition.HUNG:
        yield HealthFinding(
            f"The worker (process {state.pid}) hangs in state {state.state!r}: {state.delay}.",
            "It waits for a disk that does not answer, or computes without an end. Nothing is lost.",
            "End annotator serve PROJECT and start it again",
        )
    if state.condition is WorkerCondition.GONE and not processes.process_exists(state.pid):
        yield HealthFinding(
            f"The worker said {state.state!r} and is gone (process {state.pid}).",
            "It was killed, or the machine was switched off. Nothing is lost.",
            "annotator serve PROJECT starts it again",
        )


def _check_leftovers(paths: Paths) -> Iterator[HealthFinding]:
    left = [str(path.relative_to(paths.project)) for path in find_leftovers(paths)]
    if left:
        yield HealthFinding(
            f"{format_count(len(left), 'temporary file or folder', 'temporary files and folders')} that nobody writes "
            f"any more: {_join_examples(left)}",
            "Processes were killed while they wrote them. Nothing reads them.",
            "Remove them: annotator doctor PROJECT --repair",
            is_left=True,
        )


def find_leftovers(paths: Paths) -> list[Path]:
    """Return temporary files and journals left by crashed processes."""
    found: list[Path] = []
    for place, folders, names in os.walk(paths.project):
        if Path(place) == paths.project:
            folders[:] = [name for name in folders if name not in RESUMABLE_FOLDERS]
        for name in [*folders, *names]:
            if processes.is_temporary(name):
                with suppress(OSError):
                    if processes.is_abandoned(Path(place, name), ABANDONED_SECONDS):
                        found.append(Path(place, name))
        folders[:] = [name for name in folders if Path(place, name) not in found]
    return sorted(found)


def _remove_leftovers(left: list[Path]) -> None:
    for path in left:
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _check_disk(db: Database) -> Iterator[HealthFinding]:
    paths = db.paths
    if db.read_only:  # nothing is written, however full the disk is
        yield HealthFinding(
            f"{paths.project} may not be written.",
            "It is on read-only media, or belongs to somebody else. Everything can be read.",
            read_only.COPY_ADVICE,
        )
        return
    free, needed = shutil.disk_usage(paths.project).free, max(MIN_FREE_BYTES, 2 * paths.database.stat().st_size)
    if free < needed:
        older = list((paths.project / database_copies.COPIES_FOLDER).glob("*.db"))
        size = sum(path.stat().st_size for path in older)
        copies = f"; copies/ holds {len(older)} older states of project.db with {size:,} bytes" if older else ""
        yield HealthFinding(
            f"{free:,} bytes are free on the disk of {paths.project}; {needed:,} are needed for a copy of project.db.",
            "The disk fills up. What cannot be written is refused, and nothing that was saved is lost.",
            "Free some space; the folders thumbs, heatmaps, downloads and fetched may be deleted while nothing runs"
            + copies,
        )


def _join_examples(sentences: list[str]) -> str:
    more = f"; and {len(sentences) - MAX_EXAMPLES:,} more" if len(sentences) > MAX_EXAMPLES else ""
    return "; ".join(sentences[:MAX_EXAMPLES]) + more
