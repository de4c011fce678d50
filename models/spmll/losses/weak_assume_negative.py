"""Weak assume negative: an image's assumed negatives together weigh as much as its positive.

Cole et al., CVPR 2021, sec. 5.1 ("WAN"), https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, log_loss


class WeakAssumeNegative(Loss):
    """-log(p) if present, -gamma log(1 - p) if unseen, -log(1 - p) if absent."""

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
        """Return cell losses (B, C)."""
        gamma = 1 / max(labels.shape[1] - 1, 1) if self.gamma is None else self.gamma
        cost = log_loss(logits, labels, self.eps)
        return torch.where(labels == UNSEEN, gamma * cost, cost)
