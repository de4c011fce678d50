"""The worker process: its lock, its loop over the duties, and shutdown."""

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.exchange.tagging.allowed_taggers import LOCAL_TAGGERS, AllowedTaggers
from annotator.memory_allocator import limit_memory_arenas, release_freed_memory
from annotator.process_stop import STOP_SIGNALS, watch_parent
from annotator.progress_callbacks import ProgressCallback, StepCallback
from annotator.records import Run
from annotator.settings import BUSY_EXIT_STATUS
from annotator.store.database import heartbeat, jobs
from annotator.store.database.arrays import remove_unfinished_files
from annotator.store.database.database import Database
from annotator.store.imports import unfinished_imports
from annotator.system_resources import lower_priority
from annotator.worker.adapting.adapt_now import clean_up_after_kill
from annotator.worker.adapting.backbone_switching import AdaptationStarter, BackbonePreparer
from annotator.worker.duties.appearance_measurer import AppearanceMeasurer
from annotator.worker.duties.event_refresher import EventRefresher
from annotator.worker.duties.heatmap_drawer import HeatmapDrawer
from annotator.worker.duties.map_layout import Mapmaker
from annotator.worker.duties.name_guesser import NameGuesser
from annotator.worker.duties.near_duplicate_finder import NearDuplicateFinder
from annotator.worker.duties.network_comparer import NetworkComparer
from annotator.worker.duties.search_answerer import SearchAnswerer
from annotator.worker.duties.tagger_starter import TaggerStarter
from annotator.worker.features.heartbeat_thread import keep_heartbeat
from annotator.worker.features.image_embedder import ImageEmbedder
from annotator.worker.features.worker_context import Stopped, WorkerContext
from annotator.worker.training.first_orders import FirstOrderPublisher
from annotator.worker.training.training_duty import TrainingDuty

if TYPE_CHECKING:
    from spmll.ensemble.collection_scoring import ScoringFunction

POLL_SECONDS = 0.1
RELEASE_SECONDS = 10.0  # between two releases of freed memory: each page that is needed again costs a page fault
# seconds from a request to end until the process exits, as a thread on a stalled disk never ends
EXIT_TIMEOUT_SECONDS = 4.0
WATCHED_EXIT_TIMEOUT_SECONDS = 1.5  # the same when the app has ended, which has little time itself


class Worker:
    """The worker of a project. A lock ensures that there is only one."""

    def __init__(
        self, project: Path, scoring: "ScoringFunction | None" = None, taggers: AllowedTaggers = LOCAL_TAGGERS
    ):
        """Take the worker lock and clean up after a killed worker. Raises AlreadyRunning or AnnotatorError."""
        self.db = Database(project)
        self.db.check_writable()
        self._lock = FileLock(self.db.paths.worker_lock)
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            state = heartbeat.load_worker_state(self.db)
            raise AlreadyRunning(
                f"A worker is at work on {self.db.paths.project} already (process {state.pid}, {state.state}).\n"
                "    One is enough: the app starts its own. To replace it, end that process first."
            ) from error
        self.context = WorkerContext(self.db)
        self.heatmap_drawer = HeatmapDrawer(self.context)
        self.image_embedder = ImageEmbedder(self.context, self._report_and_serve)
        self.first_order_publisher = FirstOrderPublisher(self.context)
        self.training = TrainingDuty(self.context, self._report_and_serve, scoring)
        self.backbone_preparer = BackbonePreparer(self.context, self._report_and_serve)
        self.network_comparer = NetworkComparer(self.context, self._report_and_serve)
        self.name_guesser = NameGuesser(self.context, self._report_and_serve)
        self.search_answerer = SearchAnswerer(self.context)
        self.appearance_measurer = AppearanceMeasurer(self.context)
        self.near_duplicate_finder = NearDuplicateFinder(self.context)
        self.event_refresher = EventRefresher(self.context)
        self.adaptation_starter = AdaptationStarter(self.context)
        self.tagger_starter = TaggerStarter(self.context, taggers)
        self._map_maker = Mapmaker()
        self._released_at = time.monotonic()
        self.context.report_state("starting")
        jobs.requeue_interrupted(self.db)
        unfinished_imports.recover(self.db)
        paths = self.db.paths
        if paths.unfinished_adaptation.exists():
            clean_up_after_kill(self.db)
        for room in (paths.features(""), paths.map(""), paths.runs, paths.first_orders, paths.heatmaps):
            remove_unfinished_files(room, exclusive=True)

    def close(self) -> None:
        """Record the end and release the lock."""
        self.adaptation_starter.stop_process()
        self.tagger_starter.stop_process()
        with contextlib.suppress(AnnotatorError):  # a full disk must not keep the lock
            self.context.report_state("stopped")
        self._lock.release()

    def stop(self) -> None:
        """Request a stop from any thread or signal handler."""
        self.context.stop.set()

    def run_once(self) -> Run:
        """Embed all images, train and publish once. Raises AnnotatorError if labels are missing."""
        self.event_refresher.find_if_due()
        self.image_embedder.embed_missing()
        self.backbone_preparer.prepare()
        self.name_guesser.publish_if_due(all_embedded=True)
        return self.train()

    def run_forever(self) -> None:
        from annotator.worker.features.missing_files import MissingFileWatcher
        from annotator.worker.training.update_thread import UpdateThread  # importing torch takes seconds

        updates = UpdateThread(self.db, lambda: self.context.cache)
        missing_files = MissingFileWatcher(self.db)
        updates.start()
        missing_files.start()
        try:
            self._run_until_stopped()
        finally:
            missing_files.close()
            updates.close()

    def _run_until_stopped(self) -> None:
        duties = (
            self.search_answerer.answer_newest,  # somebody waits for it
            lambda: self.first_order_publisher.publish_if_due(all_embedded=True),
            lambda: self.name_guesser.publish_if_due(all_embedded=True),
            self._train_if_due,
            self.heatmap_drawer.draw_requested,
            self.heatmap_drawer.draw_in_advance,
            self.appearance_measurer.measure_batch,
            self.near_duplicate_finder.find_if_due,
            self.event_refresher.find_if_due,
            self.name_guesser.compare_some_patches,
        )
        while not self.context.stop.is_set():
            try:
                self.image_embedder.embed_missing(self._guess_or_train)
                self.adaptation_starter.start_if_requested()
                self.tagger_starter.start_if_requested()
                self.backbone_preparer.prepare(self.embed_and_train)
                self.network_comparer.measure_speed()
                self.network_comparer.prepare_and_compare(self.embed_and_train)
                if not any(duty() for duty in duties):  # after each of them, start again with the most urgent
                    self._idle()
                self._release_memory()
            except Stopped:
                break

    def train(self) -> Run:
        """Train once and publish the run. Raises AnnotatorError if labels are missing."""
        run = self.training.train()
        self.heatmap_drawer.forget_old_run()
        return run

    def embed_and_train(self) -> bool:
        """Embed with the current backbone, train if due, and return whether it trained."""
        self.image_embedder.embed_missing(self._train_if_due)
        return self._train_if_due()

    def _train_if_due(self) -> bool:
        """Train if due, and return whether a training was due, even if it failed."""
        if not self.training.is_due():
            return False
        if self.training.train_or_record_error():
            self.heatmap_drawer.forget_old_run()
        release_freed_memory()
        return True

    def _guess_or_train(self) -> bool:
        """Order images, predict from class names and train, each if due."""
        self.first_order_publisher.publish_if_due(all_embedded=False)
        self.name_guesser.publish_if_due(all_embedded=False)
        return self._train_if_due()

    def _idle(self) -> None:
        if not self.context.has_backbone():
            self.context.get_backbone()  # before the first heat map is asked for, which should take a second, not ten
        self._map_maker.start_if_due(self.db, self.context.get_backbone_name(), self.context.get_features())
        self.context.report_state("idle")
        self.context.stop.wait(POLL_SECONDS)

    def _release_memory(self) -> None:
        """Return freed memory: the heaps fragment while trainings and heat maps take turns."""
        if time.monotonic() - self._released_at >= RELEASE_SECONDS:
            release_freed_memory()
            self._released_at = time.monotonic()

    def _report_and_serve(self, state: str, done: int, total: int) -> None:
        """Report progress, check for a stop, serve requests."""
        self.context.report_state(state, done, total)
        self.context.check_stop()
        self._release_memory()
        self.heatmap_drawer.draw_requested()
        self.search_answerer.answer_newest()


def prepare_next_backbone(project: Path, on_progress: ProgressCallback) -> bool:
    """Embed with the next backbone and switch to it. Return False if a worker is running."""
    return _run_as_worker(
        project, on_progress, lambda worker, between: BackbonePreparer(worker.context, between).prepare()
    )


def compare_pending_networks(project: Path, on_progress: ProgressCallback) -> bool:
    """Compare the backbones for which this was requested. Return False if a worker is running."""

    def compare(worker: Worker, between: StepCallback) -> None:
        worker.image_embedder.embed_missing()
        preparing = NetworkComparer(worker.context, between)
        while preparing.prepare_and_compare():
            pass

    return _run_as_worker(project, on_progress, compare)


def guess_from_names(project: Path, on_progress: ProgressCallback) -> bool:
    """Predict from class names, including patches. Return False if a worker is running."""

    def guess(worker: Worker, between: StepCallback) -> None:
        worker.image_embedder.embed_missing()
        names = NameGuesser(worker.context, between)
        names.publish_if_due(all_embedded=True)
        while names.compare_some_patches():
            pass

    return _run_as_worker(project, on_progress, guess)


def _run_as_worker(
    project: Path,
    on_progress: ProgressCallback,
    act: Callable[[Worker, StepCallback], object],
) -> bool:
    """Run one duty in this process. Return False if a worker is running."""
    try:
        worker = Worker(project)
    except AlreadyRunning:
        return False

    def between(state: str, done: int, of: int) -> None:
        worker.context.report_state(state, done, of)
        on_progress(done, of)

    try:
        with keep_heartbeat(worker.context):
            act(worker, between)
    finally:
        worker.close()
    return True


def run_worker(
    project: Path,
    *,
    once: bool = False,
    watched: bool = False,
    scoring: "ScoringFunction | None" = None,
    taggers: AllowedTaggers = LOCAL_TAGGERS,
) -> Run | None:
    """Run a project's worker until SIGTERM, SIGINT or, if `watched`, the end of stdin.

    Args:
        once: Embed, train, publish, then return the run.
        scoring: None scores in this process.
        taggers: Tagger servers that pages may request.

    Raises AlreadyRunning, AnnotatorError.
    """
    limit_memory_arenas()
    try:
        worker = Worker(project, scoring, taggers)
    except AlreadyRunning:
        if watched:  # the app tries again later and needs no message
            raise SystemExit(BUSY_EXIT_STATUS) from None
        raise
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: _stop_and_exit(worker))
    if watched:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
        for library in ("botocore", "aiobotocore", "httpx", "azure", "google"):  # each tells of every connection
            logging.getLogger(library).setLevel(logging.WARNING)
        watch_parent(worker.stop, WATCHED_EXIT_TIMEOUT_SECONDS, exit_status=0)  # the app's end is no error
    if not once:
        lower_priority(10)  # the person's page always goes first
    try:
        with keep_heartbeat(worker.context):
            if once:
                return worker.run_once()
            worker.run_forever()
    except Stopped:
        return None
    except Exception as error:
        with contextlib.suppress(AnnotatorError):
            heartbeat.record_error(worker.db, heartbeat.describe_exception(error))
        raise
    finally:
        worker.close()
    return None


def _stop_and_exit(worker: Worker, timeout_seconds: float = EXIT_TIMEOUT_SECONDS) -> None:
    """Request a stop of the worker, and end the process if it still runs after `timeout_seconds`."""
    worker.stop()
    threading.Thread(target=_exit_after, args=[timeout_seconds], name="forced end", daemon=True).start()


def _exit_after(timeout_seconds: float) -> None:
    time.sleep(timeout_seconds)
    os._exit(0)
