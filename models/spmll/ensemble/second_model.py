"""The order of images within a class, corrected by a second model where the marks can hardly be told apart.

Between classes the scale of `auto` decides what is found first, so each class keeps its values: they are handed out
anew, in the order of the mean of normal scores of `auto` and of the second model. A normal score is the quantile of the
normal distribution at the rank of an image (van der Waerden, 1952): it makes models comparable whatever their scale.

The second model is the logistic regression of answered_head.py, fitted to the marks, with other cells as absent at a
small weight. It learns on regions, so it needs many marks; and it ranks worse than `auto` where `auto` is sure. So it
counts as far as images have a label, and as far as the model without the image cannot tell marked images from others.
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
    """The second model, its weight, and the knots that turn scores into normal scores, and these into values.

    Attributes:
        head: Scores whole images and their best regions.
        own, second, joint: (S + 2, C), ascending: the logits of `auto`, the scores of the head and the sums of normal
            scores of S images, and a point beyond either end.
        normal: (S + 2,), normal scores of the knots.
        weight: The weight of the head's normal scores; that of `auto` is 1.
    """

    head: AnsweredHead
    own: Tensor
    second: Tensor
    joint: Tensor
    normal: Tensor
    weight: float

    @classmethod
    def build(cls, head: AnsweredHead, logits: Tensor, scores: Tensor, weight: float) -> "SecondModel":
        """Return the model with knots from the logits of `auto` (S, C) and the scores of the head of some images."""
        places = (torch.arange(len(logits)) + 0.5) / len(logits)
        normal = _extend_knots(torch.from_numpy(ndtri(places.numpy())).float()[:, None])[:, 0]
        own, second = _extend_knots(logits.sort(0).values), _extend_knots(scores.sort(0).values)
        both = _interpolate(logits, own, normal[:, None]) + weight * _interpolate(scores, second, normal[:, None])
        return cls(head, own, second, _extend_knots(both.sort(0).values), normal, weight)

    def reorder(self, logits: Tensor, wholes: Tensor, best: Tensor | None) -> Tensor:
        """Return the logits (n, C) of each class in the order of both models; nan where there is no model.

        Args:
            logits: (n, C) of `auto`.
            wholes: (n, C), products of the head with whole images.
            best: (n, C), those with their best regions; None where images have no regions.
        """
        scores = combine_region_scores(self.head, wholes, best)
        both = _interpolate(logits, self.own, self.normal[:, None])
        both += self.weight * _interpolate(scores, self.second, self.normal[:, None])
        return torch.where(logits.isnan(), logits, _interpolate(both, self.joint, self.own))


def combine_region_scores(head: AnsweredHead, wholes: Tensor, best: Tensor | None) -> Tensor:
    """Return the head's scores (n, C), given its products with whole images and with their best regions."""
    return (wholes if best is None else wholes.lerp(best, BEST_REGION_SHARE)) + head.bias


def estimate_difficulty(predicted: Tensor, marked: Tensor) -> float:
    """Return how hard it is to tell marked images of a class from others: 1 up to HARD_AUC, 0 from EASY_AUC on.

    It is judged by the mean area under the ROC curve, in which a class counts by its marks.

    Args:
        predicted: (m, C), predictions for images by a model without the image itself (naming_rates.py).
        marked: (m, C) bool, marks of the same images.
    """
    ranks, marks = predicted.argsort(0).argsort(0).float() + 1, marked.float()
    present = marks.sum(0)
    above = (ranks * marks).sum(0) - present * (present + 1) / 2  # pairs of a marked image and one ranked below it
    of_class = above / (present * (len(marks) - present)).clamp(min=1)
    area = float((of_class * present).sum() / present.sum().clamp(min=1))
    return float(np.clip((EASY_AUC - area) / (EASY_AUC - HARD_AUC), 0, 1))


def _extend_knots(knots: Tensor) -> Tensor:
    """Return ascending knots (S, C) with a point beyond either end, as far away as all knots are wide.

    Later images may lie beyond all that were seen; without such points they would all be equal.
    """
    span = (knots[-1:] - knots[:1]).clamp(min=1.0)
    return torch.cat([knots[:1] - span, knots, knots[-1:] + span])


def _interpolate(values: Tensor, knots: Tensor, at_knots: Tensor) -> Tensor:
    """Return values (n, C) mapped by straight lines from knots (S, C), ascending, to at_knots (S, C or 1)."""
    places = torch.searchsorted(knots.T.contiguous(), values.T.contiguous()).T.clamp(1, len(knots) - 1)
    below, above = knots.gather(0, places - 1), knots.gather(0, places)
    at_knots = at_knots.expand_as(knots)
    share = ((values - below) / (above - below).clamp(min=1e-9)).clamp(0, 1)
    return at_knots.gather(0, places - 1).lerp(at_knots.gather(0, places), share)
