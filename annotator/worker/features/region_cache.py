"""The region codes of all embedded images, as trainings read them (models/ensemble/regions.py).

Once the axes are settled, codes lie on the disk (coding.py), also those of images that an older version has embedded.
Before, with few images, they are made in memory, anew whenever the number of images has doubled.
"""

from collections.abc import Callable
from typing import Any

from annotator.store.features.cache import FeatureCache
from annotator.worker.features.coding import StoredRegions, code_regions, settle_basis
from models.ensemble.basis import GrowingCodes
from models.ensemble.regions import SAMPLE, RegionCodes, Regions, encode, learn_basis


class RegionCache:
    """The source of region codes for trainings; each worker has one instance, empty at first.

    Attributes:
        memory: Values that trainers keep from one training to the next.
    """

    def __init__(self):
        self._codes = GrowingCodes[RegionCodes](SAMPLE, RegionCodes.joined)
        self.memory: dict[str, Any] = {}

    def codes_for(self, cache: FeatureCache, tell: Callable[[], None] = lambda: None) -> Regions:
        """Return the region codes of the cache's images, in the order of its rows.

        Args:
            cache: The features of the project's images.
            tell: Called every few dozen images.
        """
        basis = settle_basis(cache)
        if basis is not None:
            code_regions(cache, tell)
            return StoredRegions(cache, basis)
        return self._codes.codes_for(
            cache,
            len(cache),
            lambda: learn_basis(cache.features, cache.regions),
            lambda basis, first: encode(basis, cache.regions, tell, first),
        )
