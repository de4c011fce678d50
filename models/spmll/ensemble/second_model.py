"""A second model that corrects the ranking of images per class, if marked images are hard to detect.

Each class keeps its logits, but gives them to images in the order of both models' mean normal scores (rank quantiles,
van der Waerden 1952). The second model (answered_head.py) needs many marks and ranks worse where `auto` is confident,
so its weight grows with the labeled share and the difficulty.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from spmll.ensemble.answered_head import BEST_REGION_SHARE, AnsweredHead

UNMARKED_WEIGHT = 0.05  # weight of an unmarked cell, as absent, in the fit of the second model
# of L-BFGS, on whole images and then on regions: a quarter of the time of the rest of a training
SECOND_FIT_STEPS = (20, 8)
MAX_SECOND_IMAGES = 4000  # images that the second model learns from
MIN_SECOND_WEIGHT = 0.25  # weight of the second model from which on it is worth its time
# how well marks are told apart, below which it counts in full, and from which on not at all
HARD_AUC, EASY_AUC = (0.65, 0.8)


@dataclass(frozen=True, eq=False)
class SecondModel:
    """The second model, with tables that convert scores of either model to normal scores and back.

    Attributes:
        own, second, joint: (S + 2, C), ascending knots from S images: `auto` logits, head scores, summed normal
            scores.
        normal: (S + 2,), normal scores of the knots.
        weight: Weight of the head relative to 1 for `auto`.
    """

    head: AnsweredHead
    own: Tensor
    second: Tensor
    joint: Tensor
    normal: Tensor
    weight: float

    @classmethod
    def build(cls, head: AnsweredHead, logits: Tensor, scores: Tensor, weight: float) -> "SecondModel":
        """Build the tables from `auto` logits (S, C) and head scores (S, C) of S images."""
        places = (torch.arange(len(logits)) + 0.5) / len(logits)
        normal = _extend_knots(torch.from_numpy(ndtri(places.numpy())).float()[:, None])[:, 0]
        own, second = _extend_knots(logits.sort(0).values), _extend_knots(scores.sort(0).values)
        both = _interpolate(logits, own, normal[:, None]) + weight * _interpolate(scores, second, normal[:, None])
        return cls(head, own, second, _extend_knots(both.sort(0).values), normal, weight)

    def reorder(self, logits: Tensor, wholes: Tensor, best: Tensor | None) -> Tensor:
        """Return `auto` logits (n, C), exchanged between images to follow the order of both models.

        Args:
            logits: (n, C) of `auto`, nan without a model.
            wholes: (n, C), products of head weights and whole images.
            best: (n, C), the same for the best regions, or None.
        """
        scores = combine_region_scores(self.head, wholes, best)
        both = _interpolate(logits, self.own, self.normal[:, None])
        both += self.weight * _interpolate(scores, self.second, self.normal[:, None])
        return torch.where(logits.isnan(), logits, _interpolate(both, self.joint, self.own))


def combine_region_scores(head: AnsweredHead, wholes: Tensor, best: Tensor | None) -> Tensor:
    """Return head scores (n, C) from products with whole images and best regions."""
    return (wholes if best is None else wholes.lerp(best, BEST_REGION_SHARE)) + head.bias


def estimate_difficulty(predicted: Tensor, marked: Tensor) -> float:
    """Return how hard marked images are to detect, from 0 (mean AUC of EASY_AUC or more) to 1 (HARD_AUC or less).

    Args:
        predicted: (m, C), leave-one-out predictions.
        marked: (m, C) bool.
    """
    ranks, marks = predicted.argsort(0).argsort(0).float() + 1, marked.float()
    present = marks.sum(0)
    above = (ranks * marks).sum(0) - present * (present + 1) / 2  # pairs of a marked image and one ranked below it
    of_class = above / (present * (len(marks) - present)).clamp(min=1)
    area = float((of_class * present).sum() / present.sum().clamp(min=1))
    return float(np.clip((EASY_AUC - area) / (EASY_AUC - HARD_AUC), 0, 1))


def _extend_knots(knots: Tensor) -> Tensor:
    """Add a point beyond either end, so that later extreme images stay distinct."""
    span = (knots[-1:] - knots[:1]).clamp(min=1.0)
    return torch.cat([knots[:1] - span, knots, knots[-1:] + span])


def _interpolate(values: Tensor, knots: Tensor, at_knots: Tensor) -> Tensor:
    """Map values (n, C) to a piecewise linear function with ascending knots and the values `at_knots`."""
    places = torch.searchsorted(knots.T.contiguous(), values.T.contiguous()).T.clamp(1, len(knots) - 1)
    below, above = knots.gather(0, places - 1), knots.gather(0, places)
    at_knots = at_knots.expand_as(knots)
    share = ((values - below) / (above - below).clamp(min=1e-9)).clamp(0, 1)
    return at_knots.gather(0, places - 1).lerp(at_knots.gather(0, places), share)
