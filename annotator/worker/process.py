"""The other process: embeds images, trains, publishes, draws heat maps; takes in what people decide meanwhile.

It shares nothing with the page but the store. Whatever it is killed in the middle of, the next one goes on from what
is on disk: shards of features, published runs, waiting jobs.
"""

import contextlib
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.queues import review
from annotator.records import Run
from annotator.settings import BUSY_STATUS, HEARTBEAT_SECONDS, HEATMAPS_AHEAD
from annotator.snapshot import suggestions
from annotator.snapshot.snapshot import read_snapshot
from annotator.store import configuration, decisions, heartbeat, images, jobs
from annotator.store.arrays import FeatureCache, add_features, sweep
from annotator.store.database import Database
from annotator.worker.layout import Mapmaker
from annotator.worker.schedule import Basis, Pace

POLL_SECONDS = 0.1
SHARD_SECONDS = 5.0  # features are kept this often while embedding: the most that a kill can lose
TRAIN_WHILE_EMBEDDING = 10.0  # while features are still coming, runs are published no more often than this
IMAGES_AT_ONCE = 2000  # embedded before looking anew which are wanted most
PATIENCE = 4.0  # seconds between being asked to end and ending: a thread that reads from a stalled disk never does
PATIENCE_WATCHED = 1.5  # the same when the app, which has little time itself, has ended
HEATMAPS_AT_ONCE = 2  # between two looks at what is more urgent
NOT_FINITE = "the network makes numbers of it that are not finite"

log = logging.getLogger("annotator.worker")


class Stopped(Exception):
    """Somebody asked the worker to end."""


class Worker:
    """One worker at work on one project."""

    def __init__(self, project: Path):
        """Take the project's worker lock. Raises AlreadyRunning when another worker holds it, AnnotatorError when
        there is no such project, or it may not be written."""
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
        self._stop = threading.Event()
        self._beaten = 0.0
        self._network = None  # (name, Backbone), loaded when first needed: importing torch takes seconds
        self._explainer = None
        self._cache: FeatureCache | None = None
        self._parts = None  # RegionCache, once a method asks for it: importing torch takes seconds
        self._looked_for_missing: tuple | None = None
        self._pace = Pace()
        self._undrawable: set[int] = set()  # images whose heat maps of this run could not be drawn
        self._drawn_ahead: tuple | None = None  # (run, version, newest decision) whose heat maps ahead are all drawn
        self._said: tuple = ()
        self._mapmaker = Mapmaker()
        self.say("starting")
        jobs.requeue(self.db)
        for room in (self.db.paths.features(""), self.db.paths.map(""), self.db.paths.runs, self.db.paths.heatmaps):
            sweep(room)

    def close(self) -> None:
        """Say goodbye and let the next worker in."""
        with contextlib.suppress(AnnotatorError):  # a full disk must not keep the lock
            self.say("stopped")
        self._lock.release()

    def stop(self) -> None:
        """Ask for an end at the next opportunity; safe from a signal handler or another thread."""
        self._stop.set()

    def say(self, state: str, done: int = 0, of: int = 0) -> None:
        """Beat the heart: at once when the state is new, otherwise once a second."""
        now = time.monotonic()
        if (state, of) != self._said or now - self._beaten >= HEARTBEAT_SECONDS or done == of:
            heartbeat.beat(self.db, state, done, of)
            self._beaten, self._said = now, (state, of)

    def run_once(self) -> Run | None:
        """Embed what is missing, train on whatever there is, publish. Raises AnnotatorError when nothing can be
        learned yet."""
        self.embed()
        return self._train()

    def embed(self) -> None:
        """Embed what is missing, and no more."""
        self._embed_missing(train_on_the_way=False)

    def run_forever(self) -> None:
        """Work until asked to stop."""
        from annotator.worker.missing_files import MissingFiles
        from annotator.worker.update_thread import KeepUp  # importing torch takes seconds

        keep_up = KeepUp(self.db, lambda: self._cache)
        missing_files = MissingFiles(self.db)
        keep_up.start()
        missing_files.start()
        try:
            self._run_until_stopped()
        finally:
            missing_files.close()
            keep_up.close()

    def _run_until_stopped(self) -> None:
        while not self._stop.is_set():
            try:
                self._embed_missing(train_on_the_way=True)
                if self._due():
                    self._train_or_note()
                elif not (self._draw_asked() or self._draw_ahead()):
                    if self._network is None:
                        self._backbone()  # before the first heat map is asked for, which should take a second, not ten
                    self._mapmaker.look_after(self.db, self._backbone_name(), self._features())
                    self.say("idle")
                    self._stop.wait(POLL_SECONDS)
            except Stopped:
                break

    # -- embedding

    def _embed_missing(self, *, train_on_the_way: bool) -> None:
        looked = (self.db.setting("registrations", 0), self._backbone_name())
        if looked == self._looked_for_missing:
            return
        trained = time.monotonic()
        while missing := self._missing():
            for _ in self._embed(missing[:IMAGES_AT_ONCE], len(missing)):
                if train_on_the_way and time.monotonic() - trained > TRAIN_WHILE_EMBEDDING and self._due():
                    self._train_or_note()
                    trained = time.monotonic()
        self._looked_for_missing = looked

    def _embed(self, image_ids: Sequence[int], missing: int) -> Iterator[None]:
        """Embed these images, of `missing` in all; yields whenever some have been kept."""
        from annotator.worker.embed import embed

        done = len(self._features().image_ids)
        total = done + missing
        self.say("embedding", done, total)
        paths, ids = self._existing(image_ids)
        shard: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        kept = time.monotonic()
        known = images.images(self.db, ids)
        contents = [known[image_id].sha256 for image_id in ids]
        for batch in embed(paths, self._backbone(), regions=True, should_stop=self._stop.is_set, contents=contents):
            features = batch.features.astype(np.float16)
            finite = np.isfinite(features).all(1)
            there = np.array([ids[index] for index in batch.indices], np.int64)
            shard.append((there[finite], features[finite], batch.regions[finite]))
            strange = [(batch.indices[row], NOT_FINITE) for row in np.flatnonzero(~finite)]
            for index, reason in batch.failures + strange:
                images.mark_problem(self.db, ids[index], reason)
            done += len(batch.indices)
            self._between("embedding", done, total)
            if time.monotonic() - kept > SHARD_SECONDS:
                self._keep(shard)
                kept = time.monotonic()
                yield
        self._keep(shard)
        self._check_stop()
        yield

    def _missing(self) -> list[int]:
        """Image ids without features: labeled ones first, then in the order in which people will see them."""
        have = set(self._features().image_ids.tolist())
        return [image_id for image_id in images.in_working_order(self.db) if image_id not in have]

    def _existing(self, image_ids: Sequence[int]) -> tuple[list[Path], list[int]]:
        paths, ids = [], []
        for image_id in image_ids:
            try:
                paths.append(images.image_path(self.db, image_id))
                ids.append(image_id)
            except AnnotatorError as error:
                images.mark_problem(self.db, image_id, str(error))
        return paths, ids

    def _keep(self, shard: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> None:
        if shard:
            ids, features, regions = (np.concatenate(part) for part in zip(*shard, strict=True))
            if len(ids):
                add_features(self._features().folder, ids, features, regions)
            shard.clear()
            self._features().refresh()

    def _features(self) -> FeatureCache:
        folder = self.db.paths.features(self._backbone_name())
        if self._cache is None or self._cache.folder != folder:
            self._cache = FeatureCache(folder)
            self._cache.refresh()
        return self._cache

    # -- training

    def _due(self) -> bool:
        return self._pace.due(self.db, len(self._features().image_ids))

    def _train_or_note(self) -> None:
        basis = Basis.of_now(self.db, len(self._features().image_ids))
        try:
            self._train()
        except Stopped:
            raise
        except Exception as error:
            # Not again before something has changed: the reason stays to be read. Whatever it is, heat maps and updates
            # of the run before go on; a worker that ended would be started again only to end again.
            told = str(error) if isinstance(error, AnnotatorError) else traceback.format_exc()
            log.warning("the training failed: %s", told)
            heartbeat.note_error(self.db, told)
            self._pace.failed = basis

    def _train(self) -> Run:
        started = time.monotonic()
        self.say("training")
        for job in jobs.claim(self.db, "train", limit=100):
            jobs.finish(self.db, job)
        from annotator.worker.region_cache import RegionCache
        from annotator.worker.train import train

        self._parts = self._parts or RegionCache()
        try:
            run = train(
                self.db,
                self._features(),
                configuration.method(self.db),
                configuration.parameters(self.db),
                self._backbone_name(),
                between=self._between,
                load=self._backbone,
                parts=self._parts,
            )
        except ValueError as error:  # from models: what it was given is wrong, and the next run may be given better
            raise AnnotatorError(f"{configuration.method(self.db)} could not be trained: {error}") from error
        finally:  # one that failed took its time as well
            self._pace.ended = time.monotonic()
            self._pace.took = self._pace.ended - started
        heartbeat.note_error(self.db, "")
        self._undrawable.clear()
        jobs.forget_heatmaps(self.db)
        log.info("run %d: %s, %d epochs, %.2f s", run.id, run.method, run.epochs, run.seconds)
        return run

    # -- heat maps

    def _draw_asked(self) -> bool:
        """Draw what people wait for; True when there was something."""
        asked = jobs.claim(self.db, "heatmap", HEATMAPS_AT_ONCE)
        for job in asked:
            try:
                self._draw(job.run_id, job.image_id, [job.class_id])
                jobs.finish(self.db, job)
            except Exception as error:  # a damaged head of a run, say: whoever asked is told, and the worker goes on
                jobs.fail(self.db, job, str(error) or repr(error))
        return bool(asked)

    def _draw_ahead(self) -> bool:
        """Draw for one image near the front of the review order; True when there was one to draw."""
        snapshot = read_snapshot(self.db)
        if snapshot is None:
            return False
        run, state = snapshot.run, (snapshot.run.id, snapshot.run.version, decisions.newest_decision(self.db))
        if state == self._drawn_ahead:
            return False
        ahead = review.front(self.db, snapshot, HEATMAPS_AHEAD)
        answered = suggestions.answered_classes(self.db, ahead)
        for image_id, chips in suggestions.suggestions_of(snapshot.predictions, answered, ahead, run.threshold).items():
            wanted = [
                chip.class_id for chip in chips if not self.db.paths.heatmap(run.id, image_id, chip.class_id).exists()
            ]
            if wanted and image_id not in self._undrawable:
                self.say("drawing heat maps")
                try:
                    self._draw(run.id, image_id, wanted)
                except Exception as error:
                    self._undrawable.add(image_id)
                    heartbeat.note_error(self.db, str(error) or repr(error))
                return True
        self._drawn_ahead = state
        return False

    def _draw(self, run_id: int, image_id: int, class_ids: list[int]) -> None:
        if self._explainer is None or self._explainer.backbone.name != self._backbone_name():
            from annotator.worker.explain import Explainer

            self._explainer = Explainer(self.db, self._backbone())
        self._explainer.draw(run_id, image_id, class_ids)

    # -- around them

    def _between(self, state: str, done: int, of: int) -> None:
        """What is looked after in the middle of long work: the heart, people waiting for a heat map, the end."""
        self.say(state, done, of)
        self._check_stop()
        self._draw_asked()

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise Stopped

    def _backbone_name(self) -> str:
        return configuration.backbone(self.db)

    def _backbone(self):
        name = self._backbone_name()
        if self._network is None or self._network[0] != name:
            self.say("loading the network")
            from models.backbones.networks import load_backbone

            try:
                self._network = (name, load_backbone(name))
            except ValueError as error:
                raise AnnotatorError(str(error)) from error
        return self._network[1]


def main(project: Path, *, once: bool = False, watched: bool = False) -> Run | None:
    """Be the worker of a project until told to stop (SIGTERM, SIGINT, or, when watched, the end of standard input).

    once       embed what is missing, train, publish, end
    watched    started by the app: end with it, however it ends

    Raises AlreadyRunning, or AnnotatorError when `once` has nothing to learn from.
    """
    try:
        worker = Worker(project)
    except AlreadyRunning:
        if watched:  # the app tries again later; to it this is no trouble
            raise SystemExit(BUSY_STATUS) from None
        raise
    signal.signal(signal.SIGTERM, lambda *_: _end(worker))
    signal.signal(signal.SIGINT, lambda *_: _end(worker))
    if watched:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
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
    """Stop the worker, and this process after so many seconds; nothing is lost by a kill, so nobody has to wait."""
    worker.stop()
    threading.Thread(target=_exit_late, args=[patience], name="forced end", daemon=True).start()


def _exit_late(patience: float) -> None:
    time.sleep(patience)
    os._exit(0)
