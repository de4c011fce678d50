"""The parts of all embedded images, kept in the worker's memory from one training to the next.

Regions lie on the disk, 23 KB an image; their codes (models/ensemble/regions.py) are 5 KB an image and are what
trainings read.
They are made once, when the first training asks for them, and then only for the images that have come since.
"""

from collections.abc import Callable

from annotator.store.arrays import FeatureCache
from models.ensemble.regions import SAMPLE, Parts, encode, learn_basis
from models.ensemble.stacking import Memory


class PartsInMemory:
    """Empty at first; one for a worker. stacking: the weights from which the next training goes on."""

    def __init__(self):
        self._of: FeatureCache | None = None
        self._parts: Parts | None = None
        self._learned_from = 0
        self.stacking = Memory()

    def of(self, cache: FeatureCache, tell: Callable[[], None] = lambda: None) -> Parts:
        """The parts of the cache's images, in the order of its rows; tell is called every few dozen images.

        What the codes mean is settled by the first 1,000 images. While there are fewer, it is settled again whenever
        their number has doubled.
        """
        count = len(cache.image_ids)
        grown = self._learned_from < SAMPLE and count >= 2 * self._learned_from
        if self._parts is None or self._of is not cache or grown:
            basis = learn_basis(cache.features, cache.regions)
            self._of, self._learned_from = cache, min(count, SAMPLE)
            self._parts = encode(basis, cache.regions, tell)
        elif len(self._parts) < count:
            self._parts = self._parts.joined(encode(self._parts.basis, cache.regions, tell, first=len(self._parts)))
        return self._parts
