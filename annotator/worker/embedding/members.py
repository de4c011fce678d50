"""The workers of a cluster: how many a machine gets, their shares of its cores and GPUs, and the chunks each has."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from annotator.worker.embedding.chunks import Chunk
from annotator.worker.embedding.node import Ready

CORES_EACH = 4  # threads of one process beyond that wait for Python's lock
GPU_CORES_EACH, MOST_ON_A_GPU = 8, 4
CHUNK_SECONDS = 2.0  # of work; at most twice that is lost with a worker
FIRST_CHUNK, LARGEST_CHUNK = 16, 2048  # images, the first for each core
AHEAD = 2  # chunks that a worker has: one at work, one at hand
HISTORY = 4  # chunks over which a speed is taken
OVERDUE_SECONDS, OVERDUE_TIMES = 300.0, 20.0  # a chunk that takes longer, and so many times longer than it should


@dataclass(frozen=True)
class Share:
    """The cores and GPUs of a machine that one worker takes; part of a GPU where several workers decode for it."""

    cpus: float
    gpus: float

    @property
    def threads(self) -> int:
        """Return the number of threads that the share is for."""
        return max(1, int(self.cpus))


def shares(resources: Mapping[str, float]) -> list[Share]:
    """Return the shares of the workers of a machine; none where it offers no cores.

    A GPU gets as many workers as there are cores to decode for it; without one, a worker has CORES_EACH cores at most.

    Args:
        resources: The machine's resources as Ray names them: {"CPU": 16, "GPU": 2}.
    """
    cpus, gpus = resources.get("CPU", 0.0), int(resources.get("GPU", 0.0))
    if cpus <= 0:
        return []
    if gpus:
        each = max(1, min(MOST_ON_A_GPU, math.floor(cpus / gpus / GPU_CORES_EACH)))
        cores = math.floor(cpus / gpus / each)
        share = Share(min(cores, GPU_CORES_EACH) if cores >= 1 else round(cpus / gpus / each, 2), 1 / each)
        return [share] * (gpus * each)
    if cpus < 1:
        return [Share(cpus, 0.0)]
    several = math.ceil(math.floor(cpus) / CORES_EACH)
    least, more = divmod(math.floor(cpus), several)
    return [Share(float(least + (number < more)), 0.0) for number in range(several)]


@dataclass
class Machine:
    """A machine of the cluster.

    Attributes:
        failed_starts: The number of workers in a row that failed to start.
        reason: Why the machine is left out, "" where it is not.
        again_at: When it is tried again (time.monotonic).
    """

    node_id: str
    name: str
    shares: list[Share]
    failed_starts: int = 0
    reason: str = ""
    again_at: float = math.inf


@dataclass(frozen=True)
class Sent:
    """A chunk that a worker has.

    Attributes:
        at: When it was sent (time.monotonic).
        overdue_at: When it should be done at the latest.
    """

    chunk: Chunk
    at: float
    overdue_at: float


@dataclass(eq=False)
class Member:
    """One worker: a Ray actor, the machine it runs on and the chunks it has.

    Attributes:
        out: Reference of Ray's -> the chunk that was sent.
        speed: Recent images a second; 0 while it is not known.
    """

    machine: Machine
    share: Share
    handle: Any
    starting: Any = None  # a reference, until it is ready
    ready: Ready | None = None
    out: dict[Any, Sent] = field(default_factory=dict)
    speed: float = 0.0
    _back: list[tuple[float, int]] = field(default_factory=list)  # when chunks came back, and their images

    def next_size(self, remaining: int, members: int) -> int:
        """Return the number of images for the next chunk: CHUNK_SECONDS of work, less when little is left for all."""
        size = self.speed * CHUNK_SECONDS if self.speed else FIRST_CHUNK * self.share.threads
        fair = remaining / (2 * max(1, members))
        step = 8 * self.share.threads
        return int(max(step, min(size, fair, LARGEST_CHUNK) // step * step))

    def send(self, reference: Any, chunk: Chunk) -> None:
        """Record that the worker has this chunk now."""
        seconds = time.monotonic()
        expected = len(chunk) * (len(self.out) + 1) / self.speed if self.speed else 0.0
        self.out[reference] = Sent(chunk, seconds, seconds + max(OVERDUE_SECONDS, OVERDUE_TIMES * expected))

    def receive(self, reference: Any) -> Chunk:
        """Record that the worker has returned a chunk, update its speed, and return the chunk."""
        sent = self.out.pop(reference)
        # Two chunks are at work side by side and come back in pairs: only several of them say how fast it is.
        self._back = self._back[-HISTORY:] or [(sent.at, 0)]
        self._back.append((time.monotonic(), len(sent.chunk)))
        images = sum(size for _, size in self._back[1:])
        self.speed = images / max(self._back[-1][0] - self._back[0][0], 1e-3)
        self.machine.failed_starts = 0
        return sent.chunk

    def is_overdue(self) -> bool:
        """Return whether an answer of the worker should have come by now."""
        return any(time.monotonic() > sent.overdue_at for sent in self.out.values())
