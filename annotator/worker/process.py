"""The worker process: a loop over its duties, the lock that excludes a second worker, and its shutdown.

It shares only the store with the page. After a kill at any moment, the next worker goes on from the files on disk:
shards of features, published runs, waiting jobs.
"""

import contextlib
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.records import Run
from annotator.settings import BUSY_STATUS
from annotator.store.database import heartbeat, jobs
from annotator.store.database.arrays import sweep
from annotator.store.database.database import Database
from annotator.store.imports import leftovers as unfinished_imports
from annotator.store.pictures.decoding_budget import give_back_freed
from annotator.worker.adapting.switching import NextBackbone, Starter
from annotator.worker.duties.appearances import Appearances
from annotator.worker.duties.comparing import Candidates
from annotator.worker.duties.events import EventsAgain
from annotator.worker.duties.heatmaps import Heatmaps
from annotator.worker.duties.layout import Mapmaker
from annotator.worker.duties.name_guesses import NameGuesses
from annotator.worker.duties.search_examples import SearchExamples
from annotator.worker.duties.tagging import TaggerStarter
from annotator.worker.duties.twins import Twins
from annotator.worker.features.context import Context, Stopped
from annotator.worker.features.missing_features import MissingFeatures
from annotator.worker.training.duty import Training
from annotator.worker.training.first_orders import FirstOrders

if TYPE_CHECKING:
    from models.ensemble.all_images import Scoring

POLL_SECONDS = 0.1
PATIENCE = 4.0  # seconds from a request to end until the process exits, as a thread on a stalled disk never ends
PATIENCE_WATCHED = 1.5  # the same when the app has ended, which has little time itself


class Worker:
    """The worker of one project: its duties, and the lock that excludes a second one."""

    def __init__(self, project: Path, scoring: "Scoring | None" = None):
        """Take the project's worker lock, and clean up after a killed worker.

        Raises AlreadyRunning when another worker holds the lock, AnnotatorError when there is no such project, or it
        may not be written.
        """
        self.db = Database(project)
        self.db.refuse_read_only()
        self._lock = FileLock(self.db.paths.worker_lock)
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            state = heartbeat.worker_state(self.db)
            raise AlreadyRunning(
                f"A worker is at work on {self.db.paths.project} already (process {state.pid}, {state.state}).\n"
                "    One is enough: the app starts its own. To replace it, end that process first."
            ) from error
        self.context = Context(self.db)
        self.heatmaps = Heatmaps(self.context)
        self.features = MissingFeatures(self.context, self._between)
        self.first_orders = FirstOrders(self.context)
        self.training = Training(self.context, self._between, scoring)
        self.next_backbone = NextBackbone(self.context, self._between)
        self.candidates = Candidates(self.context, self._between)
        self.names = NameGuesses(self.context, self._between)
        self.searches = SearchExamples(self.context)
        self.appearances = Appearances(self.context)
        self.twins = Twins(self.context)
        self.events = EventsAgain(self.context)
        self.adapting, self.tagger = Starter(self.context), TaggerStarter(self.context)
        self._mapmaker = Mapmaker()
        self.context.say("starting")
        jobs.requeue(self.db)
        unfinished_imports.recover(self.db)
        paths = self.db.paths
        for room in (paths.features(""), paths.map(""), paths.runs, paths.first_orders, paths.heatmaps):
            sweep(room, alone=True)

    def close(self) -> None:
        """Record that the worker has ended, and release its lock."""
        self.adapting.close()
        self.tagger.close()
        with contextlib.suppress(AnnotatorError):  # a full disk must not keep the lock
            self.context.say("stopped")
        self._lock.release()

    def stop(self) -> None:
        """Request an end at the next opportunity; may be called from a signal handler or another thread."""
        self.context.stop.set()

    def run_once(self) -> Run:
        """Embed images without features, train, publish. Raises AnnotatorError when nothing can be learned yet."""
        self.events.find_if_due()
        self.features.embed()
        self.next_backbone.prepare()
        self.names.publish_if_due(all_embedded=True)
        return self.train()

    def run_forever(self) -> None:
        """Do all duties until asked to stop."""
        from annotator.worker.features.missing_files import MissingFiles
        from annotator.worker.training.update_thread import UpdateThread  # importing torch takes seconds

        updates = UpdateThread(self.db, lambda: self.context.cache)
        missing_files = MissingFiles(self.db)
        updates.start()
        missing_files.start()
        try:
            self._run_until_stopped()
        finally:
            missing_files.close()
            updates.close()

    def _run_until_stopped(self) -> None:
        duties = (
            self.searches.answer_asked,  # somebody waits for it
            lambda: self.first_orders.publish_if_due(all_embedded=True),
            lambda: self.names.publish_if_due(all_embedded=True),
            self._train_if_due,
            self.heatmaps.draw_asked,
            self.heatmaps.draw_ahead,
            self.appearances.measure_some,
            self.twins.find_if_due,
            self.events.find_if_due,
            self.names.look_at_patches,
        )
        while not self.context.stop.is_set():
            try:
                self.features.embed(self._guess_or_train)
                self.adapting.start_if_wanted()
                self.tagger.start_if_wanted()
                self.next_backbone.prepare(self.keep_up)
                self.candidates.measure_speed()
                self.candidates.prepare(self.keep_up)
                if not any(duty() for duty in duties):  # after each of them, start again with the most urgent
                    self._idle()
            except Stopped:
                break

    def train(self) -> Run:
        """Train now, and publish. Raises AnnotatorError when nothing can be learned yet."""
        run = self.training.train()
        give_back_freed()
        self.heatmaps.forget_old_run()
        return run

    def keep_up(self) -> bool:
        """Embed new images with the network in use and train if due, while another network's features are computed.

        Returns:
            Whether it has trained.
        """
        self.features.embed(self._train_if_due)
        return self._train_if_due()

    def _train_if_due(self) -> bool:
        """Train if a training is due; return True if it was, successful or not."""
        if not self.training.due():
            return False
        if self.training.train_or_note():
            self.heatmaps.forget_old_run()
        give_back_freed()
        return True

    def _guess_or_train(self) -> bool:
        """Order the images, guess from names and train, each if due, while images are still being embedded.

        Returns:
            Whether it has trained.
        """
        self.first_orders.publish_if_due(all_embedded=False)
        self.names.publish_if_due(all_embedded=False)
        return self._train_if_due()

    def _idle(self) -> None:
        if not self.context.has_backbone():
            self.context.backbone()  # before the first heat map is asked for, which should take a second, not ten
        self._mapmaker.begin_if_due(self.db, self.context.backbone_name(), self.context.features())
        self.context.say("idle")
        self.context.stop.wait(POLL_SECONDS)

    def _between(self, state: str, done: int, of: int) -> None:
        """Write the heartbeat, check for a stop, and do what people wait for; called during long work."""
        self.context.say(state, done, of)
        self.context.check_stop()
        self.heatmaps.draw_asked()
        self.searches.answer_asked()


def prepare_next_backbone(project: Path, progress: Callable[[int, int], None]) -> bool:
    """Compute the features of the next network, and use it; return False where a worker does that already.

    Args:
        project: The project folder.
        progress: Called with (images done, of).
    """
    return _without_worker(project, progress, lambda worker, between: NextBackbone(worker.context, between).prepare())


def compare_candidates(project: Path, progress: Callable[[int, int], None]) -> bool:
    """Compute the features of the networks to be compared, and compare them; return False where a worker does that.

    Args:
        project: The project folder.
        progress: Called with (images done, of).
    """

    def compare(worker: Worker, between: Callable[[str, int, int], None]) -> None:
        worker.features.embed()
        preparing = Candidates(worker.context, between)
        while preparing.prepare():
            pass

    return _without_worker(project, progress, compare)


def guess_from_names(project: Path, progress: Callable[[int, int], None]) -> bool:
    """Guess classes from their names, patches included; return False where a worker does that.

    Args:
        project: The project folder.
        progress: Called with (images done, of).
    """

    def guess(worker: Worker, between: Callable[[str, int, int], None]) -> None:
        worker.features.embed()
        names = NameGuesses(worker.context, between)
        names.publish_if_due(all_embedded=True)
        while names.look_at_patches():
            pass

    return _without_worker(project, progress, guess)


def _without_worker(
    project: Path,
    progress: Callable[[int, int], None],
    act: Callable[[Worker, Callable[[str, int, int], None]], object],
) -> bool:
    """Do one of a worker's duties in this process, in the place of a worker; return False where one is at work.

    Args:
        project: The project folder.
        progress: Called with (done, of).
        act: Called with a worker, and a function to call during long work with (state, done, of).
    """
    try:
        worker = Worker(project)
    except AlreadyRunning:
        return False

    def between(state: str, done: int, of: int) -> None:
        worker.context.say(state, done, of)
        progress(done, of)

    try:
        act(worker, between)
    finally:
        worker.close()
    return True


def main(project: Path, *, once: bool = False, watched: bool = False, scoring: "Scoring | None" = None) -> Run | None:
    """Run the worker of a project until told to stop (SIGTERM, SIGINT, or, when watched, the end of standard input).

    Args:
        project: The project folder.
        once: Embed images without features, train, publish, end; the run is returned.
        watched: Started by the app: end with it, however it ends.
        scoring: Scores all images of a training; None: this process does.

    Raises AlreadyRunning, or AnnotatorError when `once` has nothing to learn from.
    """
    try:
        worker = Worker(project, scoring)
    except AlreadyRunning:
        if watched:  # the app tries again later and needs no message
            raise SystemExit(BUSY_STATUS) from None
        raise
    signal.signal(signal.SIGTERM, lambda *_: _end(worker))
    signal.signal(signal.SIGINT, lambda *_: _end(worker))
    if watched:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
        for library in ("botocore", "aiobotocore", "httpx", "azure", "google"):  # each tells of every connection
            logging.getLogger(library).setLevel(logging.WARNING)
        threading.Thread(target=_stop_at_end_of_input, args=[worker], daemon=True).start()
    if not once and hasattr(os, "nice"):
        os.nice(10)  # the person's page always goes first
    try:
        if once:
            return worker.run_once()
        worker.run_forever()
    except Stopped:
        return None
    except AnnotatorError as error:
        with contextlib.suppress(AnnotatorError):
            heartbeat.note_error(worker.db, str(error))
        raise
    except Exception:
        with contextlib.suppress(AnnotatorError):
            heartbeat.note_error(worker.db, traceback.format_exc())
        raise
    finally:
        worker.close()
    return None


def _stop_at_end_of_input(worker: Worker) -> None:
    # The app holds the other end of this pipe: it closes when the app dies, even by kill -9.
    sys.stdin.buffer.read()
    _end(worker, PATIENCE_WATCHED)


def _end(worker: Worker, patience: float = PATIENCE) -> None:
    """Stop the worker, and exit this process after `patience` seconds; a kill loses nothing, so nobody has to wait."""
    worker.stop()
    threading.Thread(target=_exit_late, args=[patience], name="forced end", daemon=True).start()


def _exit_late(patience: float) -> None:
    time.sleep(patience)
    os._exit(0)
