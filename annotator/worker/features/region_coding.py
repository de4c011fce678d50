"""From region embeddings to codes: learning the basis and writing shards.

Once learned, the basis is final, and codes a tenth the size replace regions.
"""

from collections.abc import Callable

import numpy as np
import torch

from annotator.store.features.feature_cache import FeatureCache
from annotator.store.features.shards import CodedRegions, write_shard
from annotator.store.features.stored_basis import StoredBasis, publish_basis, read_basis_name
from spmll.ensemble.basis import Basis
from spmll.ensemble.regions import BASIS_SAMPLE_IMAGES, RegionCodes, encode_regions, learn_region_basis
from spmll.rows import Rows


def ensure_basis(cache: FeatureCache) -> StoredBasis | None:
    """Return the region basis, learned if missing, or None with fewer than BASIS_SAMPLE_IMAGES.

    Raises DiskFull, or ValueError for regions that are not finite.
    """
    if cache.basis is None and len(cache) >= BASIS_SAMPLE_IMAGES:
        publish_basis(cache.folder, to_stored_basis(learn_region_basis(cache.features, cache.regions)))
        cache.refresh()
    elif cache.basis is not None and read_basis_name(cache.folder) is None:
        publish_basis(cache.folder, cache.basis)  # its file is gone or damaged: no code could be read without it
    return cache.basis


def write_features(cache: FeatureCache, image_ids: np.ndarray, features: np.ndarray, regions: np.ndarray) -> None:
    """Add a shard to the cache, coded if a basis exists. Raises DiskFull.

    Args:
        image_ids: (n,).
        features: (n, D).
        regions: (n, R, D).
    """
    basis = ensure_basis(cache)
    if basis is not None and len(basis.centre) != features.shape[1]:
        basis = None  # basis and earlier features are of an older network: the cache drops both
    contents = cache.contents.load_hashes(image_ids)
    kept = regions if basis is None else compute_region_codes(basis, regions)
    cache.refresh(write_shard(cache.folder, image_ids, contents, features, kept))


def compute_region_codes(basis: StoredBasis, regions: Rows, tell: Callable[[], None] = lambda: None) -> CodedRegions:
    """Return the codes of the regions (n, R, D) of n images (`tell` is called regularly)."""
    codes = encode_regions(to_basis(basis), regions, tell)
    return CodedRegions(codes.codes.numpy(), codes.lengths[..., 0].half().numpy(), basis.name)


def replace_regions_by_codes(cache: FeatureCache, tell: Callable[[], None] = lambda: None) -> None:
    """Replace cached regions by codes, shard by shard (`tell` is called regularly). Raises DiskFull.

    The coded shard is written before the old one is deleted, so a kill loses nothing.
    """
    basis = ensure_basis(cache)
    if basis is None:
        return
    for part in cache.list_uncoded_parts():
        image_ids, contents, features, regions = cache.get_part_arrays(part)
        cache.replace(
            part,
            write_shard(cache.folder, image_ids, contents, features[:], compute_region_codes(basis, regions, tell)),
        )
    cache.delete_unused_regions()


class StoredRegions:
    """The codes (N, R, K) int8 and lengths (N, R) float16 of R regions per image in a cache, read by rows from disk."""

    def __init__(self, cache: FeatureCache, basis: StoredBasis):
        self.basis = to_basis(basis)
        self.codes, self.lengths = cache.codes, cache.lengths

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice | np.ndarray) -> RegionCodes:
        return to_region_codes(self.basis, self.codes[rows], self.lengths[rows])


def to_region_codes(basis: Basis, codes: np.ndarray, lengths: np.ndarray) -> RegionCodes:
    """Return codes (n, R, K) and lengths (n, R) as model input."""
    return RegionCodes(basis, torch.from_numpy(codes), torch.from_numpy(lengths).float()[..., None])


def to_stored_basis(basis: Basis) -> StoredBasis:
    """Convert a basis of tensors to one of arrays, as it is stored."""
    return StoredBasis(basis.centre.numpy(), basis.axes.numpy(), basis.scales.numpy())


def to_basis(basis: StoredBasis) -> Basis:
    """Convert a stored basis of arrays to one of tensors."""
    return Basis(*(torch.from_numpy(np.array(array)) for array in (basis.centre, basis.axes, basis.scales)))
