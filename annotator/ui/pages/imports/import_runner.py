"""Imports from pages, in a thread that reads a source, waits for a decision, and stores it.

Each project has one import, shown on all pages. Changes are stored in one step.
"""

import logging
import queue
import re
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.imports import import_messages, import_plan
from annotator.exchange.predictions import prediction_import
from annotator.exchange.sources.fetch_folder import remove_fetched_files
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.locations.addresses import Address
from annotator.store.pictures.files import unescape_path
from annotator.store.runs.prediction_sources import PredictionSource
from annotator.ui.pages.imports.uploaded_files import get_uploads
from annotator.ui.serving.shutdown import IMPORT_RUNNER_CACHE

IDLE, READING, READY, STORING = "", "reading", "ready", "storing"
DONE, CANCELLED, FAILED = "done", "cancelled", "failed"
ONE_FILE_MESSAGE = "Predictions are read from one file."

Plan = import_plan.ImportPlan | prediction_import.PredictionPlan
Choices = import_plan.ImportOptions | prediction_import.PredictionOptions

_OPTION_PATTERN = re.compile(r" \(--[a-z][^)]*\)")

log = logging.getLogger("annotator.importing")


class _CancelledError(Exception):
    """The exception that cancels an import. Its text says what remains in the project, if anything."""


@dataclass(frozen=True)
class ImportRequest:
    """A requested import."""

    by: str
    # displayed source
    name: str
    source: Address | Path
    choices: Choices
    # folder of uploaded files, or None
    upload: Path | None = None
    # name for imported predictions, else ""
    predictions_name: str = ""

    @property
    def is_predictions(self) -> bool:
        return isinstance(self.choices, prediction_import.PredictionOptions)


@dataclass(frozen=True)
class ImportState:
    """A snapshot of an import's state."""

    stage: str = IDLE
    order: ImportRequest | None = None
    since: float = 0.0
    # what, done, of: progress. `of` is 0 if unknown
    what: str = ""
    done: int = 0
    of: int = 0
    # planned changes, read-only, None until read
    plan: Plan | None = None
    result: import_plan.ImportOutcome | PredictionSource | None = None
    # sentence about what remains after canceling, or ""
    said: str = ""
    error: str = ""
    # choices that caused an error
    refused: Choices | None = None

    @property
    def is_at_work(self) -> bool:
        return self.stage in (READING, STORING)

    @property
    def is_open(self) -> bool:
        return self.is_at_work or self.stage == READY


class ImportRunner:
    """The thread that runs a project's imports, one at a time."""

    def __init__(self, db: Database):
        self._db = db
        self._lock = threading.Lock()
        self._cancel = threading.Event()
        self._thread: threading.Thread | None = None
        self._decisions: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.state = ImportState()

    def start(self, order: ImportRequest) -> None:
        """Start reading an import source, or raise AnnotatorError while another import is open."""
        self._db.require(Right.OWN)
        with self._lock:
            self._check_none_open(order.by)
            self._cancel, self._decisions = threading.Event(), queue.SimpleQueue()
            self.state = ImportState(READING, order, time.time())
            self._thread = threading.Thread(target=self._run_import, args=[order], name="importing", daemon=True)
            self._thread.start()

    def change_choices(self, choices: Choices) -> None:
        self._send_decision(choices, READING)

    def store(self) -> None:
        self._send_decision(True, STORING)

    def cancel(self) -> None:
        """Cancel the import unless already stored."""
        self._cancel.set()
        self._send_decision(None, READING)

    def dismiss(self) -> None:
        with self._lock:
            if not self.state.is_open:
                self.state = ImportState()

    def wait(self) -> None:
        """Wait until the import needs a decision or ends."""
        while self.state.is_at_work and self._thread and self._thread.is_alive():
            self._thread.join(0.02)

    def stop(self) -> None:
        self.cancel()
        if self._thread:
            self._thread.join(1.0)

    def _check_none_open(self, by: str) -> None:
        state = self.state
        if not (state.is_open and state.order):
            return
        who = "You have" if state.order.by == by else f"{state.order.by} has"
        what = "is being imported" if state.is_at_work else "waits for a decision"
        raise AnnotatorError(
            f"{who} begun another import: {state.order.name} {what}. One can be open at a time; wait, or cancel it."
        )

    def _send_decision(self, decision: Any, stage: str) -> None:
        with self._lock:
            if self.state.stage == READY:
                self.state = replace(self.state, stage=stage, what="", done=0, of=0, error="")
                self._decisions.put(decision)

    def _run_import(self, order: ImportRequest) -> None:
        try:
            with self._open_plan(order) as plan:
                try:
                    self._await_decisions(order, plan)
                except _CancelledError:
                    raise _CancelledError(_describe_kept(order, plan)) from None
        except _CancelledError as cancelled:
            self._set_state(ImportState(CANCELLED, order, time.time(), said=str(cancelled)))
        except AnnotatorError as error:
            self._set_state(ImportState(FAILED, order, time.time(), error=clean_for_page(str(error), order)))
        except Exception as error:  # a thread has nobody to raise to: the page shows it, the server's log has all of it
            log.exception("%s could not be imported", order.source)
            text = f"{order.name} could not be imported: {type(error).__name__}: {error}"
            self._set_state(ImportState(FAILED, order, time.time(), error=clean_for_page(text, order)))
        finally:
            if order.upload and self.state.stage != DONE:
                known = [Path(unescape_path(folder.path)) for folder in images.load_folders(self._db)]
                remove_fetched_files(self._db.paths.project, str(order.source), known)

    def _await_decisions(self, order: ImportRequest, plan: Plan) -> None:
        error, refused = "", None
        while True:
            self._set_state(ImportState(READY, order, self.state.since, plan=plan, error=error, refused=refused))
            decision = self._decisions.get()
            if decision is None or self._cancel.is_set():
                raise _CancelledError
            if decision is True:
                result = self._store_import(order, plan)
                if order.upload:
                    get_uploads(self._db).remove_files(order.by)
                self._set_state(ImportState(DONE, order, time.time(), result=result))
                return
            try:
                if isinstance(plan, import_plan.ImportPlan):
                    plan.change_options(decision, self._report_progress)
                else:
                    plan.change_options(decision)
                order, error, refused = replace(order, choices=decision), "", None
            except AnnotatorError as problem:
                error, refused = clean_for_page(str(problem), order), decision

    def _store_import(self, order: ImportRequest, plan: Plan) -> import_plan.ImportOutcome | PredictionSource:
        try:
            return (
                plan.apply(self._report_progress)
                if isinstance(plan, import_plan.ImportPlan)
                else plan.apply(self._report_count)
            )
        except _CancelledError:
            if isinstance(plan, import_plan.ImportPlan) and plan.is_stored:
                raise AnnotatorError(
                    f"{order.name} was imported before it could be cancelled. Undo it in the history below."
                ) from None
            raise

    @contextmanager
    def _open_plan(self, order: ImportRequest) -> Generator[Plan]:
        source, choices = order.source, order.choices
        if isinstance(choices, import_plan.ImportOptions):
            with import_plan.prepare_import(
                self._db, source, choices, order.by, self._report_progress, order.name
            ) as plan:
                yield plan
        elif isinstance(source, Address):
            raise AnnotatorError(ONE_FILE_MESSAGE)
        else:
            with prediction_import.prepare_predictions(
                self._db, source, order.predictions_name, choices, order.by, self._report_count
            ) as plan:
                yield plan

    def _report_progress(self, step: str, done: int, total: int) -> None:
        if self._cancel.is_set():
            raise _CancelledError
        self.state = replace(self.state, what=step, done=done, of=total)

    def _report_count(self, done: int, total: int) -> None:
        self._report_progress("Reading" if self.state.stage == READING else "Storing", done, total)

    def _set_state(self, state: ImportState) -> None:
        with self._lock:
            self.state = state


def get_import_runner(db: Database) -> ImportRunner:
    return db.caches.get(IMPORT_RUNNER_CACHE, "", lambda: ImportRunner(db), 1)


def _describe_kept(order: ImportRequest, plan: Plan) -> str:
    """Describe what a dropped import leaves, or return ""."""
    if isinstance(plan, import_plan.ImportPlan) and plan.kept_folders and not order.upload:
        return import_messages.describe_unapplied_plan(plan)
    return ""


def clean_for_page(text: str, order: ImportRequest) -> str:
    """Remove command-line options and upload paths from a sentence."""
    text = _OPTION_PATTERN.sub("", text)
    return text.replace(f"{order.upload}/", "") if order.upload else text
