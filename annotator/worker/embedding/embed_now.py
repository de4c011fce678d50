"""`annotator embed`: lock the project, embed images without embeddings, report the result."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from annotator.cluster.connection import (
    ClusterUse,
    build_missing_program_error,
    check_cluster_option,
    connect_to_cluster,
)
from annotator.cluster.package_versions import get_package_versions, list_extra_packages
from annotator.humanize import format_count
from annotator.process_stop import stop_on_signals
from annotator.progress_callbacks import StepCallback, ignore_steps
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache, open_features
from annotator.store.images import images
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.images.file_addresses import ImageFiles, load_image_files
from annotator.store.networks import configuration, embedding_claim
from annotator.worker.embedding.chunks import ChunkQueue
from annotator.worker.embedding.embedding_progress import EmbeddingProgress
from annotator.worker.embedding.local_executor import LocalExecutor
from annotator.worker.embedding.result_writer import EmbeddingResult, ResultWriter
from annotator.worker.features.backbone import load_project_backbone, load_project_network
from annotator.worker.features.image_embedder import ADDRESS_RETRY_SECONDS

MAX_TRIES = 3  # of images at an address that does not answer at all, AWAY_SECONDS apart
RESUME_ADVICE = "What is embedded is kept: the same command goes on from there."
# images of each folder that a machine is asked to read, among the first so many
PROBES_PER_FOLDER, MAX_PROBED_IMAGES = (3, 10_000)


class Executor(Protocol):
    """The interface of executors, which compute the embeddings of chunks of images."""

    workers: int
    note: str

    def iterate_results(self, chunks: ChunkQueue, should_stop: Callable[[], bool]) -> Iterator[EmbeddingResult | None]:
        """Yield results, with None in between for progress reports, until all is done or should_stop() is True."""
        ...


@dataclass(frozen=True)
class EmbeddingSummary:
    """The result of one `annotator embed`."""

    # newly embedded images
    images: int
    failed: int
    # unprocessed images, including `unanswered`
    remaining: int
    # images at unresponsive URLs
    unanswered: int
    seconds: float
    # maximum running at once
    workers: int
    # machine -> images per second
    nodes: dict[str, float]

    @property
    def images_per_second(self) -> float:
        """Return the images per second, 0 at the start."""
        return self.images / self.seconds if self.seconds else 0.0


def embed_now(
    project: Path,
    on: str = "local",
    on_step: StepCallback = ignore_steps,
    backbone: str | None = None,
) -> EmbeddingSummary:
    """Embed a project's images that have no embedding.

    Args:
        on: "local", "ray" or "ray://HOST:PORT" (annotator/cluster/connection.py).
        on_step: Called with (title, embedded images, images).
        backbone: Name of the backbone. None selects the project's.

    SIGINT and SIGTERM stop it and keep finished embeddings.

    Raises:
        AnnotatorError: Invalid `on`, or no usable cluster.
        AlreadyRunning: Another process embeds this project.
        DiskFull: The disk is full.
    """
    check_cluster_option(on)
    db = Database(project)
    db.check_writable()
    began = time.monotonic()
    claim = embedding_claim.claim(db, on)
    stop = threading.Event()
    try:
        backbone = backbone or configuration.get_backbone(db)
        cache = open_features(db, backbone)
        images.recheck_addresses(db)
        missing, before = _find_missing(db, cache)
        progress = EmbeddingProgress(db, claim, before, len(missing), on_step)
        progress.report(0, immediately=True)
        results = ResultWriter(db, cache)
        if len(missing):
            progress.report(0, "Loading the network", immediately=True)
            with _open_executor(db, on, backbone, cache, missing) as executor, stop_on_signals(stop):
                _embed_with_retries(executor, missing, results, progress, stop)
        remaining = len(missing) - results.embedded - results.failed
        seconds, unanswered = time.monotonic() - began, len(results.unanswered)
        workers, rates = progress.workers, progress.compute_rates()
        return EmbeddingSummary(results.embedded, results.failed, remaining, unanswered, seconds, workers, rates)
    finally:
        embedding_claim.release(db)


def _embed_with_retries(
    executor: Executor, image_ids: np.ndarray, results: ResultWriter, progress: EmbeddingProgress, stop: threading.Event
) -> None:
    """Embed images, retrying unreachable URLs up to MAX_TRIES times."""
    _embed_chunks(executor, ChunkQueue(image_ids), results, progress, stop)
    tries = 1
    while results.unanswered and tries < MAX_TRIES and not stop.is_set():
        again, done = np.array(results.unanswered, np.int64), results.embedded + results.failed
        for seconds in range(int(ADDRESS_RETRY_SECONDS), 0, -1):
            note = (
                f"{format_count(len(again), 'image')} cannot be read now, tried again in "
                f"{format_count(seconds, 'second')}"
            )
            progress.report(0, note)
            if stop.wait(1.0):
                return
        results.unanswered = []
        _embed_chunks(executor, ChunkQueue(again), results, progress, stop)
        tries = tries + 1 if results.embedded + results.failed == done else 1


def _embed_chunks(
    executor: Executor, chunks: ChunkQueue, results: ResultWriter, progress: EmbeddingProgress, stop: threading.Event
) -> None:
    stream = executor.iterate_results(chunks, stop.is_set)
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
    progress.report(executor.workers, immediately=True)


def _find_missing(db: Database, cache: FeatureCache) -> tuple[np.ndarray, int]:
    """Return (ids (n,) of images to embed, most wanted first, number of embedded images)."""
    wanted = images.load_ids_in_working_order(db)
    has = np.isin(wanted, cache.image_ids)
    return wanted[~has], int(has.sum())


@contextlib.contextmanager
def _open_executor(db: Database, on: str, backbone: str, cache: FeatureCache, missing: np.ndarray) -> Iterator[Any]:
    if on == "local":
        yield LocalExecutor(db, load_project_backbone(db, backbone))
        return
    use = ClusterUse(on, "annotator embed PROJECT --on local", RESUME_ADVICE)
    with connect_to_cluster(use) as ray:
        from annotator.worker.embedding.cluster_executor import ClusterExecutor
        from annotator.worker.embedding.node_worker import WorkerJob

        source = load_project_network(db, backbone).images_only()
        needed, bands = get_package_versions(*list_extra_packages(backbone)), get_shown_bands(db)
        work = WorkerJob(backbone, lambda: None, needed, 1, False, _choose_probes(db, missing), bands)
        try:
            pool = ClusterExecutor(ray, db, use, work, source, cache)
        except ImportError as error:
            raise build_missing_program_error(use, error) from error
        yield pool


def _choose_probes(db: Database, missing: np.ndarray) -> dict[str, list[ImageFiles]]:
    """Return a few images per folder, by which a machine tests which folders it can read."""
    probes: dict[str, list[ImageFiles]] = {}
    for files in load_image_files(db, missing[:MAX_PROBED_IMAGES].tolist()):
        for place in files.places:
            if len(probes.setdefault(place.folder, [])) < PROBES_PER_FOLDER:
                probes[place.folder].append(ImageFiles(files.image_id, (place,)))
    return probes
