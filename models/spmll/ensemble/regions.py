"""Region codes: each of nine regions per image compressed from 1280 features to 256 bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from spmll.ensemble.basis import Basis, signed_sqrt, to_float_tensor
from spmll.linear.training import Features, one_thread

BASIS_SAMPLE_IMAGES = 1000  # images from whose regions the axes are learned
IMAGES_PER_CHUNK = 64  # images whose regions are in memory at once: 3 MB of 9 x 1280 float32, which a cache can hold


class Regions(Protocol):
    """Interface to the region codes of N images, in memory or on disk."""

    @property
    def basis(self) -> Basis:
        """Return the axes that the codes refer to."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice | np.ndarray) -> "RegionCodes": ...


@dataclass(frozen=True)
class RegionCodes:
    """Compressed square-root features of R regions in each of N images.

    They are approximately basis.centre + (codes * basis.scales) @ basis.axes.T.

    Attributes:
        codes: (N, R, K) int8, coordinates along K axes.
        lengths: (N, R, 1), distances of the regions from basis.centre.
    """

    basis: Basis
    codes: Tensor
    lengths: Tensor

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice | np.ndarray) -> "RegionCodes":
        chosen = torch.from_numpy(rows) if isinstance(rows, np.ndarray) else rows
        return RegionCodes(self.basis, self.codes[chosen], self.lengths[chosen])

    def join(self, others: "RegionCodes") -> "RegionCodes":
        return RegionCodes(self.basis, torch.cat([self.codes, others.codes]), torch.cat([self.lengths, others.lengths]))

    def products(self, weight: Tensor) -> Tensor:
        """Return approximate (region - centre) @ weight, (N, R, C)."""
        return self.multiply_on_axes(self.basis.project_weights(weight))

    def multiply_on_axes(self, weight: Tensor) -> Tensor:
        """Return `products` (N, R, C), given a weight converted by `Basis.project_weights`."""
        return self.codes.float() @ weight


@one_thread()
def learn_region_basis(features: Features, regions, seed: int = 0) -> Basis:
    """Return the principal axes of square-root region features, centered at the mean image.

    Args:
        features: (N, D), of whole images.
        regions: (N, R, D), indexed by rows.
    """
    rows = np.sort(np.random.default_rng(seed).permutation(len(features))[:BASIS_SAMPLE_IMAGES])
    centre = signed_sqrt(to_float_tensor(features[rows])).mean(0)
    blocks = (
        (signed_sqrt(to_float_tensor(regions[rows[start : start + IMAGES_PER_CHUNK]])) - centre).flatten(0, 1)
        for start in range(0, len(rows), IMAGES_PER_CHUNK)
    )
    try:
        basis = Basis.build(centre, blocks)
    except ValueError as error:
        raise ValueError(
            f"The features or regions of some of {len(features)} images are not finite. Is the feature file damaged? "
            "Embed them again."
        ) from error
    return basis.reverse_axes()


@one_thread()
def encode_regions(basis: Basis, regions, tell: Callable[[], None] = lambda: None, first: int = 0) -> RegionCodes:
    """Compress the regions (N, R, D) of images to codes, from row `first` on (`tell` is called regularly)."""
    codes, lengths = [], []
    for start in range(first, len(regions), IMAGES_PER_CHUNK):
        tell()
        centred = signed_sqrt(to_float_tensor(regions[start : start + IMAGES_PER_CHUNK])) - basis.centre
        codes.append(basis.quantize(centred))
        lengths.append(centred.norm(dim=-1, keepdim=True).clamp(min=1e-6))
    if not codes:
        none = torch.zeros(0, regions.shape[1], 1)
        return RegionCodes(basis, none.to(torch.int8).expand(-1, -1, basis.axes.shape[1]), none)
    return RegionCodes(basis, torch.cat(codes), torch.cat(lengths))
