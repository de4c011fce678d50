"""Expected negative: as many unseen cells of a class as should be absent are taken as absent; the rest teach nothing.

Which cells these are is decided once an epoch by the method (methods/published/en.py), which writes -1 into them.

Verelst et al., "Spatial Consistency Loss for Training Multi-Label Classifiers from Single-Label Annotations", WACV
2023, https://arxiv.org/abs/2203.06127
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, log_loss


class ExpectedNegative(Loss):
    """-log(p) where present, -log(1 - p) where the label is negative (a person's or the method's), 0 where unseen."""

    name = "expected_negative"

    def __init__(self, eps: float = 0.0):
        """Store eps, which is added inside the logarithm.

        The default 0 is the exact loss: the paper has no eps, and no code is published.
        """
        super().__init__()
        check_non_negative(eps=eps)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        cost = log_loss(logits, labels, self.eps)
        return torch.where(labels == UNSEEN, 0, cost)
