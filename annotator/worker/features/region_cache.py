"""The region codes of all embedded images, as trainings read them (spmll/ensemble/regions.py).

Once the axes are settled, codes lie on the disk (region_coding.py), also those of images that an older version has
embedded. Before, with few images, they are made in memory, anew whenever the number of images has doubled.
"""

from collections.abc import Callable
from typing import Any

from annotator.store.features.feature_cache import FeatureCache
from annotator.worker.features.region_coding import StoredRegions, ensure_basis, replace_regions_by_codes
from spmll.ensemble.basis import GrowingCodes
from spmll.ensemble.regions import BASIS_SAMPLE_IMAGES, RegionCodes, Regions, encode_regions, learn_region_basis


class RegionCache:
    """The source of region codes for trainings; each worker has one instance, empty at first.

    Attributes:
        memory: Values that trainers keep from one training to the next.
    """

    def __init__(self):
        self._codes = GrowingCodes[RegionCodes](BASIS_SAMPLE_IMAGES, RegionCodes.join)
        self.memory: dict[str, Any] = {}

    def get_codes(self, cache: FeatureCache, tell: Callable[[], None] = lambda: None) -> Regions:
        """Return the region codes of the cache's images, in the order of its rows.

        Args:
            cache: The features of the project's images.
            tell: Called every few dozen images.
        """
        basis = ensure_basis(cache)
        if basis is not None:
            replace_regions_by_codes(cache, tell)
            return StoredRegions(cache, basis)
        return self._codes.get_codes(
            cache,
            len(cache),
            lambda: learn_region_basis(cache.features, cache.regions),
            lambda basis, first: encode_regions(basis, cache.regions, tell, first),
        )
