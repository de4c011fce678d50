"""Codes of images: coordinates of their features along the principal axes of a sample, extended for new images.

Regions (regions.py) and whole images (incremental_update.py) are both coded in this way; these modules define the
sample and the contents of a code.
"""

from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from spmll.linear.training import Array

MAX_AXES = 256
MAX_STEP = 127  # of an int8 coordinate in either direction
CLIP_DEVIATIONS = 8.0  # standard deviations of the sample that they reach; what lies beyond is clipped


@dataclass(frozen=True)
class Basis:
    """An origin and K axes for int8 coordinates.

    Attributes:
        centre: (D,), the origin.
        axes: (D, K), orthonormal.
        scales: (K,), the length of one int8 step along each axis.
    """

    centre: Tensor
    axes: Tensor
    scales: Tensor

    @classmethod
    def build(cls, centre: Tensor, blocks: Iterable[Tensor]) -> "Basis":
        """Return the basis of the MAX_AXES directions in which rows differ most from the centre (D,).

        Args:
            centre: (D,) the origin of the basis.
            blocks: The rows, less the centre: (n, D) each.

        Returns:
            All D axes where D is smaller than MAX_AXES; the axis with the largest differences last.

        Raises:
            ValueError: Some of the rows are not finite.

        Source: principal components (Pearson, 1901).
        """
        products, count = torch.zeros(len(centre), len(centre)), 0
        for block in blocks:
            products += block.T @ block
            count += len(block)
        if not torch.isfinite(products).all():
            raise ValueError("Some of the rows are not finite.")
        # In single precision it fails to converge where rows are few and most products are zero but for rounding.
        values, vectors = torch.linalg.eigh(products.double())
        # Along an axis in which a small sample does not differ, other images do.
        values = (values / max(count, 1)).clamp(min=max(float(values.mean()) / max(count, 1), 1e-12))
        scales = CLIP_DEVIATIONS / MAX_STEP * values[-MAX_AXES:].sqrt()
        return cls(centre, vectors[:, -MAX_AXES:].float().contiguous(), scales.float())

    def reverse_axes(self) -> "Basis":
        """Return the basis with reversed axes: the axis with the largest differences first."""
        return Basis(self.centre, self.axes.flip(1).contiguous(), self.scales.flip(0).contiguous())

    def quantize(self, centred: Tensor) -> Tensor:
        """Return the int8 coordinates (..., K) of rows (..., D) from which the centre has been subtracted."""
        return (centred @ (self.axes / self.scales)).round_().clamp_(-MAX_STEP, MAX_STEP).to(torch.int8)

    def project_weights(self, weight: Tensor) -> Tensor:
        """Return the factor (K, C) that turns int8 coordinates of centred rows into their products with weight (D, C).

        The products are exact but for the rounding of the coordinates and the directions outside of the axes.
        """
        return self.scales[:, None] * (self.axes.T @ weight)


Codes = TypeVar("Codes", bound=Sized)


class GrowingCodes(Generic[Codes]):
    """The codes of a growing list of images, kept in memory and extended.

    The first `sample` images determine the basis. While there are fewer, the basis is learned again, and all images are
    coded again, whenever their number has doubled.
    """

    def __init__(self, sample: int, join: Callable[[Codes, Codes], Codes]):
        """Start without codes; join(first, second) concatenates the codes of two lists of images on the same basis."""
        self._sample, self._join = sample, join
        self._source: object = None
        self._basis: Basis | None = None
        self._codes: Codes | None = None
        self._learned_from = 0

    def get_codes(
        self, source: object, images: int, learn: Callable[[], Basis], encode: Callable[[Basis, int], Codes]
    ) -> Codes:
        """Return the codes of all images, computing only those that are missing.

        Args:
            source: Identity of the collection; with another object all codes are made anew.
            images: Current number of images.
            learn: Learns a basis from the images.
            encode: Codes the images from a row on.
        """
        doubled = self._learned_from < self._sample and images >= 2 * self._learned_from
        if self._basis is None or self._codes is None or self._source is not source or doubled:
            self._basis = learn()
            self._codes = encode(self._basis, 0)
            self._source, self._learned_from = source, images
        elif len(self._codes) < images:
            self._codes = self._join(self._codes, encode(self._basis, len(self._codes)))
        return self._codes


def signed_sqrt(features: Tensor) -> Tensor:
    """Return signed square roots, of any shape. Features are long-tailed; roots keep single channels from dominating.

    The tensor is not changed.
    """
    return features.abs().sqrt_().copysign_(features)


def center_and_normalize(roots: Tensor, centre: Tensor) -> Tensor:
    """Return roots (n, D) centred and scaled to length 1."""
    centred = roots - centre
    return centred.div_(centred.norm(dim=1, keepdim=True).clamp(min=1e-6))


def to_float_tensor(array: Array) -> Tensor:
    """Return a copy of an array as a float32 tensor; a float32 tensor is returned as it is."""
    return (array if isinstance(array, Tensor) else torch.from_numpy(np.array(array))).float()
