"""The network on a machine of a cluster: threads that decode and embed on a CPU, or that decode for a GPU.

On a CPU each thread takes a few images all the way (worker/embed.py). A GPU wants many at once: threads decode ahead,
one thread at a time gives it batches. How many images a batch takes is found by trying: twice as many, as long as that
is faster, and half as many where the memory ends.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import chain

import numpy as np
import torch

from annotator.store.locations.location import Reading
from annotator.worker.embed import BATCH, Embedded, embed_places, embedding_threads, forward, read_batch
from models.backbones.networks import Backbone
from models.backbones.pretrained import Pretrained

FIRST, LARGEST = 32, 1024  # images a batch of a GPU that are tried
FASTER = 1.05  # what twice as many must bring
DECODED_AHEAD = 2  # batches of a GPU that wait in memory


class Network:
    """A network, ready to embed; a context, because it has threads. setting: in words, how it runs."""

    def __init__(self, name: str, source: Pretrained, threads: int, gpu: bool):
        self._on_gpu = gpu and torch.cuda.is_available()
        self._backbone = Backbone(name, source, "cuda" if self._on_gpu else "cpu")
        self._threads = threads
        self._forward = threading.Lock()
        self.input_size = self._backbone.input_size
        self.setting = self._backbone.setting
        self.batch = largest_useful_batch(self._backbone) if self._on_gpu else BATCH

    def __enter__(self) -> "Network":
        self._context = embedding_threads(self._threads, self._threads)
        self._pool = self._context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(None, None, None)

    def embed(self, count: int, begin: Callable[[int], Reading]) -> Embedded:
        """Images 0 .. count - 1 as one batch, with the features, float16, of their regions, too.

        begin   place -> what gives its file (embed_places)
        """
        on_cpu = embed_places(count, begin, self._backbone, self._pool, regions=True)
        parts = list(self._batches(count, begin) if self._on_gpu else on_cpu)
        with np.errstate(over="ignore"):  # what is beyond half precision becomes infinite, which the project notes
            features = np.concatenate([part.features for part in parts]).astype(np.float16)
        return Embedded(
            list(chain.from_iterable(part.indices for part in parts)),
            features,
            np.concatenate([part.regions for part in parts if part.regions is not None]),
            list(chain.from_iterable(part.failures for part in parts)),
            list(chain.from_iterable(part.facts for part in parts)),
        )

    def _batches(self, count: int, begin: Callable[[int], Reading]) -> Iterator[Embedded]:
        starts = deque(range(0, count, BATCH))
        decoding: deque[Future] = deque()
        while starts or decoding:
            while starts and len(decoding) * BATCH < DECODED_AHEAD * self.batch + self._pool.size * BATCH:
                start = starts.popleft()
                places = range(start, min(start + BATCH, count))
                readings = [begin(place) for place in places]
                decoding.append(self._pool.submit(read_batch, readings, places, self._backbone))
            several = [decoding.popleft().result() for _ in range(min(len(decoding), max(1, self.batch // BATCH)))]
            indices = list(chain.from_iterable(part.indices for part in several))
            features, regions = self._on_device(torch.cat([part.pixels for part in several]))
            failures = list(chain.from_iterable(part.failures for part in several))
            yield Embedded(
                indices, features, regions, failures, list(chain.from_iterable(part.facts for part in several))
            )

    def _on_device(self, pixels: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """A forward pass; where the memory ends, because others use the GPU too, in halves from now on."""
        with self._forward:
            self._backbone.chunk = self.batch
            features, regions = forward(pixels, self._backbone, True)
            self.batch = self._backbone.chunk
        assert regions is not None  # they were asked for
        return features, regions


def largest_useful_batch(
    backbone: Backbone, first: int = FIRST, largest: int = LARGEST, seconds: Callable[[int], float] | None = None
) -> int:
    """Images that the network takes at once when it is given as many as make it faster.

    seconds    how long a pass of so many images takes; raises torch.OutOfMemoryError. None: measured
    """
    seconds = seconds or (lambda images: _seconds(backbone, images))
    batch, speed, tried = 1, 0.0, first
    while tried <= largest:
        try:
            measured = tried / seconds(tried)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            break
        if measured < speed * FASTER:
            break
        batch, speed, tried = tried, measured, tried * 2
    return batch


def _seconds(backbone: Backbone, images: int) -> float:
    pixels = torch.zeros(images, 3, backbone.input_size, backbone.input_size, dtype=torch.uint8)
    backbone.chunk = images
    forward(pixels, backbone, True)  # memory is taken and kernels are chosen
    if backbone.chunk < images:
        raise torch.OutOfMemoryError
    began = time.perf_counter()
    forward(pixels, backbone, True)
    return time.perf_counter() - began
