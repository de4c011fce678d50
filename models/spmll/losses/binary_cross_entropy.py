"""Binary cross-entropy on known cells, the papers' oracle with full labels.

Cole et al., CVPR 2021, eq. 5, https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, negative_log_sigmoid, presence_probability


class BinaryCrossEntropy(Loss):
    """-log(p) where present, -log(1 - p) where absent, 0 where unseen.

    A soft -q costs the cross-entropy towards q.
    """

    name = "binary_cross_entropy"

    def __init__(self, eps: float = 1e-5):
        """Store eps, added inside logarithms: 1e-5 in published code, 0 if exact."""
        super().__init__()
        check_non_negative(eps=eps)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return cell losses (B, C)."""
        q = presence_probability(labels)
        cost = q * negative_log_sigmoid(logits, self.eps) + (1 - q) * negative_log_sigmoid(-logits, self.eps)
        return torch.where(labels == UNSEEN, 0, cost)
