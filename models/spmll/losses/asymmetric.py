"""Asymmetric loss: negatives have a larger focal exponent than positives, and the easiest ones cost nothing.

Ridnik et al., "Asymmetric Loss For Multi-Label Classification", ICCV 2021, https://arxiv.org/abs/2009.14119
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, clamped_negative_log_sigmoid, focal_loss


class Asymmetric(Loss):
    """(1 - p)^gamma_pos x -log(p) where present, and with m = max(p - clip, 0) m^gamma_neg x -log(1 - m) where unseen.

    A person's -1 costs -log(1 - p): the focus and the shift are for negatives that are many, easy and sometimes wrong,
    and a confirmed absence is none of these. For the plain loss of fully labelled data write 0 for absent.
    """

    name = "asymmetric"

    def __init__(
        self,
        gamma_pos: float = 0.0,
        gamma_neg: float = 4.0,
        clip: float = 0.05,
        detached: bool = True,
        eps: float = 1e-8,
    ):
        """Store the focal exponents, the shift and the handling of the logarithm.

        Args:
            gamma_pos: Exponent of the weight of present cells: 0 in the published training scripts (the class itself
                has 1).
            gamma_neg: Exponent of the weight of unseen cells: 4 in the published training scripts and in the class.
            clip: Amount subtracted from the probability of an unseen cell: 0.05 in the paper.
            detached: Take the weights as constants of the gradient: the default of the published AsymmetricLoss; its
                "optimized" twin has False, as the paper writes it.
            eps: Lower bound of probabilities inside logarithms: 1e-8 in the code, 0 for the exact loss.
        """
        super().__init__()
        check_non_negative(gamma_pos=gamma_pos, gamma_neg=gamma_neg, clip=clip, eps=eps)
        if clip >= 1:
            raise ValueError(f"clip = {clip} would leave nothing of any probability; it must be below 1.")
        self.gamma_pos, self.gamma_neg = gamma_pos, gamma_neg
        self.clip = clip
        self.detached = detached
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        present = focal_loss(logits, self.gamma_pos, self.eps, self.detached)
        absent = clamped_negative_log_sigmoid(-logits, self.eps)
        return torch.where(labels > UNSEEN, present, torch.where(labels == UNSEEN, self.unseen_loss(logits), absent))

    def unseen_loss(self, logits: Tensor) -> Tensor:
        """Return the loss that each cell would have as an unseen cell: (B, C) -> (B, C)."""
        if self.clip == 0:
            return focal_loss(-logits, self.gamma_neg, self.eps, self.detached)
        over = torch.sigmoid(logits) - self.clip
        counts = over > 0
        # The cells below the clip are replaced before the power is taken: at 0 its gradient need not be finite.
        over = torch.where(counts, over, self.clip)
        weight = over**self.gamma_neg
        cost = -torch.log((1 - over).clamp(min=self.eps))
        return torch.where(counts, (weight.detach() if self.detached else weight) * cost, 0)
