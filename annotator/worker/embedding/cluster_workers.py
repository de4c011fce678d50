"""Cluster workers: their number per machine, resource shares and current chunks."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from annotator.cluster.machines import Machine
from annotator.worker.embedding.chunks import Chunk
from annotator.worker.embedding.node_worker import StartReply

CORES_PER_WORKER = 4  # threads of one process beyond that wait for Python's lock
GPU_CORES_PER_WORKER, MAX_WORKERS_PER_GPU = 8, 4
CHUNK_SECONDS = 2.0  # of work; at most twice that is lost with a worker
FIRST_CHUNK_IMAGES, MAX_CHUNK_IMAGES = 16, 2048  # images, the first for each core
CHUNKS_PER_WORKER = 2  # chunks that a worker has: one at work, one at hand
SPEED_WINDOW_CHUNKS = 4  # chunks over which a speed is taken
MIN_OVERDUE_SECONDS, OVERDUE_FACTOR = 300.0, 20.0  # a chunk that takes longer, and so many times longer than it should


@dataclass(frozen=True)
class WorkerShare:
    """One cluster worker's share of a machine: cores and (fractional) GPUs."""

    cpus: float
    gpus: float

    @property
    def thread_count(self) -> int:
        return max(1, int(self.cpus))


def split_machine(resources: Mapping[str, float]) -> list[WorkerShare]:
    """Return the shares of a machine, one per worker ([] without cores). Resources: such as {"CPU": 16, "GPU": 2}."""
    cpus, gpus = resources.get("CPU", 0.0), int(resources.get("GPU", 0.0))
    if cpus <= 0:
        return []
    if gpus:
        each = max(1, min(MAX_WORKERS_PER_GPU, math.floor(cpus / gpus / GPU_CORES_PER_WORKER)))
        cores = math.floor(cpus / gpus / each)
        share = WorkerShare(min(cores, GPU_CORES_PER_WORKER) if cores >= 1 else round(cpus / gpus / each, 2), 1 / each)
        return [share] * (gpus * each)
    if cpus < 1:
        return [WorkerShare(cpus, 0.0)]
    several = math.ceil(math.floor(cpus) / CORES_PER_WORKER)
    least, more = divmod(math.floor(cpus), several)
    return [WorkerShare(float(least + (number < more)), 0.0) for number in range(several)]


@dataclass
class WorkerMachine(Machine):
    """A machine of the cluster, with its workers."""

    shares: list[WorkerShare]
    # number of consecutive workers that failed to start
    failed_starts: int = 0
    # time of the next attempt (time.monotonic)
    retry_at: float = math.inf


@dataclass(frozen=True)
class SentChunk:
    """A chunk that was sent to a worker, with times from time.monotonic()."""

    chunk: Chunk
    sent_at: float
    overdue_at: float


@dataclass(eq=False)
class ClusterWorker:
    """A Ray actor with its machine and its chunks."""

    machine: WorkerMachine
    share: WorkerShare
    handle: Any
    pending_start: Any = None  # a reference, until it is ready
    ready: StartReply | None = None
    # ray reference -> sent chunk
    sent_chunks: dict[Any, SentChunk] = field(default_factory=dict)
    # recent images per second, 0 if unknown
    speed: float = 0.0
    _returned: list[tuple[float, int]] = field(default_factory=list)  # when chunks came back, and their images

    def choose_chunk_size(self, remaining: int, worker_count: int) -> int:
        """Return the number of images in the next chunk: CHUNK_SECONDS of work, less near the end."""
        size = self.speed * CHUNK_SECONDS if self.speed else FIRST_CHUNK_IMAGES * self.share.thread_count
        fair = remaining / (2 * max(1, worker_count))
        step = 8 * self.share.thread_count
        return int(max(step, min(size, fair, MAX_CHUNK_IMAGES) // step * step))

    def record_sent(self, reference: Any, chunk: Chunk) -> None:
        seconds = time.monotonic()
        expected = len(chunk) * (len(self.sent_chunks) + 1) / self.speed if self.speed else 0.0
        self.sent_chunks[reference] = SentChunk(
            chunk, seconds, seconds + max(MIN_OVERDUE_SECONDS, OVERDUE_FACTOR * expected)
        )

    def record_received(self, reference: Any) -> Chunk:
        """Remove a sent chunk whose result has arrived, update the worker's speed, and return the chunk."""
        sent = self.sent_chunks.pop(reference)
        # Two chunks are at work side by side and come back in pairs: only several of them say how fast it is.
        self._returned = self._returned[-SPEED_WINDOW_CHUNKS:] or [(sent.sent_at, 0)]
        self._returned.append((time.monotonic(), len(sent.chunk)))
        images = sum(size for _, size in self._returned[1:])
        self.speed = images / max(self._returned[-1][0] - self._returned[0][0], 1e-3)
        self.machine.failed_starts = 0
        return sent.chunk

    def is_overdue(self) -> bool:
        return any(time.monotonic() > sent.overdue_at for sent in self.sent_chunks.values())
