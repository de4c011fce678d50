"""Entropy minimization: predictions of unanswered cells should become certain, whichever way.

The opposite of entropy maximization (entropy_maximization.py), with which the table of that paper compares it. With
positives alone nothing holds the network back from being certain that every class is present.

Grandvalet and Bengio, "Semi-supervised Learning by Entropy Minimization", NeurIPS 2004; as "EntMin" in Zhou et al.,
"Acknowledging the Unknown for Multi-label Learning with Single Positive Labels", ECCV 2022,
https://arxiv.org/abs/2203.16219
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_non_negative, log_loss, negative_log_sigmoid


class EntropyMinimization(Loss):
    """-log(p) where present, alpha x entropy where unseen, -log(1 - p) where absent (a soft pseudo-label, too)."""

    name = "entropy_minimization"

    def __init__(self, alpha: float = 0.2, eps: float = 1e-5):
        """Store the weight of an unseen cell, and eps, which is added inside the logarithm (0 for the exact loss)."""
        super().__init__()
        check_non_negative(alpha=alpha, eps=eps)
        self.alpha = alpha
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        p, q = torch.sigmoid(logits), torch.sigmoid(-logits)
        entropy = p * negative_log_sigmoid(logits, self.eps) + q * negative_log_sigmoid(-logits, self.eps)
        return torch.where(labels == UNSEEN, self.alpha * entropy, log_loss(logits, labels, self.eps))
