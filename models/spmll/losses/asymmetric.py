"""Asymmetric loss: a larger focal exponent for negatives, and no loss for the easiest negatives.

Ridnik et al., ICCV 2021, https://arxiv.org/abs/2009.14119
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, clamped_negative_log_sigmoid, focal_loss


class Asymmetric(Loss):
    """(1 - p)^gamma_pos x -log(p) if present, m^gamma_neg x -log(1 - m) if unseen, m = max(p - clip, 0).

    An answered -1 costs -log(1 - p). Label negatives 0 for the published loss.
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
        """Store exponents, shift and logarithm handling.

        Args:
            clip: Subtracted from unseen probabilities.
            detached: Whether weights are constants in the gradient, as in the published AsymmetricLoss.
            eps: Lower bound inside logarithms, 0 if exact.
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
        present = focal_loss(logits, self.gamma_pos, self.eps, self.detached)
        absent = clamped_negative_log_sigmoid(-logits, self.eps)
        return torch.where(labels > UNSEEN, present, torch.where(labels == UNSEEN, self.unseen_loss(logits), absent))

    def unseen_loss(self, logits: Tensor) -> Tensor:
        """Return the loss of each cell if unseen, (B, C)."""
        if self.clip == 0:
            return focal_loss(-logits, self.gamma_neg, self.eps, self.detached)
        over = torch.sigmoid(logits) - self.clip
        counts = over > 0
        # The cells below the clip are replaced before the power is taken: at 0 its gradient need not be finite.
        over = torch.where(counts, over, self.clip)
        weight = over**self.gamma_neg
        cost = -torch.log((1 - over).clamp(min=self.eps))
        return torch.where(counts, (weight.detach() if self.detached else weight) * cost, 0)
