"""Generalized robust loss with another model's guesses in the share k(p).

After the abstract of Tran et al., ICCV 2025, https://arxiv.org/abs/2508.20381, whose formula was unavailable.
"""

import torch
from torch import Tensor

from spmll.labels import ABSENT, UNSEEN
from spmll.losses.base import (
    Loss,
    check_fractions,
    check_non_negative,
    generalized_cross_entropy,
    negative_log_sigmoid,
)


class GeneralizedRobustGuided(Loss):
    """GeneralizedRobust, with share (1 - trust) k(p) + trust q for a label -q.

    An answered -1 costs -log(1 - p).
    """

    name = "generalized_robust_guided"

    def __init__(
        self,
        w: float = 2.0,
        b: float = -2.0,
        mu: float = 0.8,
        sigma: float = 0.5,
        q2: float = 0.01,
        q3: float = 1.0,
        trust: float = 0.5,
        eps: float = 1e-7,
    ):
        """Store the constants. `trust` weighs a guess against k(p)."""
        super().__init__()
        check_non_negative(q2=q2, q3=q3, eps=eps)
        check_fractions(trust=trust)
        if sigma == 0:
            raise ValueError("sigma = 0 would leave no unseen cell with any weight; it must not be 0.")
        self.w, self.b, self.mu, self.sigma = w, b, mu, sigma
        self.q2, self.q3 = q2, q3
        self.trust = trust
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return cell losses (B, C)."""
        p = torch.sigmoid(logits.detach())
        k = torch.sigmoid(self.w * p + self.b)
        k = torch.where(labels < UNSEEN, (1 - self.trust) * k - self.trust * labels, k)
        v = torch.exp(-((p - self.mu) ** 2) / (2 * self.sigma**2))
        unseen = v * (
            k * generalized_cross_entropy(logits, self.q2) + (1 - k) * generalized_cross_entropy(-logits, self.q3)
        )
        seen = torch.where(
            labels > UNSEEN, negative_log_sigmoid(logits, self.eps), negative_log_sigmoid(-logits, self.eps)
        )
        return torch.where((labels > ABSENT) & (labels <= UNSEEN), unseen, seen)
