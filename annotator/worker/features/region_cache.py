"""The region codes of all embedded images, for training."""

from collections.abc import Callable
from typing import Any

from annotator.store.features.feature_cache import FeatureCache
from annotator.worker.features.region_coding import StoredRegions, ensure_basis, replace_regions_by_codes
from spmll.ensemble.basis import GrowingCodes
from spmll.ensemble.regions import BASIS_SAMPLE_IMAGES, RegionCodes, Regions, encode_regions, learn_region_basis


class RegionCache:
    """A cache that gives trainings the region codes of all images (`memory`: values kept between trainings)."""

    def __init__(self):
        self._codes = GrowingCodes[RegionCodes](BASIS_SAMPLE_IMAGES, RegionCodes.join)
        self.memory: dict[str, Any] = {}

    def get_codes(self, cache: FeatureCache, tell: Callable[[], None] = lambda: None) -> Regions:
        """Return the region codes of cached images in row order (`tell` is called regularly)."""
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
