"""Logistic regression in which every answered cell counts in full and every other one a little, as absent."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from models.ensemble.basis import as_tensor, root, unit
from models.ensemble.regions import RegionCodes, Regions
from models.linear.training import Features, one_thread

RIDGE = 2e-5  # times the squared weights, an image
REGIONS = 0.5  # share of the best region's score, as in `auto`
FIRST_STEPS, NEXT_STEPS = 50, 15  # of L-BFGS, from nothing and from the weights of the training before
GAINS, ROWS = 1000, 512  # images from which the advantage of regions is taken; and scored at once


class AnsweredHead:
    """Logistic regression on whole images that scores their regions as well.

    weight (D, C) and bias (C,), on roots of features, centred and of length 1 (basis.py)
    """

    def __init__(self, weight: Tensor, bias: Tensor):
        self.weight, self.bias = weight, bias

    def logits(self, units: Tensor, region_codes: RegionCodes | None, gain: Tensor | float = 0.0) -> Tensor:
        """(n, C) of images given by units (n, D) and their region codes; gain (C,) as `gain` gives it."""
        whole = units @ self.weight
        if region_codes is None:
            return whole + self.bias
        best = (region_codes.products(self.weight) / region_codes.lengths).amax(1)
        return whole + REGIONS * (best - whole - gain) + self.bias

    def gain(self, units: Tensor, region_codes: RegionCodes | None) -> Tensor | float:
        """(C,) how much higher the best region scores than the whole, on average."""
        if region_codes is None:
            return 0.0
        return ((region_codes.products(self.weight) / region_codes.lengths).amax(1) - units @ self.weight).mean(0)

    @one_thread()
    def score(
        self,
        features: Features,
        region_codes: Regions | None,
        centre: Tensor,
        images: np.ndarray,
        tell: Callable[[], None] = lambda: None,
    ) -> np.ndarray:
        """(m, C) float32 logits of some images, a few hundred at a time.

        features, region_codes    of all N images; images (m,) rows of them
        centre                    (D,) mean root of features
        """

        def coded(rows: np.ndarray) -> tuple[Tensor, RegionCodes | None]:
            units = unit(root(as_tensor(features[rows])), centre)
            return units, None if region_codes is None else region_codes[rows]

        gain = self.gain(*coded(np.sort(np.random.default_rng(0).permutation(len(features))[:GAINS])))
        result = np.empty((len(images), self.weight.shape[1]), np.float32)
        for start in range(0, len(images), ROWS):
            tell()
            result[start : start + ROWS] = self.logits(*coded(images[start : start + ROWS]), gain).numpy()
        return result


@one_thread()
def fit_answered_head(
    units: Tensor,
    labels: Tensor,
    weights: Tensor,
    start: tuple[Tensor, Tensor] | None = None,
    tell: Callable[[], None] = lambda: None,
) -> AnsweredHead:
    """Fit it to labels (n, C) in {0, 1} with weights (n, C), from the weights of another one on; units are (n, D)."""
    if start is None or start[0].shape != (units.shape[1], labels.shape[1]):
        share = (labels * weights).sum(0) / weights.sum(0).clamp(min=1e-6)
        weight, bias = torch.zeros(units.shape[1], labels.shape[1]), torch.logit(share.clamp(1e-3, 0.9))
        steps = FIRST_STEPS
    else:
        (weight, bias), steps = start, NEXT_STEPS
    weight, bias = weight.clone().requires_grad_(True), bias.clone().requires_grad_(True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=steps, history_size=8, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        tell()
        optimiser.zero_grad()
        apart = F.binary_cross_entropy_with_logits(units @ weight + bias, labels, weight=weights, reduction="sum")
        total = apart + RIDGE * len(units) * (weight * weight).sum()
        total.backward()
        return total

    optimiser.step(loss)
    return AnsweredHead(weight.detach(), bias.detach())
