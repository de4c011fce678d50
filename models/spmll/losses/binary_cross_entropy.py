"""Binary cross-entropy on known cells: the loss of fully labelled data, and the upper limit of all others.

Where every cell is 1 or -1 this is the oracle of the papers ("BCE"). A cell that nobody has looked at costs nothing:
labels here mark true absences, so a 0 needs no interpretation.

Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021, sec. 4.1, eq. 5,
https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, negative_log_sigmoid, presence_probability


class BinaryCrossEntropy(Loss):
    """-log(p) where present, -log(1 - p) where absent, 0 where unseen.

    A soft label -q costs the cross-entropy towards q.
    """

    name = "binary_cross_entropy"

    def __init__(self, eps: float = 1e-5):
        """Store eps, which is added inside the logarithm: 1e-5 in the published code, 0 for the exact loss."""
        super().__init__()
        check_non_negative(eps=eps)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        q = presence_probability(labels)
        cost = q * negative_log_sigmoid(logits, self.eps) + (1 - q) * negative_log_sigmoid(-logits, self.eps)
        return torch.where(labels == UNSEEN, 0, cost)
