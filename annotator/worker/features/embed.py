"""From image files to embeddings, as fast as the cores allow.

On a CPU each thread decodes and embeds its own batch, because one forward pass over all cores would
wait, layer by layer, for decoders. For a GPU, threads decode ahead and another uploads.
"""

import contextlib
import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from annotator.errors import AnnotatorError, RequestSkipped
from annotator.store.locations.location import ImageSource, PendingRead, start_reading
from annotator.store.locations.remote_files import UNREADABLE_NOW_PROBLEM
from annotator.store.pictures.appearance import GRAY_SIDE_PIXELS, Appearance, measure_appearance
from annotator.store.pictures.bands import BandChoices
from annotator.store.pictures.decoding import BadImage, ImageFacts, check_image, open_rgb
from annotator.store.pictures.files import compute_sha256
from spmll.backbones.batch_size import tune_batch_size
from spmll.usable_cores import count_usable_cores

if TYPE_CHECKING:
    from spmll.backbones.frozen_backbone import Backbone

BATCH_IMAGES = 8  # images a thread takes at a time; small, so that a request to stop is heard soon
DECODED_BATCHES_AHEAD = 2  # batches of a GPU that wait in memory
MAX_GPU_BATCHES = 3  # and that are put into its memory, embedded, or handed over
MIN_IMAGES_TO_TUNE_BATCH = 1000  # images for which a GPU is asked first how many it takes at once
MIN_GPU_BATCHES = 8  # at least so many batches of a GPU, where there are as many images: decoding goes on beside it
MAX_THREADS = 8  # beyond that, threads wait for Python's global lock


@dataclass(frozen=True)
class EmbeddedBatch:
    """The embeddings of one batch. Images are identified by their positions in the given paths."""

    indices: list[int]  # n of them
    features: np.ndarray  # (n, D) float32, one row for each of `indices`
    regions: np.ndarray | None  # (n, 9, D) float16, if asked for; see Backbone.features_and_regions
    failures: list[tuple[int, str]]  # (place, one sentence that says why), of files that could not be read
    facts: list[tuple[int, ImageFacts]]  # (place, size and time) of what was read at addresses
    appearances: list[tuple[int, Appearance]]  # (place, how it looks) of each of `indices`


@dataclass(frozen=True)
class DecodedBatch:
    """The decoded images of one batch, as input for the backbone."""

    indices: list[int]  # n of them
    pixels: torch.Tensor  # (n, 3, S, S) uint8
    failures: list[tuple[int, str]]  # as of Embedded
    facts: list[tuple[int, ImageFacts]]
    appearances: list[tuple[int, Appearance]]


def embed_images(
    paths: Sequence[ImageSource],
    backbone: "Backbone",
    *,
    regions: bool = False,
    batch: int | None = None,
    workers: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    contents: Sequence[str] | None = None,
    should_skip: Callable[[ImageSource], bool] = lambda path: False,
    bands: BandChoices,
) -> Iterator[EmbeddedBatch]:
    """Yield embeddings of image files per batch, in path order.

    Args:
        regions: Also embed regions, at ten times the memory.
        batch: Paths per batch. None selects the default.
        workers: Concurrent batches. None selects one per core.
        should_stop: True ends the iterator after running batches.
        contents: Expected sha256 per file. A mismatch is a failure.
        should_skip: True makes a path a failure without reading.

    Unreadable files are failures in their batch, never exceptions.
    """

    def begin(place: int) -> PendingRead:
        if should_skip(paths[place]):
            return _refuse_skipped
        read = start_reading(paths[place])
        return partial(_read_checked, read, contents[place]) if contents else read

    with embedding_threads(workers) as pool:
        yield from embed_batches(
            len(paths), begin, backbone, pool, regions=regions, batch=batch, should_stop=should_stop, bands=bands
        )


def embed_batches(
    count: int,
    start_reading: Callable[[int], PendingRead],
    backbone: "Backbone",
    pool: "SizedThreadPool",
    *,
    regions: bool,
    batch: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    bands: BandChoices,
) -> Iterator[EmbeddedBatch]:
    """Yield embeddings of images 0 .. count - 1 in batches, like `embed_images`.

    Args:
        start_reading: Position -> pending read, called early to overlap downloads.
        pool: May be shared by several iterators.
    """
    stopped = should_stop or (lambda: False)
    if backbone.on_gpu:
        if count >= MIN_IMAGES_TO_TUNE_BATCH:
            tune_batch_size(backbone)
        batch = batch or min(backbone.chunk, max(BATCH_IMAGES, count // MIN_GPU_BATCHES))
        yield from _embed_on_gpu(count, start_reading, backbone, pool, regions, batch, stopped, bands)
        return
    batch = batch or BATCH_IMAGES
    starts = iter(range(0, count, batch))
    pending: deque[Future[EmbeddedBatch]] = deque()
    try:
        while True:
            # One batch ahead for each thread: none stands idle while the caller keeps what it got.
            while len(pending) < 2 * pool.size and not stopped() and (start := next(starts, None)) is not None:
                places = range(start, min(start + batch, count))
                readings = [start_reading(place) for place in places]  # at addresses: all of them at once
                pending.append(pool.submit(_embed_batch, readings, places, backbone, regions, bands))
            if not pending:
                return
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()


def _embed_on_gpu(
    count: int,
    start_reading: Callable[[int], PendingRead],
    backbone: "Backbone",
    pool: "SizedThreadPool",
    regions: bool,
    batch: int,
    stopped: Callable[[], bool],
    bands: BandChoices,
) -> Iterator[EmbeddedBatch]:
    """Yield embeddings from a GPU that takes `batch` images at once."""
    few = min(BATCH_IMAGES, batch)
    starts = deque(range(0, count, few))
    decoding: deque[Future[DecodedBatch]] = deque()
    pending: deque[Future[EmbeddedBatch]] = deque()

    def next_batch() -> list[Future[DecodedBatch]]:
        if stopped():
            starts.clear()
            while decoding and decoding[-1].cancel():
                decoding.pop()
        while starts and len(decoding) * few < DECODED_BATCHES_AHEAD * batch + pool.size * few:
            start = starts.popleft()
            places = range(start, min(start + few, count))
            decoding.append(
                pool.submit(read_batch, [start_reading(place) for place in places], places, backbone, bands)
            )
        return [decoding.popleft() for _ in range(min(len(decoding), max(1, batch // few)))]

    with ThreadPoolExecutor(1, "upload") as uploading, ThreadPoolExecutor(1, "forward") as forwarding:
        try:
            while True:
                while len(pending) < MAX_GPU_BATCHES and (parts := next_batch()):
                    uploaded = uploading.submit(_upload_batch, parts, backbone)
                    pending.append(forwarding.submit(_embed_uploaded, uploaded, backbone, regions))
                if not pending:
                    return
                yield pending.popleft().result()
        finally:
            for future in (*decoding, *pending):
                future.cancel()


def _upload_batch(parts: Sequence[Future[DecodedBatch]], backbone: "Backbone") -> DecodedBatch:
    few = [part.result() for part in parts]
    return DecodedBatch(
        list(chain.from_iterable(part.indices for part in few)),
        backbone.upload(torch.cat([part.pixels for part in few])),
        list(chain.from_iterable(part.failures for part in few)),
        list(chain.from_iterable(part.facts for part in few)),
        list(chain.from_iterable(part.appearances for part in few)),
    )


def _embed_uploaded(uploaded: Future[DecodedBatch], backbone: "Backbone", regions: bool) -> EmbeddedBatch:
    return _embed_decoded(uploaded.result(), backbone, regions)


class SizedThreadPool(ThreadPoolExecutor):
    """A thread pool with known size."""

    def __init__(self, size: int, torch_threads: int):
        super().__init__(size, "embed", initializer=torch.set_num_threads, initargs=(torch_threads,))
        self.size = size


@contextlib.contextmanager
def embedding_threads(workers: int | None = None, core_count: int | None = None) -> Iterator[SizedThreadPool]:
    """Yield a thread pool whose threads share the cores.

    Args:
        workers: None selects one per core, at most MAX_THREADS.

    Torch's thread count is restored at the end.
    """
    core_count = core_count or count_usable_cores()
    workers = workers or max(1, min(core_count, MAX_THREADS))
    before = torch.get_num_threads()
    try:
        with SizedThreadPool(workers, max(1, core_count // workers)) as pool:
            yield pool
    finally:
        torch.set_num_threads(before)


def _embed_batch(
    readings: Sequence[PendingRead], places: range, backbone: "Backbone", regions: bool, bands: BandChoices
) -> EmbeddedBatch:
    return _embed_decoded(read_batch(readings, places, backbone, bands), backbone, regions)


def _embed_decoded(batch: DecodedBatch, backbone: "Backbone", regions: bool) -> EmbeddedBatch:
    features, of_regions = forward(batch.pixels, backbone, regions)
    return EmbeddedBatch(batch.indices, features, of_regions, batch.failures, batch.facts, batch.appearances)


def read_batch(
    readings: Iterable[PendingRead], places: Iterable[int], backbone: "Backbone", bands: BandChoices
) -> DecodedBatch:
    """Decode one batch of pending reads and measure image appearance. Errors of images become failures."""
    least = max(backbone.input_size, GRAY_SIDE_PIXELS)
    indices, images, failures, facts, appearances = [], [], [], [], []
    for place, read in zip(places, readings, strict=True):
        try:
            source = read()
            if not isinstance(source, Path):
                facts.append((place, check_image(source, bands)))
            picture = open_rgb(source, at_least=(least, least), bands=bands)
            images.append(backbone.preprocess(picture))
            appearances.append((place, measure_appearance(picture)))
            indices.append(place)
        except (BadImage, AnnotatorError, OSError) as error:
            failures.append((place, str(error)))
    if images:
        # Stacked with the channels last, as they lie in memory; stack() would otherwise turn every image over.
        pixels = torch.stack([image.permute(1, 2, 0) for image in images]).permute(0, 3, 1, 2)
    else:
        pixels = torch.zeros(0, 3, backbone.input_size, backbone.input_size, dtype=torch.uint8)
    return DecodedBatch(indices, pixels, failures, facts, appearances)


def _refuse_skipped() -> Path:
    raise RequestSkipped(f"{UNREADABLE_NOW_PROBLEM}: its address does not answer, and is asked again soon.")


def _read_checked(read: PendingRead, sha256: str) -> Path | io.BytesIO:
    source = read()
    if isinstance(source, Path) and compute_sha256(source) != sha256:
        raise BadImage("the file holds another picture than when it was registered: run annotator init again")
    return source


def forward(images: torch.Tensor, backbone: "Backbone", regions: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Return embeddings (n, D) float32 of images (n, 3, S, S) uint8, and of R regions (n, R, D) float16."""
    if not regions:
        return backbone.features(images).numpy(), None
    features, of_regions = backbone.features_and_regions(images)
    # Half precision ends at 65504; what is beyond would become infinite.
    return features.numpy(), of_regions.clamp(-65504, 65504).half().numpy()
