"""The assume-negative loss: unmarked cells count as absent, the baseline of all losses.

It hides hidden positives. Cole et al., CVPR 2021, eq. 8, https://arxiv.org/abs/2106.09708
"""

from torch import Tensor

from spmll.losses.base import Loss, check_non_negative, log_loss


class AssumeNegative(Loss):
    """-log(p) where present, -log(1 - p) elsewhere."""

    name = "assume_negative"

    def __init__(self, eps: float = 1e-5):
        """Store eps, added inside logarithms: 1e-5 in published code, 0 if exact."""
        super().__init__()
        check_non_negative(eps=eps)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return cell losses (B, C)."""
        return log_loss(logits, labels, self.eps)
