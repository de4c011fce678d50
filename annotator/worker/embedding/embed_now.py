"""`annotator embed`: find images without features, claim the project, embed here or on a cluster, report the result."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from annotator.cluster.connection import Use, check, connected, without_program
from annotator.cluster.versions import needed_for, versions
from annotator.shares import counted
from annotator.store.database.database import Database
from annotator.store.features.cache import FeatureCache, open_features
from annotator.store.images import images
from annotator.store.images.band_setting import shown_bands
from annotator.store.images.file_addresses import ImageFiles, image_files
from annotator.store.networks import configuration, embedding
from annotator.worker.embedding.chunks import Chunks
from annotator.worker.embedding.local import Local
from annotator.worker.embedding.progress import Progress
from annotator.worker.embedding.results import Result, Results
from annotator.worker.features.backbone import backbone_of, network_of
from annotator.worker.features.missing_features import AWAY_SECONDS

TRIES = 3  # of images at an address that does not answer at all, AWAY_SECONDS apart
GO_ON = "What is embedded is kept: the same command goes on from there."
PROBES, PROBED = 3, 10_000  # images of each folder that a machine is asked to read, among the first so many


class Executor(Protocol):
    """A maker of results from chunks.

    Attributes:
        workers: The number at work now.
        note: The reason for a delay, "" for none.
    """

    workers: int
    note: str

    def results(self, chunks: Chunks, should_stop: Callable[[], bool]) -> Iterator[Result | None]:
        """Yield results as they come, and None between them; end when all is done or should_stop() is True."""
        ...


@dataclass(frozen=True)
class Embedded:
    """The result of one `annotator embed`.

    Attributes:
        images: Images that have features now and had none.
        failed: Images that could not be read; the reason is stored with each.
        remaining: Images without features or such a reason: the command was stopped, or they are unanswered.
        unanswered: Images at addresses that did not answer.
        workers: The most that were at work at one time.
        nodes: Machine -> images a second.
    """

    images: int
    failed: int
    remaining: int
    unanswered: int
    seconds: float
    workers: int
    nodes: dict[str, float]

    @property
    def images_a_second(self) -> float:
        """Return the images a second, 0 before any time has passed."""
        return self.images / self.seconds if self.seconds else 0.0


def embed_now(
    project: Path,
    on: str = "local",
    show: Callable[[int, int, str], None] = lambda done, of, title: None,
    backbone: str | None = None,
) -> Embedded:
    """Embed the images of a project that have no features.

    Args:
        project: The project folder.
        on: "local", "ray" or "ray://HOST:PORT" (annotator/cluster/connection.py).
        show: Called with (images that have features, images, title).
        backbone: The network; None: the one that the project uses.

    SIGINT and SIGTERM stop it: finished features are kept. Raises AnnotatorError: unknown `on`, no Ray, a head that
    does not answer, versions that differ, no machine that can embed; AlreadyRunning when another process embeds this
    project; DiskFull.
    """
    check(on)
    db = Database(project)
    db.refuse_read_only()
    began = time.monotonic()
    claim = embedding.claim(db, on)
    stop = threading.Event()
    try:
        backbone = backbone or configuration.backbone(db)
        cache = open_features(db, backbone)
        images.check_addresses(db)
        missing, before = _missing(db, cache)
        progress = Progress(db, claim, before, len(missing), show)
        progress.report(0, at_once=True)
        results = Results(db, cache)
        if len(missing):
            progress.report(0, "Loading the network", at_once=True)
            with _executor(db, on, backbone, cache, missing) as executor, _stopped_by_signals(stop):
                _run(executor, missing, results, progress, stop)
        remaining = len(missing) - results.embedded - results.failed
        seconds, unanswered = time.monotonic() - began, len(results.unanswered)
        workers, rates = progress.workers, progress.rates()
        return Embedded(results.embedded, results.failed, remaining, unanswered, seconds, workers, rates)
    finally:
        embedding.release(db)


def _run(
    executor: Executor, image_ids: np.ndarray, results: Results, progress: Progress, stop: threading.Event
) -> None:
    """Embed these images; retry those at addresses that do not answer, up to TRIES times in a row without a result."""
    _run_once(executor, Chunks(image_ids), results, progress, stop)
    tries = 1
    while results.unanswered and tries < TRIES and not stop.is_set():
        again, done = np.array(results.unanswered, np.int64), results.embedded + results.failed
        for seconds in range(int(AWAY_SECONDS), 0, -1):
            note = f"{counted(len(again), 'image')} cannot be read now, tried again in {counted(seconds, 'second')}"
            progress.report(0, note)
            if stop.wait(1.0):
                return
        results.unanswered = []
        _run_once(executor, Chunks(again), results, progress, stop)
        tries = tries + 1 if results.embedded + results.failed == done else 1


def _run_once(executor: Executor, chunks: Chunks, results: Results, progress: Progress, stop: threading.Event) -> None:
    stream = executor.results(chunks, stop.is_set)
    try:
        for result in stream:
            if result is not None:
                progress.add(result.node, results.add(result))
            else:
                results.write_if_due()
            progress.report(executor.workers, executor.note)
    finally:
        results.write()  # also the results that a lost cluster has returned until then
        stream.close()  # pyright: ignore[reportAttributeAccessIssue] - executors are generators
    progress.report(executor.workers, at_once=True)


def _missing(db: Database, cache: FeatureCache) -> tuple[np.ndarray, int]:
    """Return the image ids (n,) without features in the order of need, and the number of images with features."""
    wanted = images.in_working_order(db)
    has = np.isin(wanted, cache.image_ids)
    return wanted[~has], int(has.sum())


@contextlib.contextmanager
def _executor(db: Database, on: str, backbone: str, cache: FeatureCache, missing: np.ndarray) -> Iterator[Any]:
    if on == "local":
        yield Local(db, backbone_of(db, backbone))
        return
    use = Use(on, "annotator embed PROJECT --on local", GO_ON)
    with connected(use) as ray:
        from annotator.worker.embedding.node import Work
        from annotator.worker.embedding.pool import Pool

        source = network_of(db, backbone).images_only()
        needed, bands = versions(*needed_for(backbone)), shown_bands(db)
        work = Work(backbone, lambda: None, needed, 1, False, _probes(db, missing), bands)
        try:
            pool = Pool(ray, db, use, work, source, cache)
        except ImportError as error:
            raise without_program(use, error) from error
        yield pool


def _probes(db: Database, missing: np.ndarray) -> dict[str, list[ImageFiles]]:
    """Return for each folder a few images that a machine is asked to read before it gets work."""
    probes: dict[str, list[ImageFiles]] = {}
    for files in image_files(db, missing[:PROBED].tolist()):
        for place in files.places:
            if len(probes.setdefault(place.folder, [])) < PROBES:
                probes[place.folder].append(ImageFiles(files.image_id, (place,)))
    return probes


@contextlib.contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Let SIGINT and SIGTERM set `stop` during the block; a second SIGINT raises KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: object) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
