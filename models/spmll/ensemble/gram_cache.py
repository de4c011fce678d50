"""Sums over images for ridge regression, updated between trainings.

Ridge needs sums of units (rows of `center_and_normalize`), of unit products (D, D) and of units times answers (D, C).
The first two are updated in double precision, so errors stay small. The third is recomputed.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from spmll.ensemble.basis import center_and_normalize, signed_sqrt, to_float_tensor
from spmll.ensemble.moments import BlankSums, Moments
from spmll.linear.training import Features

IMAGES_PER_BLOCK = 2048  # images that are read at once
REBUILD_SHARE = 0.5  # share of the images by which they may have changed before the sums are made again

AnswerReader = Callable[[slice], tuple[Tensor, Tensor | None]]


class GramCache:
    """A cache of sums of feature rows and their products, over a changing list of images.

    Row and checksum of the features identify an image. A mismatch recomputes all sums.
    """

    def __init__(self) -> None:
        self._center: Tensor | None = None
        self._rows, self._checksums = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        self._sum, self._products = torch.zeros(0), torch.zeros(0)

    def compute_moments(
        self,
        features: Features,
        centre: Tensor,
        rows: np.ndarray,
        classes: int,
        answers: AnswerReader,
        tell: Callable[[], None] = lambda: None,
    ) -> Moments:
        """Return the `Moments` (sums for ridge regression) of some images.

        Args:
            features: (N, D).
            centre: (D,).
            rows: (n,) int64, ascending.
            answers: From a slice of rows to answers (m, C) float32 and unusable cells (m, C) bool or None.
        """
        gone = self._load_removed_roots(features, centre, rows)
        if gone is None:
            self._rows, self._checksums = np.zeros(0, np.int64), np.zeros(0, np.uint64)
            self._sum = torch.zeros(len(centre), dtype=torch.float64)
            self._products = torch.zeros(len(centre), len(centre), dtype=torch.float64)
        self._center = None  # a training that is ended here leaves sums of nothing
        stayed, checksums = np.isin(rows, self._rows), np.zeros(len(rows), np.uint64)
        before = checksums.copy()
        before[stayed] = self._checksums[np.isin(self._rows, rows)]
        right, total = torch.zeros(len(centre), classes), torch.zeros(classes)
        blanks: BlankSums | None = None
        for start in range(0, len(rows), IMAGES_PER_BLOCK):
            tell()
            block = slice(start, min(start + IMAGES_PER_BLOCK, len(rows)))
            roots = signed_sqrt(to_float_tensor(features[rows[block]]))
            checksums[block] = _compute_checksums(roots)
            if (checksums[block] != before[block])[stayed[block]].any():
                return self.compute_moments(features, centre, rows, classes, answers, tell)  # afresh
            units = center_and_normalize(roots, centre)
            self._add_units(units[torch.from_numpy(~stayed[block])], 1)
            wanted, is_blank = answers(block)
            right += units.T @ wanted
            total += wanted.sum(0)
            if is_blank is not None:
                of_block = BlankSums(is_blank.sum(0).float(), units.T @ is_blank.float())
                blanks = of_block if blanks is None else blanks + of_block
        for roots in () if gone is None else gone.split(IMAGES_PER_BLOCK):
            self._add_units(center_and_normalize(roots, centre), -1)
        self._center, self._rows, self._checksums = centre, rows, checksums
        return Moments(len(rows), self._sum.float(), self._products.float(), total, right, blanks)

    def _load_removed_roots(self, features: Features, centre: Tensor, rows: np.ndarray) -> Tensor | None:
        """Return square-root features of images removed since the last call, or None to recompute all sums."""
        if self._center is None or not torch.equal(self._center, centre):
            return None
        new, gone = ~np.isin(rows, self._rows), ~np.isin(self._rows, rows)
        if int(new.sum() + gone.sum()) > REBUILD_SHARE * len(rows):
            return None
        left = self._rows[gone]
        if len(left) and int(left[-1]) >= len(features):
            return None
        roots = signed_sqrt(to_float_tensor(features[left]))
        return roots if np.array_equal(_compute_checksums(roots), self._checksums[gone]) else None

    def _add_units(self, units: Tensor, sign: int) -> None:
        self._sum += sign * units.sum(0)
        self._products += sign * (units.T @ units)


def _compute_checksums(roots: Tensor) -> np.ndarray:
    bits = roots.numpy().view(np.uint32)
    factors = np.random.default_rng(5).integers(1, 2**63, bits.shape[1], np.uint64) | np.uint64(1)
    sums = np.zeros(len(bits), np.uint64)
    for start in range(0, len(bits), IMAGES_PER_BLOCK):
        sums[start : start + IMAGES_PER_BLOCK] = bits[start : start + IMAGES_PER_BLOCK].astype(np.uint64) @ factors
    return sums
