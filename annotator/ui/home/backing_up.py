"""Backing projects up from the start page: what `annotator backup` does, in a thread, into the folder `.backups`.

That folder lies beside the projects, and holds a folder of each project's name. Everybody goes on working meanwhile.
"""

import logging
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from annotator.errors import AlreadyRunning
from annotator.shares import counted
from annotator.store.disk import system_errors
from annotator.store.upkeep.backup import MANIFESTS, BackedUp, back_up

BACKUPS = ".backups"

log = logging.getLogger("annotator.home")


@dataclass(frozen=True)
class State:
    """How far the backup of a project is.

    Attributes:
        is_at_work: It is being made.
        what: The step of it.
        done, of: Of the step; of 0: nobody knows.
        error: Why it was not made; "" otherwise.
        said: What was stored; "" before the first one since the start page was opened.
        backups: The number of backups of the project.
    """

    is_at_work: bool = False
    what: str = ""
    done: int = 0
    of: int = 0
    error: str = ""
    said: str = ""
    backups: int = 0


class BackingUp:
    """The threads that back projects up, one a project at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: dict[Path, State] = {}  # by the project's folder

    def state(self, project: Path) -> State:
        """Return how far the backup of a project is."""
        state = self._states.get(project, State())
        return replace(state, backups=len(list((backups_of(project) / MANIFESTS).glob("[0-9]*.json"))))

    def start(self, project: Path) -> None:
        """Begin to back a project up; one that is being backed up goes on."""
        with self._lock:
            if not self.state(project).is_at_work:
                self._states[project] = State(is_at_work=True)
                name = f"backup of {project.name}"
                threading.Thread(target=self._run, args=[project], name=name, daemon=True).start()

    def refuse_at_work(self, project: Path) -> None:
        """Raise AlreadyRunning while a project is being backed up: its folder has to stay where it is."""
        if self.state(project).is_at_work:
            raise AlreadyRunning(f"{project.name} is being backed up. Wait until that has ended, then try again.")

    def _run(self, project: Path) -> None:
        def note(what: str, done: int, of: int) -> None:
            self._states[project] = State(is_at_work=True, what=what, done=done, of=of)

        try:
            state = State(said=_in_words(back_up(project, backups_of(project), note)))
        except Exception as error:  # a thread has nobody to raise to: the page shows it, the log has all of it
            told = system_errors.in_words(error)
            if told is None:
                log.exception("%s could not be backed up", project)
            state = State(error=str(told or f"{project} could not be backed up: {type(error).__name__}: {error}"))
        self._states[project] = state


def backups_of(project: Path) -> Path:
    """Return the folder of a project's backups."""
    return project.parent / BACKUPS / project.name


def _in_words(done: BackedUp) -> str:
    new = f"{counted(done.new_files, 'file')} with {done.new_bytes:,} bytes"
    return f"Backed up: {counted(done.files, 'file')} with {done.bytes:,} bytes, of which {new} are new."
