"""Expected negative: only the expected number of unseen cells counts as absent, others cost nothing.

The method (methods/published/en.py) chooses them per epoch. Verelst et al., WACV 2023, https://arxiv.org/abs/2203.06127
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, log_loss


class ExpectedNegative(Loss):
    """-log(p) where present, -log(1 - p) where negative, 0 where unseen."""

    name = "expected_negative"

    def __init__(self, eps: float = 0.0):
        """Store eps, added inside logarithms (none in the paper)."""
        super().__init__()
        check_non_negative(eps=eps)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        cost = log_loss(logits, labels, self.eps)
        return torch.where(labels == UNSEEN, 0, cost)
