"""Compression of image features to codes: int8 coordinates along the principal axes of a sample."""

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
    """The axes of int8 codes: origin (D,), K orthonormal axes (D, K), and the lengths of a step along each (K,)."""

    centre: Tensor
    axes: Tensor
    scales: Tensor

    @classmethod
    def build(cls, centre: Tensor, blocks: Iterable[Tensor]) -> "Basis":
        """Build a basis of the MAX_AXES principal axes of rows around `centre`, the largest variance last.

        Args:
            centre: (D,).
            blocks: Centered rows, (n, D) each.

        Raises:
            ValueError: Some rows are not finite.
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
        """Return the basis with its axes reversed, the largest variance first."""
        return Basis(self.centre, self.axes.flip(1).contiguous(), self.scales.flip(0).contiguous())

    def quantize(self, centred: Tensor) -> Tensor:
        """Return int8 coordinates (..., K) of centered rows (..., D)."""
        return (centred @ (self.axes / self.scales)).round_().clamp_(-MAX_STEP, MAX_STEP).to(torch.int8)

    def project_weights(self, weight: Tensor) -> Tensor:
        """Return the factor (K, C) that maps int8 coordinates to products with weight (D, C)."""
        return self.scales[:, None] * (self.axes.T @ weight)


Codes = TypeVar("Codes", bound=Sized)


class GrowingCodes(Generic[Codes]):
    """A cache of codes in memory for a growing list of images.

    Below `sample` images, the basis is relearned whenever their number doubles.
    """

    def __init__(self, sample: int, join: Callable[[Codes, Codes], Codes]):
        """Start without codes. `join` concatenates two sets of codes on the same basis."""
        self._sample, self._join = sample, join
        self._source: object = None
        self._basis: Basis | None = None
        self._codes: Codes | None = None
        self._learned_from = 0

    def get_codes(
        self, source: object, images: int, learn: Callable[[], Basis], encode: Callable[[Basis, int], Codes]
    ) -> Codes:
        """Return the codes of all images, computing only missing ones.

        Args:
            source: Collection that is coded. Another object discards all codes.
            learn: Returns a basis.
            encode: From a basis and a first row to the codes of the images from that row on.
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
    """Return sign(x) * sqrt(|x|) of features, which keeps single channels from dominating."""
    return features.abs().sqrt_().copysign_(features)


def center_and_normalize(roots: Tensor, centre: Tensor) -> Tensor:
    """Subtract the mean `centre` (D,) from square-root features (n, D) and scale each row to length 1."""
    centred = roots - centre
    return centred.div_(centred.norm(dim=1, keepdim=True).clamp(min=1e-6))


def to_float_tensor(array: Array) -> Tensor:
    """Return a float32 tensor, a copy unless it already is one."""
    return (array if isinstance(array, Tensor) else torch.from_numpy(np.array(array))).float()
