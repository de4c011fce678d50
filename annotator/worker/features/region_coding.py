"""From the regions of images to their codes: settling the axes, and writing shards.

The first images of a project keep their regions. Once there are enough to learn axes from, the axes are settled for
good, every further shard is written with codes, and the regions of those before are replaced by codes
(`replace_regions_by_codes`),
a tenth of their size.
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
    """Return the basis of the cache's folder, learned now where there is none yet.

    None while there are fewer than SAMPLE images to learn from. Raises DiskFull, ValueError for regions that are not
    finite.
    """
    if cache.basis is None and len(cache) >= BASIS_SAMPLE_IMAGES:
        publish_basis(cache.folder, to_stored_basis(learn_region_basis(cache.features, cache.regions)))
        cache.refresh()
    elif cache.basis is not None and read_basis_name(cache.folder) is None:
        publish_basis(cache.folder, cache.basis)  # its file is gone or damaged: no code could be read without it
    return cache.basis


def write_features(cache: FeatureCache, image_ids: np.ndarray, features: np.ndarray, regions: np.ndarray) -> None:
    """Add a shard of images to the cache's folder, with codes as soon as there is a basis, and read it.

    Args:
        cache: The features of the project's images.
        image_ids: (n,), of images of the project.
        features: (n, D).
        regions: (n, R, D) as the network gave them.

    Raises DiskFull.
    """
    basis = ensure_basis(cache)
    if basis is not None and len(basis.centre) != features.shape[1]:
        basis = None  # basis and earlier features are of an older network: the cache drops both
    contents = cache.contents.load_hashes(image_ids)
    kept = regions if basis is None else compute_region_codes(basis, regions)
    cache.refresh(write_shard(cache.folder, image_ids, contents, features, kept))


def compute_region_codes(basis: StoredBasis, regions: Rows, tell: Callable[[], None] = lambda: None) -> CodedRegions:
    """Return the codes of regions (n, R, D); tell is called every few dozen images. Needs nothing of the project."""
    codes = encode_regions(to_basis(basis), regions, tell)
    return CodedRegions(codes.codes.numpy(), codes.lengths[..., 0].half().numpy(), basis.name)


def replace_regions_by_codes(cache: FeatureCache, tell: Callable[[], None] = lambda: None) -> None:
    """Replace the regions of the cache's images by codes, shard by shard; do nothing where that is done.

    A shard with codes is written before the one with regions is deleted, so a kill loses nothing. Raises DiskFull.
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
    """The region codes of a cache's images, read by rows from the disk (spmll.ensemble.regions.Regions).

    Attributes:
        codes, lengths: Rows (N, R, K) int8 and (N, R) float16.
    """

    def __init__(self, cache: FeatureCache, basis: StoredBasis):
        self.basis = to_basis(basis)
        self.codes, self.lengths = cache.codes, cache.lengths

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice | np.ndarray) -> RegionCodes:
        return to_region_codes(self.basis, self.codes[rows], self.lengths[rows])


def to_region_codes(basis: Basis, codes: np.ndarray, lengths: np.ndarray) -> RegionCodes:
    """Return codes (n, R, K) and lengths (n, R) in the form that a model takes."""
    return RegionCodes(basis, torch.from_numpy(codes), torch.from_numpy(lengths).float()[..., None])


def to_stored_basis(basis: Basis) -> StoredBasis:
    """Return a basis as arrays."""
    return StoredBasis(basis.centre.numpy(), basis.axes.numpy(), basis.scales.numpy())


def to_basis(basis: StoredBasis) -> Basis:
    """Return a basis as tensors."""
    return Basis(*(torch.from_numpy(np.array(array)) for array in (basis.centre, basis.axes, basis.scales)))
