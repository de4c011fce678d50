"""The images that remain to be embedded, handed out in chunks; every chunk is finished or comes back.

A chunk whose worker is lost returns to the front. A chunk that is lost twice is cut in two, because one of its images
may be what ends the workers: that image is alone in the end, and given up after MAX_LOSSES workers.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

MAX_LOSSES = 3  # lost workers after which an image that is alone is given up


@dataclass(frozen=True, eq=False)
class Chunk:
    """Images that one worker embeds in one go.

    Attributes:
        image_ids: (n,) int64.
        losses: The number of workers that were lost with the chunk.
        with_files: Whether the content of the files travels with it, because a machine of the cluster could not read
            them.
    """

    image_ids: np.ndarray
    losses: int = 0
    with_files: bool = False

    def __len__(self) -> int:
        return len(self.image_ids)


class ChunkQueue:
    """The queue of images to embed.

    Args:
        image_ids: (n,) int64, in the order in which they are wanted.
    """

    def __init__(self, image_ids: np.ndarray):
        self._image_ids, self._next = image_ids, 0
        self._returned: deque[Chunk] = deque()

    def __len__(self) -> int:
        """Return the number of images that are not handed out."""
        return len(self._image_ids) - self._next + sum(map(len, self._returned))

    def pop(self, size: int) -> Chunk | None:
        """Return a chunk of up to `size` images; None when no images remain.

        A chunk that was given back is returned whole, if it is not larger than that.
        """
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
        """Put back images that a worker did not begin, or that are to be handed out again with their files."""
        if len(chunk):
            self._returned.appendleft(chunk)

    def requeue_lost(self, chunk: Chunk) -> list[int]:
        """Put back a chunk that was lost with its worker; return the ids of images that are given up."""
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
    """Return a part of a chunk; the losses of an image that is alone now begin at 0.

    The image beside it may have been the one that ends workers.
    """
    return Chunk(image_ids, chunk.losses if len(image_ids) > 1 else 0, chunk.with_files)
