"""Ignore unobserved: learn from answered cells only, which needs answered negatives.

Cole et al., CVPR 2021, eq. 6 and table 1 ("IU"), https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, log_loss


class IgnoreUnobserved(Loss):
    """-log(p) if present, -log(1 - p) if absent or soft, 0 if unseen."""

    name = "ignore_unobserved"

    def __init__(self, eps: float = 1e-5):
        """Store eps, added inside logarithms, 0 if exact."""
        super().__init__()
        check_non_negative(eps=eps)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return cell losses (B, C)."""
        cost = log_loss(logits, labels, self.eps)
        return torch.where(labels == UNSEEN, 0, cost)
