"""The region codes of all embedded images, kept in the worker's memory from one training to the next.

Regions lie on the disk, 23 KB an image. Trainings read their codes (models/ensemble/regions.py), 5 KB an image: made
when the first training asks for them, and then only for the images that have come since.
"""

from collections.abc import Callable

from annotator.store.arrays import FeatureCache
from models.ensemble.basis import GrowingCodes
from models.ensemble.regions import SAMPLE, RegionCodes, encode, learn_basis
from models.ensemble.stacking import WarmStart


class RegionCache:
    """Empty at first; one for a worker. warm_start: the weights from which the next training goes on."""

    def __init__(self):
        self._codes = GrowingCodes[RegionCodes](SAMPLE, RegionCodes.joined)
        self.warm_start = WarmStart()

    def of(self, cache: FeatureCache, tell: Callable[[], None] = lambda: None) -> RegionCodes:
        """The region codes of the cache's images, in the order of its rows; tell is called every few dozen images."""
        return self._codes.of(
            cache,
            len(cache.image_ids),
            lambda: learn_basis(cache.features, cache.regions),
            lambda basis, first: encode(basis, cache.regions, tell, first),
        )
