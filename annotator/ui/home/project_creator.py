"""Project creation from the start page, in a thread, like `annotator init`.

It is all or nothing, and canceling leaves nothing behind.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import SetupSettings, set_up_project
from annotator.store.disk import system_errors
from annotator.ui.home.visitors import Visitor

log = logging.getLogger("annotator.home")


class _CreationCancelled(Exception):
    """The exception that ends a canceled creation."""


@dataclass(frozen=True)
class NewProjectOptions:
    """The form input from which a project is created."""

    # folder, which must not exist
    project: Path
    images: Path
    # one class per line
    classes: str
    # SPLIT or KEEP
    commas: str
    labels: Path | None
    mode: str


@dataclass(frozen=True)
class CreatedProject:
    """A new project that is served."""

    # its URL, which signs its owner in
    link: str
    # cookie in which browsers keep the annotator's name
    name_cookie: str


@dataclass(frozen=True)
class CreationState:
    """The progress of a project's creation."""

    name: str = ""
    is_at_work: bool = False
    # done, of: files read. `of` is 0 while listing
    done: int = 0
    of: int = 0
    # None if unknown
    seconds_left: float | None = None
    error: str = ""
    # link, name_cookie: of the finished project, or ""
    link: str = ""
    name_cookie: str = ""
    # sentences about the result
    said: tuple[str, ...] = ()


class ProjectCreator:
    """Creates projects in a thread, one at a time.

    Args:
        on_created: Serves a new project's folder for the visitor who created it.
    """

    def __init__(self, on_created: Callable[[Path, Visitor], CreatedProject]):
        self._made = on_created
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._thread: threading.Thread | None = None
        self._began = 0.0
        self._identity = ""  # the session of the visitor whose creation this is: its link signs them in
        self.state = CreationState()

    def start(self, options: NewProjectOptions, visitor: Visitor) -> None:
        """Start a creation, or raise AnnotatorError during another."""
        with self._lock:
            if self.state.is_at_work:
                # Nameless: it may be the project of somebody else.
                raise AnnotatorError("Another project is being created. Wait until it is finished, then try again.")
            self._cancelled.clear()
            self._began = time.monotonic()
            self._identity = visitor.identity
            self.state = CreationState(options.project.name, is_at_work=True)
            self._thread = threading.Thread(
                target=self._run_creation, args=[options, visitor], name="making a project", daemon=True
            )
            self._thread.start()

    def get_state(self, visitor: Visitor) -> CreationState:
        """Return this visitor's progress, never that of others."""
        with self._lock:
            return self.state if self._identity in visitor.identities else CreationState()

    def cancel(self) -> None:
        """Cancel soon, leaving nothing behind."""
        self._cancelled.set()

    def stop(self) -> None:
        """Cancel, and wait for the cleanup."""
        self.cancel()
        if self._thread:
            self._thread.join(10.0)

    def _run_creation(self, options: NewProjectOptions, visitor: Visitor) -> None:
        try:
            said = self._create_project(options)
            created = self._made(options.project, visitor)
        except _CreationCancelled:
            self._finish("Cancelled. Nothing of the project was kept.")
        except Exception as error:  # a thread has nobody to raise to: the page shows it, the log has all of it
            told = system_errors.translate_error(error)
            if told is None:
                log.exception("%s could not be made", options.project)
            self._finish(str(told or f"{options.project} could not be made: {type(error).__name__}: {error}"))
        else:
            self._finish("", link=created.link, name_cookie=created.name_cookie, said=tuple(said))

    def _create_project(self, options: NewProjectOptions) -> list[str]:
        if (options.project / "project.db").exists():
            raise AnnotatorError(f"{options.project} is a project already. Choose another name, or open that one.")
        done = set_up_project(
            options.project,
            images_folder=options.images,
            class_text=options.classes,
            label_file=options.labels,
            progress=self._report_progress,
            settings=SetupSettings(mode=options.mode, commas=options.commas),
        )
        return [*done.sentences, *done.registered.format_sentences(), *done.class_warnings]

    def _report_progress(self, done: int, total: int) -> None:
        if self._cancelled.is_set():
            raise _CreationCancelled
        seconds = time.monotonic() - self._began
        left = seconds / done * (total - done) if done and seconds > 1.0 else None
        self.state = replace(self.state, done=done, of=total, seconds_left=left)

    def _finish(self, error: str, **result: Any) -> None:
        self.state = replace(self.state, is_at_work=False, error=error, **result)
