"""The queue of images to embed, in chunks that are finished or requeued.

A chunk that two workers lost is halved, which isolates an image that kills workers. Such an image is given up
after MAX_LOSSES lost workers.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

MAX_LOSSES = 3  # lost workers after which an image that is alone is given up


@dataclass(frozen=True, eq=False)
class Chunk:
    """A batch of images that one cluster worker embeds."""

    # (n,) int64
    image_ids: np.ndarray
    # number of workers that were lost while embedding it
    losses: int = 0
    # whether file contents are sent along
    with_files: bool = False

    def __len__(self) -> int:
        return len(self.image_ids)


class ChunkQueue:
    """The queue of images to embed: `image_ids` (n,) int64, most wanted first."""

    def __init__(self, image_ids: np.ndarray):
        self._image_ids, self._next = image_ids, 0
        self._returned: deque[Chunk] = deque()

    def __len__(self) -> int:
        return len(self._image_ids) - self._next + sum(map(len, self._returned))

    def pop(self, size: int) -> Chunk | None:
        """Remove and return a chunk of at most `size` images, or return None if the queue is empty."""
        if self._returned:
            chunk = self._returned.popleft()
            if len(chunk) <= size:
                return chunk
            first, rest = _split_chunk(chunk, size)
            self._returned.appendleft(rest)
            return first
        image_ids = self._image_ids[self._next : self._next + size]
        self._next += len(image_ids)
        return Chunk(image_ids) if len(image_ids) else None

    def requeue(self, chunk: Chunk) -> None:
        """Put a chunk whose images were not processed back at the front."""
        if len(chunk):
            self._returned.appendleft(chunk)

    def requeue_lost(self, chunk: Chunk) -> list[int]:
        """Put a chunk back whose worker was lost, and return the ids of images that are given up."""
        lost = Chunk(chunk.image_ids, chunk.losses + 1, chunk.with_files)
        if lost.losses < 2:
            self.requeue(lost)
        elif len(lost) > 1:
            for half in reversed(_split_chunk(Chunk(lost.image_ids, 1, lost.with_files), -(-len(lost) // 2))):
                self.requeue(half)
        elif lost.losses < MAX_LOSSES:
            self.requeue(lost)
        else:
            return lost.image_ids.tolist()
        return []


def _split_chunk(chunk: Chunk, size: int) -> tuple[Chunk, Chunk]:
    return _make_part(chunk, chunk.image_ids[:size]), _make_part(chunk, chunk.image_ids[size:])


def _make_part(chunk: Chunk, image_ids: np.ndarray) -> Chunk:
    return Chunk(image_ids, chunk.losses if len(image_ids) > 1 else 0, chunk.with_files)
