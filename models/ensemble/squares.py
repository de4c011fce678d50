"""Sums over images that no label changes: kept from one training to the next, so that only new images are added.

The ridge model needs, of the images that it learns from, the sum of their units (D,) and the products of the units with
each other (D, D). Both add up: those of all images are those of two halves together, and those of a training are those
of the training before, plus the images that have come, less the images that have gone. What is kept is in double
precision, so that adding and taking off leaves no more than the rounding of one sum.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.ensemble.basis import as_tensor, root, unit
from models.linear.training import Features

ROWS = 2048  # images whose products are made at once
AFRESH = 0.5  # share of the images by which they may have changed before the sums are made again


@dataclass(frozen=True, eq=False)
class Squares:
    """Of n units: their sum (D,) and the products (D, D) of the units with each other."""

    sum: Tensor
    products: Tensor

    @classmethod
    def of(cls, units: Tensor) -> "Squares":
        """Of units (n, D)."""
        return cls(units.sum(0), units.T @ units)

    def __add__(self, other: "Squares") -> "Squares":
        return Squares(self.sum + other.sum, self.products + other.products)


class KeptSquares:
    """The squares of a changing list of images; empty at first.

    An image is known by its row and a checksum of its roots: where a row holds other features than before, all sums are
    made again.
    """

    def __init__(self) -> None:
        self._centre: Tensor | None = None
        self._rows, self._checksums = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        self._sum, self._products = torch.zeros(0), torch.zeros(0)

    def of(
        self,
        features: Features,
        centre: Tensor,
        rows: np.ndarray,
        roots: Tensor,
        tell: Callable[[], None] = lambda: None,
    ) -> Squares:
        """The squares of some images.

        features    (N, D) of all images; read where images have gone since the last call
        centre      (D,) of the units
        rows        (n,) int64, ascending: images
        roots       (n, D) of these images
        """
        checksums = _checksums(roots)
        gone = self._changes(features, centre, rows, checksums)
        if gone is None:
            self._sum = torch.zeros(len(centre), dtype=torch.float64)
            self._products = torch.zeros(len(centre), len(centre), dtype=torch.float64)
            new = slice(None)
        else:
            new = torch.from_numpy(~np.isin(rows, self._rows))
        self._centre = None  # a training that is ended here leaves sums of nothing
        for roots_of_some, sign in ((roots[new], 1), *(() if gone is None else ((gone, -1),))):
            self._add(roots_of_some, centre, sign, tell)
        self._centre, self._rows, self._checksums = centre, rows, checksums
        return Squares(self._sum.float(), self._products.float())

    def _changes(self, features: Features, centre: Tensor, rows: np.ndarray, checksums: np.ndarray) -> Tensor | None:
        """The roots of the images that have gone; None where all sums have to be made again."""
        if self._centre is None or not torch.equal(self._centre, centre):
            return None
        stayed, gone = np.isin(rows, self._rows), ~np.isin(self._rows, rows)
        if int((~stayed).sum() + gone.sum()) > AFRESH * len(rows):
            return None
        left = self._rows[gone]
        if len(left) and int(left[-1]) >= len(features):
            return None
        of_gone = root(as_tensor(features[left]))
        before = np.array_equal(checksums[stayed], self._checksums[~gone])
        return of_gone if before and np.array_equal(_checksums(of_gone), self._checksums[gone]) else None

    def _add(self, roots: Tensor, centre: Tensor, sign: int, tell: Callable[[], None]) -> None:
        for start in range(0, len(roots), ROWS):
            tell()
            squares = Squares.of(unit(roots[start : start + ROWS], centre))
            self._sum += sign * squares.sum
            self._products += sign * squares.products


def _checksums(roots: Tensor) -> np.ndarray:
    """(n,) uint64: sums of the bits of each row, each word with a factor of its own."""
    bits = roots.numpy().view(np.uint32)
    factors = np.random.default_rng(5).integers(1, 2**63, bits.shape[1], np.uint64) | np.uint64(1)
    sums = np.zeros(len(bits), np.uint64)
    for start in range(0, len(bits), ROWS):
        sums[start : start + ROWS] = bits[start : start + ROWS].astype(np.uint64) @ factors
    return sums
