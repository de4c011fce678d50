"""Generalized robust loss: an unseen cell is a mixture of positive and negative, and uncertain cells count less.

How much of a positive is k(p), a logistic curve over what the network already believes; how much the cell counts is
v(p), a bell curve over the same. Both curves move while training goes on (methods/published/gr.py); here they stand
still.

Chen et al., "Boosting Single Positive Multi-label Classification with Generalized Robust Loss", IJCAI 2024,
https://arxiv.org/abs/2405.03501
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, generalized_cross_entropy, negative_log_sigmoid


class GeneralizedRobust(Loss):
    """Present: -log(p). Unseen: v (k (1 - p^q2) / q2 + (1 - k) (1 - (1 - p)^q3) / q3). Absent: -log(1 - p).

    k = sigmoid(w p + b) (eq. 7) and v = exp(-(p - mu)^2 / (2 sigma^2)) (eq. 11) are constants to the gradient, as in
    the published code; the paper says so of k only. The powers are those of eq. 14.
    """

    name = "generalized_robust"

    def __init__(
        self,
        w: float = 2.0,
        b: float = -2.0,
        mu: float = 0.8,
        sigma: float = 0.5,
        q1: float = 0.0,
        q2: float = 0.01,
        q3: float = 1.0,
        eps: float = 1e-7,
    ):
        """Store the constants of both curves; the defaults are where the published schedule for PASCAL VOC ends.

        Args:
            w: Slope of k, the share of an unseen cell that is treated as a positive.
            b: Offset of k.
            mu: Centre of v, the weight of an unseen cell by its probability.
            sigma: Width of v.
            q1: 0 for -log(p + eps) on positives, as the code has it; the paper has (1 - p^q1) / q1, with 0.01.
            q2: Exponent of the positive share; near 0 is a log loss, 1 is the mean absolute error.
            q3: Exponent of the negative share, in the same way.
            eps: Added inside the logarithm of seen cells: 1e-7 in the published code, 0 for the exact loss.
        """
        super().__init__()
        check_non_negative(q1=q1, q2=q2, q3=q3, eps=eps)
        if sigma == 0:
            raise ValueError("sigma = 0 would leave no unseen cell with any weight; it must not be 0.")
        self.w, self.b, self.mu, self.sigma = w, b, mu, sigma
        self.q1, self.q2, self.q3 = q1, q2, q3
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        p = torch.sigmoid(logits.detach())
        k = torch.sigmoid(self.w * p + self.b)
        v = torch.exp(-((p - self.mu) ** 2) / (2 * self.sigma**2))
        unseen = v * (
            k * generalized_cross_entropy(logits, self.q2) + (1 - k) * generalized_cross_entropy(-logits, self.q3)
        )
        present = generalized_cross_entropy(logits, self.q1) if self.q1 else negative_log_sigmoid(logits, self.eps)
        seen = torch.where(labels > UNSEEN, present, negative_log_sigmoid(-logits, self.eps))
        return torch.where(labels == UNSEEN, unseen, seen)
