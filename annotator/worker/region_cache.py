"""The region codes of all embedded images, kept in the worker's memory from one training to the next.

Regions lie on the disk, 23 KB an image. Trainings read their codes (models/ensemble/regions.py), 5 KB an image: made
when the first training asks for them, and then only for the images that have come since.
"""

from collections.abc import Callable
from typing import Any

from annotator.store.arrays import FeatureCache
from models.ensemble.basis import GrowingCodes
from models.ensemble.regions import SAMPLE, RegionCodes, encode, learn_basis


class RegionCache:
    """Each worker has one instance, empty at first. memory: what trainers keep from one training to the next."""

    def __init__(self):
        self._codes = GrowingCodes[RegionCodes](SAMPLE, RegionCodes.joined)
        self.memory: dict[str, Any] = {}

    def of(self, cache: FeatureCache, tell: Callable[[], None] = lambda: None) -> RegionCodes:
        """The region codes of the cache's images, in the order of its rows; tell is called every few dozen images."""
        return self._codes.of(
            cache,
            len(cache.image_ids),
            lambda: learn_basis(cache.features, cache.regions),
            lambda basis, first: encode(basis, cache.regions, tell, first),
        )
