"""Entropy maximization: predictions of unanswered cells should stay uncertain.

The gradient of an unseen cell vanishes at p = 0.5 and at p = 0 and 1, so such a cell neither pulls towards absent (as
assume-negative does) nor fights what the network has understood. The second stage of the paper, asymmetric
pseudo-labelling, hands in its guesses as labels between -1 and 0; when and which is decided in
methods/published/em_apl.py.

Zhou et al., "Acknowledging the Unknown for Multi-label Learning with Single Positive Labels", ECCV 2022,
https://arxiv.org/abs/2203.16219
"""

import torch
from torch import Tensor

from spmll.labels import ABSENT, UNSEEN
from spmll.losses.base import Loss, check_non_negative, negative_log_sigmoid


class EntropyMaximization(Loss):
    """-log(p) where present, -alpha x entropy where unseen, beta x cross-entropy towards q where the label is -q.

    A label of exactly -1 is a person's word, not a guess of q = 1: it costs -log(1 - p), with full weight.
    """

    name = "entropy_maximization"

    def __init__(self, alpha: float = 0.2, beta: float = 0.02, eps: float = 1e-5):
        """Store the weights; the defaults are the published ones for PASCAL VOC.

        Args:
            alpha: Weight of an unseen cell against a seen one.
            beta: Weight of a soft pseudo-negative against a seen cell.
            eps: Added inside every logarithm: 1e-5 in the published code, 0 for the exact loss.
        """
        super().__init__()
        check_non_negative(alpha=alpha, beta=beta, eps=eps)
        self.alpha = alpha
        self.beta = beta
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        if_present = negative_log_sigmoid(logits, self.eps)
        if_absent = negative_log_sigmoid(-logits, self.eps)
        p = torch.sigmoid(logits)
        entropy = p * if_present + torch.sigmoid(-logits) * if_absent
        guess = self.beta * (if_absent - labels * (if_present - if_absent))
        seen = torch.where(labels > UNSEEN, if_present, torch.where(labels <= ABSENT, if_absent, guess))
        # Minus: a lower loss must mean a *higher* entropy.
        return torch.where(labels == UNSEEN, -self.alpha * entropy, seen)
