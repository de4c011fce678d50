"""Logistic regression with full weight for answered cells, little weight for others as absent.

Answers do not say where a class is, so the score mixes whole image and best region (multiple-instance
learning, Andrews et al., NeurIPS 2002).
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from spmll.ensemble.regions import RegionCodes
from spmll.linear.lbfgs import minimize
from spmll.linear.training import one_thread

RIDGE_PER_IMAGE = 2e-5  # times the squared weights, an image
REGION_RIDGE_PER_IMAGE = 0.07 * RIDGE_PER_IMAGE  # the same where regions take part, which leave less to chance
BEST_REGION_SHARE = 0.5  # share of the best region's score
COLD_START_STEPS, WARM_START_STEPS = 50, 15  # of L-BFGS, from nothing and from the weights of the training before
REGION_STEPS = 10
MIN_POSITIVES_PER_CLASS = 50  # positives a class, on average, from which on there is something to learn from regions
MAX_REGION_IMAGES = 8000  # images, at most so many of which regions are learned from
# With more images than MAX_REGION_IMAGES, torch uses all of its threads: single products are then long enough to be
# shared.
# images whose slopes are computed at once: a few MB, which a cache can hold
IMAGES_PER_CHUNK, REGION_IMAGES_PER_CHUNK = (2048, 256)

Weights = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class AnsweredHead:
    """A linear head that scores the whole image and its best region.

    score = (1 - BEST_REGION_SHARE) * whole + BEST_REGION_SHARE * best region

    Attributes:
        weight, bias: (D, C) and (C,), on rows of `center_and_normalize`.
        whole_image_weights: Start of the next fit.
    """

    weight: Tensor
    bias: Tensor
    whole_image_weights: Weights


def fit_answered_head(
    units: Tensor,
    labels: Tensor,
    weights: Tensor,
    start: Weights | None = None,
    tell: Callable[[], None] = lambda: None,
    regions: Callable[[slice | np.ndarray], RegionCodes] | None = None,
    steps: tuple[int, int] = (COLD_START_STEPS, REGION_STEPS),
    min_positives: float = MIN_POSITIVES_PER_CLASS,
) -> AnsweredHead:
    """Fit a head to labels, first on whole images, then from there on regions.

    Region steps are few and restart from whole images, because continuing from the last head memorized regions.

    Args:
        units: (n, D), rows of `center_and_normalize`.
        labels: (n, C) in {0, 1}.
        weights: (n, C), cell weights.
        start: Previous `whole_image_weights`, or None.
        tell: Called per evaluation. An exception ends the fit.
        regions: From rows to region codes. None uses whole images.
        steps: L-BFGS steps on whole images and on regions.
        min_positives: Mean positives per class needed for regions.
    """
    fitted, of_wholes_steps = _Objective(units, labels, weights, None, tell), WARM_START_STEPS
    if start is None or start[0].shape != (units.shape[1], labels.shape[1]):
        share = (labels * weights).sum(0) / weights.sum(0).clamp(min=1e-6)
        start = torch.zeros(units.shape[1], labels.shape[1]), torch.logit(share.clamp(1e-3, 0.9))
        of_wholes_steps = steps[0]
    of_wholes = fitted.minimize(start, of_wholes_steps)
    if regions is None or labels.sum() < min_positives * labels.shape[1]:
        return AnsweredHead(*of_wholes, of_wholes)
    some: slice | np.ndarray = slice(None)
    if len(units) > MAX_REGION_IMAGES:  # nine regions an image take five times as long
        some = np.sort(np.random.default_rng(0).permutation(len(units))[:MAX_REGION_IMAGES])
    fitted = _Objective(units[some], labels[some], weights[some], regions(some), tell)
    return AnsweredHead(*fitted.minimize(of_wholes, steps[1]), of_wholes)


class _Objective:
    """The function that a head's training minimizes: weighted cross entropy with a ridge penalty."""

    def __init__(
        self, units: Tensor, labels: Tensor, weights: Tensor, regions: RegionCodes | None, tell: Callable[[], None]
    ):
        self._units, self._labels, self._weights = units, labels, weights
        self._regions, self._tell = regions, tell
        self._ridge = (RIDGE_PER_IMAGE if regions is None else REGION_RIDGE_PER_IMAGE) * len(units)

    def minimize(self, start: Weights, steps: int) -> Weights:
        with one_thread() if len(self._units) <= MAX_REGION_IMAGES else nullcontext():
            point = minimize(self.evaluate, torch.cat([start[0].flatten(), start[1]]), steps)
        return self._split_parameters(point)

    def _split_parameters(self, point: Tensor) -> Weights:
        ends = self._units.shape[1] * self._labels.shape[1]
        return point[:ends].view(-1, self._labels.shape[1]), point[ends:]

    def evaluate(self, point: Tensor) -> tuple[float, Tensor]:
        """Return the loss and its gradient at this point, the flattened weight and bias."""
        self._tell()
        weight, bias = self._split_parameters(point)
        total, slope = torch.zeros(()), torch.zeros_like(point)
        of_weight, of_bias = self._split_parameters(slope)  # views: what is added to them is added to the slope
        regions = None if self._regions is None else _RegionScores(self._regions, weight)
        size = IMAGES_PER_CHUNK if regions is None else REGION_IMAGES_PER_CHUNK
        for first in range(0, len(self._units), size):
            some = slice(first, first + size)
            rows, counts = self._units[some], self._weights[some]
            logits, share = rows @ weight, 1.0
            if regions is not None:
                logits, share = logits.lerp_(regions.score_best_regions(some), BEST_REGION_SHARE), 1 - BEST_REGION_SHARE
            logits += bias
            total += F.binary_cross_entropy_with_logits(logits, self._labels[some], weight=counts, reduction="sum")
            missed = torch.sigmoid(logits).sub_(self._labels[some]).mul_(counts)
            of_weight.addmm_(rows.T, missed, alpha=share)
            of_bias += missed.sum(0)
            if regions is not None:
                regions.add_gradient(missed)
        if regions is not None:
            of_weight += BEST_REGION_SHARE * regions.compute_gradient()
        of_weight += 2 * self._ridge * weight
        return float(total + self._ridge * (weight * weight).sum()), slope


class _RegionScores:
    """The best-region scores per image and class under a weight (D, C), with the gradient of that weight."""

    def __init__(self, regions: RegionCodes, weight: Tensor):
        self._regions = regions
        self._along = regions.basis.project_weights(weight)
        self._slope = torch.zeros_like(self._along)

    def score_best_regions(self, some: slice) -> Tensor:
        """Return the best-region scores (m, C) of some images. The next `add_gradient` uses the same images."""
        self._codes, self._lengths = self._regions.codes[some].float(), self._regions.lengths[some]
        scores, self._which = (self._codes @ self._along).div_(self._lengths).max(1, keepdim=True)
        return scores[:, 0]

    def add_gradient(self, missed: Tensor) -> None:
        """Add the gradient that follows from the derivatives (m, C) of the loss by the last scores."""
        regions = torch.zeros(*self._codes.shape[:2], missed.shape[1]).scatter_(1, self._which, missed[:, None])
        self._slope.addmm_(self._codes.flatten(0, 1).T, regions.div_(self._lengths).flatten(0, 1))

    def compute_gradient(self) -> Tensor:
        basis = self._regions.basis
        return basis.axes @ (basis.scales[:, None] * self._slope)
