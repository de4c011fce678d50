"""Unfinished projects after a kill, to resume or remove."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.settings import UNFINISHED_DATABASE_FILE, Paths
from annotator.store.database.database import Database
from annotator.store.imports.project_creation import LOCK_FILE, has_other_files


@dataclass(frozen=True)
class ProjectAttempt:
    """An idle unfinished project with its image folder or URL, or ""."""

    project: Path
    images: str


def is_attempt(project: Path) -> bool:
    """Return whether a folder contains only an unfinished project."""
    return (
        (project / UNFINISHED_DATABASE_FILE).is_file()
        and not Paths(project).database.exists()
        and not has_other_files(project)
    )


def find(folder: Path) -> list[ProjectAttempt]:
    """Return the unfinished projects in a folder that no process is creating, by name."""
    found: list[ProjectAttempt] = []
    for project in sorted(folder.iterdir()) if folder.is_dir() else ():
        if is_attempt(project):
            try:
                with _lock_attempt(project):
                    found.append(ProjectAttempt(project, _read_images_folder(project)))
            except (AnnotatorError, OSError):  # somebody is at it, or it may not be read
                continue
    return found


def remove(project: Path) -> None:
    """Remove an unfinished project with its folder. Raises AlreadyRunning if it is in use."""
    if not is_attempt(project):
        raise AnnotatorError(f"{project} holds no unfinished project any more.")
    with _lock_attempt(project):
        if not is_attempt(project):
            raise AnnotatorError(f"{project} was finished by another process just now.")
        shutil.rmtree(project)


@contextmanager
def _lock_attempt(project: Path) -> Generator[None]:
    try:
        with FileLock(project / LOCK_FILE, timeout=0):
            yield
    except Timeout as error:
        raise AlreadyRunning(f"{project} is being made right now. Wait until that has ended.") from error


def _read_images_folder(project: Path) -> str:
    try:
        db = Database(project, create=True, file=UNFINISHED_DATABASE_FILE)
    except AnnotatorError:  # damaged, or of another version: the next attempt begins anew
        return ""
    try:
        return db.value("SELECT max(path) FROM folder") or ""
    finally:
        db.close()
