"""Generalized robust loss: unseen cells mix positive and negative, and uncertain cells count less.

The positive share k(p) is logistic, the weight v(p) bell-shaped. methods/published/gr.py moves both. Chen et
al., IJCAI 2024, https://arxiv.org/abs/2405.03501
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


class GeneralizedRobust(Loss):
    """-log(p) if present, -log(1 - p) if absent, a weighted mixture if unseen.

    Unseen: v (k (1 - p^q2) / q2 + (1 - k) (1 - (1 - p)^q3) / q3) (eq. 14), with k = sigmoid(w p + b) (eq. 7) and
    v = exp(-(p - mu)^2 / (2 sigma^2)) (eq. 11) as constants in the gradient.
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
        """Store the constants, by default the end of the schedule for PASCAL VOC.

        Args:
            q1: 0 for -log(p + eps) on positives (code), else (1 - p^q1) / q1 (paper).
            q2: Exponent of the positive share, near 0 log loss, 1 absolute error.
            q3: Exponent of the negative share.
            eps: Added inside logarithms, 0 if exact.
        """
        super().__init__()
        check_non_negative(q1=q1, q2=q2, q3=q3, eps=eps)
        if sigma == 0:
            raise ValueError("sigma = 0 would leave no unseen cell with any weight; it must not be 0.")
        self.w, self.b, self.mu, self.sigma = w, b, mu, sigma
        self.q1, self.q2, self.q3 = q1, q2, q3
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        p = torch.sigmoid(logits.detach())
        k = torch.sigmoid(self.w * p + self.b)
        v = torch.exp(-((p - self.mu) ** 2) / (2 * self.sigma**2))
        unseen = v * (
            k * generalized_cross_entropy(logits, self.q2) + (1 - k) * generalized_cross_entropy(-logits, self.q3)
        )
        present = generalized_cross_entropy(logits, self.q1) if self.q1 else negative_log_sigmoid(logits, self.eps)
        seen = torch.where(labels > UNSEEN, present, negative_log_sigmoid(-logits, self.eps))
        return torch.where(labels == UNSEEN, unseen, seen)


class GeneralizedRobustGuided(Loss):
    """GeneralizedRobust whose positive share is (1 - trust) k(p) + trust q for a guessed label -q.

    An answered -1 costs -log(1 - p). After the abstract of Tran et al., ICCV 2025,
    https://arxiv.org/abs/2508.20381, whose formula was unavailable.
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
