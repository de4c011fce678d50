"""Ignore unobserved: learn from answered cells only.

It needs negatives that were seen ("1 P, 1 N" in the paper). With positives alone nothing holds the network back from
calling everything present.

Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021, eq. 6 and table 1 ("IU"),
https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, log_loss


class IgnoreUnobserved(Loss):
    """-log(p) where present, -log(1 - p) where absent, 0 where unseen; a soft pseudo-label is taken as absent."""

    name = "ignore_unobserved"

    def __init__(self, eps: float = 1e-5):
        """Store eps, which is added inside the logarithm: 1e-5 in the published code, 0 for the exact loss."""
        super().__init__()
        check_non_negative(eps=eps)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        cost = log_loss(logits, labels, self.eps)
        return torch.where(labels == UNSEEN, 0, cost)
