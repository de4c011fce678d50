"""Focal loss: correct cells count little, so easy negatives do not dominate.

Lin et al., ICCV 2017, https://arxiv.org/abs/1708.02002
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, clamped_negative_log_sigmoid, focal_loss


class Focal(Loss):
    """(1 - p)^gamma_pos x -log(p) if present, p^gamma_neg x -log(1 - p) if unseen, -log(1 - p) if absent.

    An answered -1 is not an easy negative. Label negatives 0 for the published loss.
    """

    name = "focal"

    def __init__(self, gamma_pos: float = 2.0, gamma_neg: float = 2.0, detached: bool = True, eps: float = 1e-8):
        """Store the exponents and logarithm handling.

        Args:
            detached: Whether weights are constants in the gradient, as in the code of Hill's and ASL's tables, unlike
                the paper.
            eps: Lower bound inside logarithms, 0 if exact.
        """
        super().__init__()
        check_non_negative(gamma_pos=gamma_pos, gamma_neg=gamma_neg, eps=eps)
        self.gamma_pos, self.gamma_neg = gamma_pos, gamma_neg
        self.detached = detached
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        present = focal_loss(logits, self.gamma_pos, self.eps, self.detached)
        unseen = focal_loss(-logits, self.gamma_neg, self.eps, self.detached)
        absent = clamped_negative_log_sigmoid(-logits, self.eps)
        return torch.where(labels > UNSEEN, present, torch.where(labels == UNSEEN, unseen, absent))
