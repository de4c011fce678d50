"""Assume negative, plain, smoothed or weak: unmarked cells count as absent.

It pushes unmarked positives down. Cole et al., CVPR 2021, https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import (
    LOSS_FORMS,
    Loss,
    check_choice,
    check_fractions,
    check_non_negative,
    log_loss,
    negative_log_sigmoid,
)


class AssumeNegative(Loss):
    """-log(p) where present, -log(1 - p) elsewhere (eq. 8)."""

    name = "assume_negative"

    def __init__(self, eps: float = 1e-5):
        """Store eps, added inside logarithms: 1e-5 in published code, 0 if exact."""
        super().__init__()
        check_non_negative(eps=eps)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        return log_loss(logits, labels, self.eps)


class AssumeNegativeSmoothed(Loss):
    """Label smoothing: (1 - a) x the log loss of the label + a x that of its opposite.

    Unmarked cells count as absent. Present cells and all others have an `a` each (eq. 9 and appendix A).
    """

    name = "assume_negative_smoothed"

    def __init__(self, positive: float = 0.1, negative: float = 0.1, form: str = "code", eps: float = 1e-5):
        """Store the smoothing of present cells and of all others.

        Args:
            form: "code" (published tables) weighs the opposite by the smoothing, "paper" by half.
            eps: Added inside logarithms, 0 if exact.
        """
        super().__init__()
        check_fractions(positive=positive, negative=negative)
        check_non_negative(eps=eps)
        self.positive, self.negative = positive, negative
        self.form = check_choice("form", form, LOSS_FORMS)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        scale = 1.0 if self.form == "code" else 0.5
        # A tensor of the logits' type: where() of two numbers would round them to float32.
        certain = labels.new_tensor(1 - scale * self.positive)
        present = torch.where(labels > UNSEEN, certain, scale * self.negative)
        return present * negative_log_sigmoid(logits, self.eps) + (1 - present) * negative_log_sigmoid(
            -logits, self.eps
        )


class WeakAssumeNegative(Loss):
    """-log(p) if present, -gamma log(1 - p) if unseen, -log(1 - p) if absent (sec. 5.1, "WAN").

    By default an image's assumed negatives together weigh as much as its positive.
    """

    name = "weak_assume_negative"

    def __init__(self, gamma: float | None = None, eps: float = 1e-5):
        """Store the weight of unseen cells.

        Args:
            gamma: None selects 1 / (C - 1).
            eps: Added inside logarithms, 0 if exact.
        """
        super().__init__()
        check_non_negative(eps=eps, **({} if gamma is None else {"gamma": gamma}))
        self.gamma = gamma
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        gamma = 1 / max(labels.shape[1] - 1, 1) if self.gamma is None else self.gamma
        cost = log_loss(logits, labels, self.eps)
        return torch.where(labels == UNSEEN, gamma * cost, cost)
