"""Self-paced loss correction: once the network is sure enough of an unseen cell, the cell is taken as present.

Nothing is written down: a cell is present in this step and may be negative again in the next. When correcting begins is
decided by the method (methods/published/splc.py).

Zhang et al., "Simple and Robust Loss Design for Multi-Label Learning with Missing Labels", 2021,
https://arxiv.org/abs/2112.07368
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_finite, check_fractions, check_non_negative, focal_loss, negative_log_sigmoid


class SelfPacedCorrection(Loss):
    """Focal loss, with a margin on present cells; an unseen cell with p > tau counts as present, without a margin.

    A person's -1 is never corrected and costs -log(1 - p). The focal weight takes part in the gradient, as published.
    """

    name = "self_paced_correction"

    def __init__(self, tau: float = 0.6, margin: float = 1.0, gamma: float = 2.0, correcting: bool = True):
        """Store the constants; the defaults are the published ones.

        Args:
            tau: Probability above which an unseen cell is taken as present (0.65 where COCO has three quarters of its
                labels).
            margin: Subtracted from the logits of present cells.
            gamma: Exponent of the focal weight. The GR paper describes this loss with Hill's negatives; the authors'
                code has focal ones.
            correcting: False in the first epoch of the published code: plain focal loss with a margin.
        """
        super().__init__()
        check_fractions(tau=tau)
        check_non_negative(gamma=gamma)
        check_finite(margin=margin)
        self.tau, self.margin, self.gamma = tau, margin, gamma
        self.correcting = correcting

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        marked = focal_loss(logits - self.margin, self.gamma)
        unseen = focal_loss(-logits, self.gamma)
        if self.correcting:
            unseen = torch.where(torch.sigmoid(logits) > self.tau, focal_loss(logits, self.gamma), unseen)
        return torch.where(
            labels > UNSEEN, marked, torch.where(labels == UNSEEN, unseen, negative_log_sigmoid(-logits))
        )
