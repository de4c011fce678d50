"""Exports from the Export page, written in a thread independent of it.

A complete export is zipped or renamed into the exports folder.
"""

import logging
import os
import shutil
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.exports.archive import MAX_ZIP_FILES, TOO_MANY_FILES_MESSAGE, zip_folder
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import (
    ExportJob,
    ExportTag,
    PreparedExport,
    prepare_export,
    write_export,
)
from annotator.exchange.exports.losses import LossyExportError
from annotator.exchange.files.safe_names import safe_name
from annotator.exchange.formats import find_format
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.database.project_identity import make_folder_in_project
from annotator.store.disk.durable import make_folder, sync_folder
from annotator.ui.serving.shutdown import EXPORT_RUNNER_CACHE
from annotator.ui.shared.work.downloads import OfferedFile, get_downloads

MAX_KEPT_OUTCOMES = 5  # exports that are listed

log = logging.getLogger("annotator.export")


class _ExportCancelled(Exception):
    """The exception that ends a canceled export."""


@dataclass(frozen=True)
class ExportRequest:
    """A requested export."""

    kind: str
    choices: Choices
    # file or folder name without ending
    name: str
    # write to the project's exports, not a zip
    on_server: bool = False
    tag: str = ""
    by: str = ""
    lossy: bool = False


@dataclass(frozen=True)
class ExportProgress:
    """The progress of an export (`of` 0 means unknown)."""

    order: ExportRequest
    step: str = "Counting"
    done: int = 0
    of: int = 0


@dataclass(frozen=True)
class ExportOutcome:
    """The result of an export."""

    order: ExportRequest
    ended_at: float
    images: int = 0
    classes: int = 0
    # sentences about the result
    said: tuple[str, ...] = ()
    offered: OfferedFile | None = None
    folder: Path | None = None
    # message, "" if canceled
    error: str = ""


class ExportRunner:
    """The thread that writes a project's exports, with results."""

    def __init__(self, db: Database):
        self._db = db
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.running: ExportProgress | None = None
        self.outcomes: tuple[ExportOutcome, ...] = ()
        get_downloads(db)  # removes what a killed process has left

    @property
    def is_at_work(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, order: ExportRequest) -> None:
        """Start an export, or raise AnnotatorError if another one is running or the name is not valid."""
        self._db.require(Right.REVIEW)
        if problem := find_name_problem(self._db, order):
            raise AnnotatorError(problem)
        with self._lock:
            if self.is_at_work:
                raise AnnotatorError("Another export is being written. Wait until it is done, or cancel it.")
            self._stop.clear()
            self.running = ExportProgress(order)
            self._thread = threading.Thread(target=self._run_export, args=[order], name="export", daemon=True)
            self._thread.start()

    def cancel(self) -> None:
        """Cancel the running export, removing its files."""
        self._stop.set()

    def wait(self) -> None:
        if self._thread:
            self._thread.join()

    def stop(self) -> None:
        self.cancel()
        if self._thread:
            self._thread.join(1.0)
        get_downloads(self._db).stop()

    def forget(self, outcome: ExportOutcome) -> None:
        """Remove the result of an export with its download."""
        with self._lock:
            self.outcomes = tuple(one for one in self.outcomes if one is not outcome)
        if outcome.offered:
            get_downloads(self._db).remove(outcome.offered.id)

    def _run_export(self, order: ExportRequest) -> None:
        outcome = ExportOutcome(order, 0.0)
        folder = None
        try:
            folder = get_downloads(self._db).create_folder()
            outcome = self._write_export(order, folder)
        except _ExportCancelled:
            pass
        except LossyExportError as error:  # somebody answered since it was agreed to
            lost = " ".join(f"{loss.text}." for loss in error.lost)
            outcome = replace(outcome, error=f"Nothing was exported. {lost} Count again above, and agree to it.")
        except AnnotatorError as error:
            outcome = replace(outcome, error=str(error))
        except Exception as error:  # a thread has nobody to raise to: the page shows it, the server's log has all of it
            log.exception("an export failed")
            outcome = replace(outcome, error=f"Nothing was exported: {type(error).__name__}: {error}")
        if folder and not outcome.offered:
            get_downloads(self._db).remove(folder.name)
        with self._lock:
            self.outcomes = (replace(outcome, ended_at=time.time()), *self.outcomes)[:MAX_KEPT_OUTCOMES]
            self.running = None

    def _write_export(self, order: ExportRequest, folder: Path) -> ExportOutcome:
        format_ = find_format(order.kind, "write")
        files = folder / "files"
        staged = files / order.name
        target = staged / f"{order.name}{format_.ending}" if format_.ending else staged
        make_folder(target.parent, 0o700)
        zipped, final = folder / f"{order.name}.zip", get_export_folder(self._db, order)
        place = str(final) if order.on_server else f"{zipped.name} (downloaded)"
        moved = False
        try:
            with prepare_export(
                self._db,
                target,
                order.kind,
                order.choices,
                lossy=order.lossy,
                tag=ExportTag(order.tag, order.by, place) if order.tag else None,
                job=ExportJob(self._report_progress, self._check_cancelled, will_be_zipped=not order.on_server),
            ) as prepared:
                self._check_file_count(order, prepared)
                self._begin_step("Writing")
                write_export(prepared)
                if order.on_server:
                    self._move_to_exports(staged, final)
                    moved = True
                else:
                    self._begin_step("Packing")
                    # A format of one file with others beside it has no folder around them.
                    zip_folder(staged if format_.ending else files, zipped, self._report_progress)
                view = prepared.data.view
        except BaseException:
            if moved:  # somebody else has taken the tag meanwhile
                shutil.rmtree(final, ignore_errors=True)
            raise
        shutil.rmtree(files, ignore_errors=True)
        outcome = ExportOutcome(order, 0.0, view.images, len(view.classes), tuple(prepared.sentences))
        if order.on_server:
            return replace(outcome, folder=final)
        return replace(outcome, offered=get_downloads(self._db).offer(zipped, "application/zip"))

    def _check_file_count(self, order: ExportRequest, prepared: PreparedExport) -> None:
        one_an_image = prepared.is_folder and prepared.choices.images != "none"
        if not order.on_server and one_an_image and prepared.data.view.images > MAX_ZIP_FILES:
            raise AnnotatorError(TOO_MANY_FILES_MESSAGE)

    def _move_to_exports(self, staged: Path, final: Path) -> None:
        self._check_cancelled()
        make_folder_in_project(final.parent)
        make_folder(final.parent, 0o700)
        if os.path.lexists(final):
            raise AnnotatorError(f"{final} is there by now. Give the export another name.")
        staged.rename(final)
        sync_folder(final.parent)

    def _begin_step(self, step: str) -> None:
        self._check_cancelled()
        if self.running:
            self.running = replace(self.running, step=step, done=0, of=0)

    def _report_progress(self, done: int, total: int) -> None:
        self._check_cancelled()
        if self.running:
            self.running = replace(self.running, done=done, of=total)

    def _check_cancelled(self) -> None:
        if self._stop.is_set():
            raise _ExportCancelled


def get_export_runner(db: Database) -> ExportRunner:
    return db.caches.get(EXPORT_RUNNER_CACHE, "", lambda: ExportRunner(db), 1)


def get_export_folder(db: Database, order: ExportRequest) -> Path:
    return db.paths.exports / order.name


def find_name_problem(db: Database, order: ExportRequest) -> str:
    """Return why the export cannot get its name, or "" if it can."""
    name = order.name
    if not name:
        return "Give the export a name."
    if name != safe_name(name):
        return (
            f"{name!r} cannot be the name of a file on every system. Use letters, digits, blanks, - and _, such as "
            f"{safe_name(name)!r}."
        )
    if order.on_server and os.path.lexists(place := get_export_folder(db, order)):
        return f"{place} is there already, and nothing is replaced. Give the export another name."
    return ""
