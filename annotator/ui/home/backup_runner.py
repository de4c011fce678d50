"""Project backups from the start page, written to `.backups` while work continues."""

import logging
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from annotator.errors import AlreadyRunning
from annotator.humanize import format_count
from annotator.store.disk import system_errors
from annotator.store.upkeep.backup import MANIFESTS_FOLDER, BackupResult, create_backup

BACKUPS_FOLDER_NAME = ".backups"

log = logging.getLogger("annotator.home")


@dataclass(frozen=True)
class BackupState:
    """The progress of a project's backup."""

    is_at_work: bool = False
    what: str = ""
    # done, of: progress of the step. `of` is 0 if unknown
    done: int = 0
    of: int = 0
    error: str = ""
    # result of the last backup, or ""
    said: str = ""
    backups: int = 0


class BackupRunner:
    """Runs backups in threads, one per project."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: dict[Path, BackupState] = {}  # by the project's folder

    def get_state(self, project: Path) -> BackupState:
        state = self._states.get(project, BackupState())
        return replace(state, backups=len(list((get_backups_folder(project) / MANIFESTS_FOLDER).glob("[0-9]*.json"))))

    def start(self, project: Path) -> None:
        with self._lock:
            if not self.get_state(project).is_at_work:
                self._states[project] = BackupState(is_at_work=True)
                name = f"backup of {project.name}"
                threading.Thread(target=self._run_backup, args=[project], name=name, daemon=True).start()

    def check_not_running(self, project: Path) -> None:
        if self.get_state(project).is_at_work:
            raise AlreadyRunning(f"{project.name} is being backed up. Wait until that has ended, then try again.")

    def _run_backup(self, project: Path) -> None:
        def report_progress(step: str, done: int, total: int) -> None:
            self._states[project] = BackupState(is_at_work=True, what=step, done=done, of=total)

        try:
            state = BackupState(
                said=_describe_backup(create_backup(project, get_backups_folder(project), report_progress))
            )
        except Exception as error:  # a thread has nobody to raise to: the page shows it, the log has all of it
            told = system_errors.translate_error(error)
            if told is None:
                log.exception("%s could not be backed up", project)
            state = BackupState(error=str(told or f"{project} could not be backed up: {type(error).__name__}: {error}"))
        self._states[project] = state


def get_backups_folder(project: Path) -> Path:
    return project.parent / BACKUPS_FOLDER_NAME / project.name


def _describe_backup(done: BackupResult) -> str:
    new = f"{format_count(done.new_files, 'file')} with {done.new_bytes:,} bytes"
    return f"Backed up: {format_count(done.files, 'file')} with {done.bytes:,} bytes, of which {new} are new."
