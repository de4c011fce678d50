"""Assume negative: unmarked cells count as absent.

The baseline every other loss is measured against. The assumption is right for most cells, so it learns a great deal;
it is wrong exactly for the hidden positives, so it learns to hide them.

Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021, eq. 8, https://arxiv.org/abs/2106.09708
"""

from torch import Tensor

from spmll.losses.base import Loss, check_non_negative, log_loss


class AssumeNegative(Loss):
    """-log(p) where present, -log(1 - p) everywhere else."""

    name = "assume_negative"

    def __init__(self, eps: float = 1e-5):
        """Store eps, which is added inside the logarithm: 1e-5 in the published code, 0 for the exact loss."""
        super().__init__()
        check_non_negative(eps=eps)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        return log_loss(logits, labels, self.eps)
