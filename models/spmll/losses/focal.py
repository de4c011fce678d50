"""Focal loss: cells that are right already count little, so that many easy negatives do not drown the few positives.

Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017, https://arxiv.org/abs/1708.02002
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, clamped_negative_log_sigmoid, focal_loss


class Focal(Loss):
    """(1 - p)^gamma_pos x -log(p) where present, p^gamma_neg x -log(1 - p) where unseen, -log(1 - p) where absent.

    The weight of a negative is for negatives that are many and easy. A person's -1 is neither (people are asked about
    doubtful cells), so it keeps full weight; for the plain focal loss of fully labelled data write 0 for absent.
    """

    name = "focal"

    def __init__(self, gamma_pos: float = 2.0, gamma_neg: float = 2.0, detached: bool = True, eps: float = 1e-8):
        """Store the focal exponents and the handling of the logarithm.

        Args:
            gamma_pos: Exponent of the weight of present cells; 2 is the paper's choice.
            gamma_neg: Exponent of the weight of unseen cells; 2 is the paper's choice.
            detached: Take the weights as constants of the gradient, as in the multi-label code that Hill and ASL were
                compared with (the default, since comparisons use their tables); False is the loss as the paper
                differentiates it.
            eps: Lower bound of probabilities inside logarithms: 1e-8 in that code, 0 for the exact loss.
        """
        super().__init__()
        check_non_negative(gamma_pos=gamma_pos, gamma_neg=gamma_neg, eps=eps)
        self.gamma_pos, self.gamma_neg = gamma_pos, gamma_neg
        self.detached = detached
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        present = focal_loss(logits, self.gamma_pos, self.eps, self.detached)
        unseen = focal_loss(-logits, self.gamma_neg, self.eps, self.detached)
        absent = clamped_negative_log_sigmoid(-logits, self.eps)
        return torch.where(labels > UNSEEN, present, torch.where(labels == UNSEEN, unseen, absent))
