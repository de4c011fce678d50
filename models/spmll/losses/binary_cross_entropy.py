"""Binary cross-entropy on known cells, plain or smoothed: the papers' oracle with full labels.

Cole et al., CVPR 2021, https://arxiv.org/abs/2106.09708
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
    negative_log_sigmoid,
    presence_probability,
)


class BinaryCrossEntropy(Loss):
    """-log(p) where present, -log(1 - p) where absent, 0 where unseen (eq. 5).

    A soft -q costs the cross-entropy towards q.
    """

    name = "binary_cross_entropy"

    def __init__(self, eps: float = 1e-5):
        """Store eps, added inside logarithms: 1e-5 in published code, 0 if exact."""
        super().__init__()
        check_non_negative(eps=eps)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        q = presence_probability(labels)
        cost = q * negative_log_sigmoid(logits, self.eps) + (1 - q) * negative_log_sigmoid(-logits, self.eps)
        return torch.where(labels == UNSEEN, 0, cost)


class BinaryCrossEntropySmoothed(Loss):
    """Label smoothing on known cells: (1 - a) x log loss of the right answer + a x that of the wrong one.

    Unseen cells cost 0. A soft -q is smoothed around q. Sec. 5.2 and table 1 ("BCE-LS").
    """

    name = "binary_cross_entropy_smoothed"

    def __init__(self, smoothing: float = 0.1, form: str = "code", eps: float = 1e-5):
        """Store the smoothing.

        Args:
            smoothing: Weight `a` of the wrong answer.
            form: "code" (published tables) weighs the wrong answer by `smoothing`, "paper" by half.
            eps: Added inside logarithms, 0 if exact.
        """
        super().__init__()
        check_fractions(smoothing=smoothing)
        check_non_negative(eps=eps)
        self.smoothing = smoothing
        self.form = check_choice("form", form, LOSS_FORMS)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        wrong = self.smoothing if self.form == "code" else self.smoothing / 2
        q = presence_probability(labels)
        q = (1 - wrong) * q + wrong * (1 - q)
        cost = q * negative_log_sigmoid(logits, self.eps) + (1 - q) * negative_log_sigmoid(-logits, self.eps)
        return torch.where(labels == UNSEEN, 0, cost)
