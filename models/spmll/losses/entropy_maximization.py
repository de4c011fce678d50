"""Maximized or minimized entropy of unanswered cells, which stay uncertain or become certain.

Pseudo-labels come from methods/published/em_apl.py. Zhou et al., ECCV 2022, https://arxiv.org/abs/2203.16219
"""

import torch
from torch import Tensor

from spmll.labels import ABSENT, UNSEEN
from spmll.losses.base import Loss, check_non_negative, log_loss, negative_log_sigmoid


class EntropyMaximization(Loss):
    """-log(p) if present, -alpha x entropy if unseen, beta x cross-entropy towards q for a soft -q.

    An answered -1 costs -log(1 - p), with full weight. An unseen cell's gradient vanishes at p = 0, 0.5 and 1.
    """

    name = "entropy_maximization"

    def __init__(self, alpha: float = 0.2, beta: float = 0.02, eps: float = 1e-5):
        """Store the weights, by default those for PASCAL VOC.

        Args:
            alpha: Weight of unseen cells.
            beta: Weight of soft pseudo-negatives.
            eps: Added inside logarithms, 0 if exact.
        """
        super().__init__()
        check_non_negative(alpha=alpha, beta=beta, eps=eps)
        self.alpha = alpha
        self.beta = beta
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        if_present = negative_log_sigmoid(logits, self.eps)
        if_absent = negative_log_sigmoid(-logits, self.eps)
        p = torch.sigmoid(logits)
        entropy = p * if_present + torch.sigmoid(-logits) * if_absent
        guess = self.beta * (if_absent - labels * (if_present - if_absent))
        seen = torch.where(labels > UNSEEN, if_present, torch.where(labels <= ABSENT, if_absent, guess))
        # Minus: a lower loss must mean a *higher* entropy.
        return torch.where(labels == UNSEEN, -self.alpha * entropy, seen)


class EntropyMinimization(Loss):
    """-log(p) if present, alpha x entropy if unseen, -log(1 - p) if absent or soft.

    With positives alone, predicting presence everywhere minimizes it. Grandvalet and Bengio, NeurIPS 2004,
    "EntMin" in Zhou et al.
    """

    name = "entropy_minimization"

    def __init__(self, alpha: float = 0.2, eps: float = 1e-5):
        """Store alpha, and eps, added inside logarithms (0 if exact)."""
        super().__init__()
        check_non_negative(alpha=alpha, eps=eps)
        self.alpha = alpha
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        p, q = torch.sigmoid(logits), torch.sigmoid(-logits)
        entropy = p * negative_log_sigmoid(logits, self.eps) + q * negative_log_sigmoid(-logits, self.eps)
        return torch.where(labels == UNSEEN, self.alpha * entropy, log_loss(logits, labels, self.eps))
