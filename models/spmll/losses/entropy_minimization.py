"""Entropy minimization: predictions of unanswered cells should become certain.

Positives alone allow certain presence everywhere. Grandvalet and Bengio, NeurIPS 2004, and "EntMin" in Zhou
et al., ECCV 2022, https://arxiv.org/abs/2203.16219
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, log_loss, negative_log_sigmoid


class EntropyMinimization(Loss):
    """-log(p) if present, alpha x entropy if unseen, -log(1 - p) if absent or soft."""

    name = "entropy_minimization"

    def __init__(self, alpha: float = 0.2, eps: float = 1e-5):
        """Store alpha, and eps, added inside logarithms (0 if exact)."""
        super().__init__()
        check_non_negative(alpha=alpha, eps=eps)
        self.alpha = alpha
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return cell losses (B, C)."""
        p, q = torch.sigmoid(logits), torch.sigmoid(-logits)
        entropy = p * negative_log_sigmoid(logits, self.eps) + q * negative_log_sigmoid(-logits, self.eps)
        return torch.where(labels == UNSEEN, self.alpha * entropy, log_loss(logits, labels, self.eps))
