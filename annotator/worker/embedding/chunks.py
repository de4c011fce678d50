"""The images that remain to be embedded, handed out in chunks; whatever is handed out comes back, or is handed in.

A chunk whose worker is lost returns to the front. Lost twice it is cut in two, because one of its images may be what
ends the workers: that image is alone in the end, and named after LOSSES workers instead of ending all others.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

LOSSES = 3  # workers that an image may take with it when it is alone


@dataclass(frozen=True, eq=False)
class Chunk:
    """Images that one worker embeds in one go.

    Attributes:
        image_ids: (n,) int64.
        losses: Workers that were lost with it.
        with_files: The content of the files travels with it, because a machine of the cluster could not read them.
    """

    image_ids: np.ndarray
    losses: int = 0
    with_files: bool = False

    def __len__(self) -> int:
        return len(self.image_ids)


class Chunks:
    """The queue. image_ids: (n,) int64, in the order in which they are wanted."""

    def __init__(self, image_ids: np.ndarray):
        self._image_ids, self._next = image_ids, 0
        self._returned: deque[Chunk] = deque()

    def __len__(self) -> int:
        """Images that are in nobody's hands."""
        return len(self._image_ids) - self._next + sum(map(len, self._returned))

    def take(self, size: int) -> Chunk | None:
        """Up to `size` images; a chunk that was lost comes as it is, if it is not larger. None: nothing remains."""
        if self._returned:
            chunk = self._returned.popleft()
            if len(chunk) <= size:
                return chunk
            first, rest = _cut(chunk, size)
            self._returned.appendleft(rest)
            return first
        image_ids = self._image_ids[self._next : self._next + size]
        self._next += len(image_ids)
        return Chunk(image_ids) if len(image_ids) else None

    def give_back(self, chunk: Chunk) -> None:
        """Put back what a worker did not begin, or what was handed out with another condition."""
        if len(chunk):
            self._returned.appendleft(chunk)

    def lose(self, chunk: Chunk) -> list[int]:
        """Put back what was lost with its worker; returns the images that are given up."""
        lost = Chunk(chunk.image_ids, chunk.losses + 1, chunk.with_files)
        if lost.losses < 2:
            self.give_back(lost)
        elif len(lost) > 1:
            for half in reversed(_cut(Chunk(lost.image_ids, 1, lost.with_files), -(-len(lost) // 2))):
                self.give_back(half)
        elif lost.losses < LOSSES:
            self.give_back(lost)
        else:
            return lost.image_ids.tolist()
        return []


def _cut(chunk: Chunk, size: int) -> tuple[Chunk, Chunk]:
    return _part(chunk, chunk.image_ids[:size]), _part(chunk, chunk.image_ids[size:])


def _part(chunk: Chunk, image_ids: np.ndarray) -> Chunk:
    """An image that is alone now may have been beside the one that ends workers: it begins anew."""
    return Chunk(image_ids, chunk.losses if len(image_ids) > 1 else 0, chunk.with_files)
