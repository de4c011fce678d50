"""Project creation from the start page, in a thread that works like `annotator init`.

It is all or nothing, and canceling leaves nothing behind.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import SetupSettings, set_up_project
from annotator.store.disk import system_errors

log = logging.getLogger("annotator.home")


class _CreationCancelled(Exception):
    """The exception that ends a canceled creation."""


@dataclass(frozen=True)
class NewProjectOptions:
    """A project to create.

    Attributes:
        project: Folder, which must not exist.
        classes: One class per line.
        commas: SPLIT or KEEP.
    """

    project: Path
    images: Path
    classes: str
    commas: str
    labels: Path | None
    mode: str


@dataclass(frozen=True)
class CreationState:
    """The progress of a project's creation.

    Attributes:
        by: Creator, the only reader of `link`, which signs in. "" locally.
        done, of: Files read. `of` is 0 while listing.
        seconds_left: None if unknown.
        link: URL of the finished project, or "".
        said: Sentences about the result.
    """

    name: str = ""
    by: str = ""
    is_at_work: bool = False
    done: int = 0
    of: int = 0
    seconds_left: float | None = None
    error: str = ""
    link: str = ""
    said: tuple[str, ...] = ()


class ProjectCreator:
    """Creates projects in a thread, one at a time.

    Args:
        on_created: Returns the URL for a new project's folder and creator.
    """

    def __init__(self, on_created: Callable[[Path, str], str]):
        self._made = on_created
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._thread: threading.Thread | None = None
        self._began = 0.0
        self.state = CreationState()

    def start(self, options: NewProjectOptions, by: str) -> None:
        """Start a creation, or raise AnnotatorError during another."""
        with self._lock:
            if self.state.is_at_work:
                raise AnnotatorError(
                    f"The project {self.state.name} is being made just now. Wait until it is there, then try again."
                )
            self._cancelled.clear()
            self._began = time.monotonic()
            self.state = CreationState(options.project.name, by, is_at_work=True)
            self._thread = threading.Thread(
                target=self._run_creation, args=[options, by], name="making a project", daemon=True
            )
            self._thread.start()

    def get_state(self, by: str) -> CreationState:
        """Return this person's progress, never that of others."""
        state = self.state
        return state if state.by == by else CreationState()

    def cancel(self) -> None:
        """Cancel soon, leaving nothing behind."""
        self._cancelled.set()

    def stop(self) -> None:
        """Cancel, and wait for the cleanup."""
        self.cancel()
        if self._thread:
            self._thread.join(10.0)

    def _run_creation(self, options: NewProjectOptions, by: str) -> None:
        try:
            said = self._create_project(options)
            link = self._made(options.project, by)
        except _CreationCancelled:
            self._finish(error="Cancelled. Nothing of the project was kept.")
        except Exception as error:  # a thread has nobody to raise to: the page shows it, the log has all of it
            told = system_errors.translate_error(error)
            if told is None:
                log.exception("%s could not be made", options.project)
            self._finish(error=str(told or f"{options.project} could not be made: {type(error).__name__}: {error}"))
        else:
            self._finish(link=link, said=tuple(said))

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

    def _finish(self, *, error: str = "", link: str = "", said: tuple[str, ...] = ()) -> None:
        self.state = replace(self.state, is_at_work=False, error=error, link=link, said=said)
