"""Self-paced loss correction: unseen cells with high predictions count as present, for one step.

methods/published/splc.py decides when it starts. Zhang et al. 2021, https://arxiv.org/abs/2112.07368
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_finite, check_fractions, check_non_negative, focal_loss, negative_log_sigmoid


class SelfPacedCorrection(Loss):
    """Focal loss with a margin on present cells. Unseen cells with p > tau count as present.

    An answered -1 costs -log(1 - p). The focal weight is in the gradient, as published.
    """

    name = "self_paced_correction"

    def __init__(self, tau: float = 0.6, margin: float = 1.0, gamma: float = 2.0, correcting: bool = True):
        """Store the constants, by default the published ones.

        Args:
            tau: Probability above which an unseen cell counts as present.
            margin: Subtracted from logits of present cells.
            gamma: Focal exponent.
            correcting: False in the published first epoch.
        """
        super().__init__()
        check_fractions(tau=tau)
        check_non_negative(gamma=gamma)
        check_finite(margin=margin)
        self.tau, self.margin, self.gamma = tau, margin, gamma
        self.correcting = correcting

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        marked = focal_loss(logits - self.margin, self.gamma)
        unseen = focal_loss(-logits, self.gamma)
        if self.correcting:
            unseen = torch.where(torch.sigmoid(logits) > self.tau, focal_loss(logits, self.gamma), unseen)
        return torch.where(
            labels > UNSEEN, marked, torch.where(labels == UNSEEN, unseen, negative_log_sigmoid(-logits))
        )
