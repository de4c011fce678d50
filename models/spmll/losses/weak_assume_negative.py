"""Weak assume negative: the assumed negatives of an image together weigh as much as its one positive.

Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021, sec. 5.1 ("WAN"),
https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, log_loss


class WeakAssumeNegative(Loss):
    """-log(p) where present, -gamma log(1 - p) where unseen, -log(1 - p) where a person said absent."""

    name = "weak_assume_negative"

    def __init__(self, gamma: float | None = None, eps: float = 1e-5):
        """Store the weight of an assumed negative.

        Args:
            gamma: Weight of an unseen cell; None is the paper's 1 / (C - 1) of C classes (and 1 for a single class).
            eps: Added inside the logarithm: 1e-5 in the published code, 0 for the exact loss.
        """
        super().__init__()
        check_non_negative(eps=eps, **({} if gamma is None else {"gamma": gamma}))
        self.gamma = gamma
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        gamma = 1 / max(labels.shape[1] - 1, 1) if self.gamma is None else self.gamma
        cost = log_loss(logits, labels, self.eps)
        return torch.where(labels == UNSEEN, gamma * cost, cost)
