"""Logistic regression in which every answered cell counts in full and every other one a little, as absent."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from models.ensemble.basis import as_tensor, root, unit
from models.ensemble.regions import Regions
from models.linear.lbfgs import minimised
from models.linear.training import Features, one_thread

RIDGE = 2e-5  # times the squared weights, an image
REGIONS = 0.5  # share of the best region's score, as in `auto`
FIRST_STEPS, NEXT_STEPS = 50, 15  # of L-BFGS, from nothing and from the weights of the training before
FEW = 8000  # images; with more of them torch uses all of its threads: single products are then long enough to be shared
GAINS = 1000  # images from which the advantage of regions is taken
ROWS = 2048  # images whose slopes are computed at once: a few MB, which a cache can hold


@dataclass(frozen=True, eq=False)
class AnsweredHead:
    """Logistic regression on whole images that scores their regions as well.

    weight (D, C) and bias (C,), on roots of features, centred and of length 1 (basis.py)
    """

    weight: Tensor
    bias: Tensor

    @one_thread()
    def gain(self, features: Features, region_codes: Regions | None, centre: Tensor) -> Tensor | float:
        """(C,) how much higher the best region scores than the whole, on average.

        features, region_codes    of all N images
        centre                    (D,) mean root of features
        """
        if region_codes is None:
            return 0.0
        rows = np.sort(np.random.default_rng(0).permutation(len(features))[:GAINS])
        some = region_codes[rows]
        whole = unit(root(as_tensor(features[rows])), centre) @ self.weight
        return ((some.products(self.weight) / some.lengths).amax(1) - whole).mean(0)


def fit_answered_head(
    units: Tensor,
    labels: Tensor,
    weights: Tensor,
    start: tuple[Tensor, Tensor] | None = None,
    tell: Callable[[], None] = lambda: None,
) -> AnsweredHead:
    """Fit it to labels (n, C) in {0, 1} with weights (n, C), from the weights of another one on; units are (n, D)."""
    if start is not None and start[0].shape == (units.shape[1], labels.shape[1]):
        return AnsweredHead(*_minimised(units, labels, weights, *start, NEXT_STEPS, tell))
    share = (labels * weights).sum(0) / weights.sum(0).clamp(min=1e-6)
    weight, bias = torch.zeros(units.shape[1], labels.shape[1]), torch.logit(share.clamp(1e-3, 0.9))
    return AnsweredHead(*_minimised(units, labels, weights, weight, bias, FIRST_STEPS, tell))


def _minimised(
    units: Tensor, labels: Tensor, weights: Tensor, weight: Tensor, bias: Tensor, steps: int, tell: Callable[[], None]
) -> tuple[Tensor, Tensor]:
    """The weight and the bias after so many steps of L-BFGS."""
    ridge, ends = RIDGE * len(units), weight.numel()

    def loss(point: Tensor) -> tuple[float, Tensor]:
        tell()
        weight_, bias_ = point[:ends].view_as(weight), point[ends:]
        total, slope = torch.zeros(()), torch.zeros_like(point)
        of_weight, of_bias = slope[:ends].view_as(weight), slope[ends:]
        for rows, answers, counts in zip(*(tensor.split(ROWS) for tensor in (units, labels, weights)), strict=True):
            logits = rows @ weight_ + bias_
            total += F.binary_cross_entropy_with_logits(logits, answers, weight=counts, reduction="sum")
            missed = (torch.sigmoid(logits) - answers).mul_(counts)
            of_weight += rows.T @ missed
            of_bias += missed.sum(0)
        of_weight += 2 * ridge * weight_
        return float(total + ridge * (weight_ * weight_).sum()), slope

    with one_thread() if len(units) <= FEW else nullcontext():
        point = minimised(loss, torch.cat([weight.flatten(), bias]), steps)
    return point[:ends].view_as(weight), point[ends:]
