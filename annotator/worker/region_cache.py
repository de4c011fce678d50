"""The region codes of all embedded images, kept in the worker's memory from one training to the next.

Regions lie on the disk, 23 KB an image; their codes (models/ensemble/regions.py) are 5 KB an image and are what
trainings read.
They are made once, when the first training asks for them, and then only for the images that have come since.
"""

from collections.abc import Callable

from annotator.store.arrays import FeatureCache
from models.ensemble.regions import SAMPLE, RegionCodes, encode, learn_basis
from models.ensemble.stacking import WarmStart


class RegionCache:
    """Empty at first; one for a worker. warm_start: the weights from which the next training goes on."""

    def __init__(self):
        self._of: FeatureCache | None = None
        self._region_codes: RegionCodes | None = None
        self._learned_from = 0
        self.warm_start = WarmStart()

    def of(self, cache: FeatureCache, tell: Callable[[], None] = lambda: None) -> RegionCodes:
        """The region codes of the cache's images, in the order of its rows; tell is called every few dozen images.

        What the codes mean is settled by the first 1,000 images. While there are fewer, it is settled again whenever
        their number has doubled.
        """
        count = len(cache.image_ids)
        grown = self._learned_from < SAMPLE and count >= 2 * self._learned_from
        if self._region_codes is None or self._of is not cache or grown:
            basis = learn_basis(cache.features, cache.regions)
            self._of, self._learned_from = cache, min(count, SAMPLE)
            self._region_codes = encode(basis, cache.regions, tell)
        elif len(self._region_codes) < count:
            self._region_codes = self._region_codes.joined(
                encode(self._region_codes.basis, cache.regions, tell, first=len(self._region_codes))
            )
        return self._region_codes
