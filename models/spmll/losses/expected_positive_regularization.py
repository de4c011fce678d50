"""Expected positive regularization: loss of positives, and a penalty unless images average k classes.

The penalty keeps the network from calling everything present. Cole et al., CVPR 2021, sec. 5.3,
https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import LOSS_FORMS, Loss, check_choice, check_non_negative, log_loss


class ExpectedPositiveRegularization(Loss):
    """-log(p) if present, -log(1 - p) if answered absent, 0 if unseen, plus strength x R_k per batch.

    R_k is `expected_count_penalty`.
    """

    name = "expected_positive_regularization"

    def __init__(self, k: float = 1.5, strength: float = 1.0, form: str = "code", eps: float = 1e-5):
        """Store the expected number of classes and the penalty's weight.

        Args:
            k: Mean present classes per image (VOC 1.5, COCO 2.9, NUS 1.9, CUB 31.4).
            form: "code" (published tables) averages over B x C, "paper" over images, so that R_k counts C times less.
            eps: Added inside logarithms, 0 if exact.
        """
        super().__init__()
        check_non_negative(k=k, strength=strength, eps=eps)
        self.k, self.strength = k, strength
        self.form = check_choice("form", form, LOSS_FORMS)
        if self.form == "paper":
            self.reduction = "images"
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return cell losses (B, C), without R_k."""
        cost = log_loss(logits, labels, self.eps)
        return torch.where(labels == UNSEEN, 0, cost)

    def compute_batch_loss(self, logits: Tensor, labels: Tensor, usable: Tensor | None) -> Tensor:
        """Return the scalar batch loss plus strength x R_k."""
        return super().compute_batch_loss(logits, labels, usable) + self.strength * expected_count_penalty(
            torch.sigmoid(logits), self.k, usable
        )


def expected_count_penalty(probabilities: Tensor, k: float, usable: Tensor | None = None) -> Tensor:
    """Return R_k = ((mean number of predicted classes - k) / C)^2 (Cole et al. 2021, eq. 10).

    Args:
        probabilities: (B, C).
        usable: (B, C) bool. The mean of these cells is scaled to C classes, 0 without any.
    """
    classes = probabilities.shape[1]
    if usable is not None:
        probabilities = probabilities[usable]
    if not probabilities.numel():
        return probabilities.sum()
    return (probabilities.mean() - k / classes) ** 2
