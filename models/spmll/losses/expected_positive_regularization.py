"""Expected positive regularization: learn from the positives and their expected number an image.

Positives alone would let the network call everything present. What holds it back is a penalty on the average number of
classes that a batch predicts, which should be k.

Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021, sec. 5.3,
https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import LOSS_FORMS, Loss, check_choice, check_non_negative, log_loss


class ExpectedPositiveRegularization(Loss):
    """-log(p) where present, -log(1 - p) where a person said absent, 0 where unseen; plus strength x R_k of the batch.

    R_k is one number per batch, so it is added after the average, whatever the reduction.
    """

    name = "expected_positive_regularization"

    def __init__(self, k: float = 1.5, strength: float = 1.0, form: str = "code", eps: float = 1e-5):
        """Store the expected number of classes and the weight of the penalty.

        Args:
            k: Present classes an image, on average. Published: VOC 1.5 (the default), COCO 2.9, NUS 1.9, CUB 31.4.
            strength: Weight of R_k; 1 in the published code, not given in the paper.
            form: "code": the cells are averaged over B x C; "paper": they are summed over classes and averaged over
                images (`reduction` is set to "images"), so that R_k counts C times less beside them. The default is
                "code", since the published tables were made with it.
            eps: Added inside the logarithm: 1e-5 in the published code, 0 for the exact loss.
        """
        super().__init__()
        check_non_negative(k=k, strength=strength, eps=eps)
        self.k, self.strength = k, strength
        self.form = check_choice("form", form, LOSS_FORMS)
        if self.form == "paper":
            self.reduction = "images"
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell, without R_k: (B, C), (B, C) -> (B, C)."""
        cost = log_loss(logits, labels, self.eps)
        return torch.where(labels == UNSEEN, 0, cost)

    def compute_batch_loss(self, logits: Tensor, labels: Tensor, usable: Tensor | None) -> Tensor:
        """Return the scalar loss of a batch, as in Loss, plus strength x R_k."""
        return super().compute_batch_loss(logits, labels, usable) + self.strength * expected_count_penalty(
            torch.sigmoid(logits), self.k, usable
        )


def expected_count_penalty(probabilities: Tensor, k: float, usable: Tensor | None = None) -> Tensor:
    """Return R_k, ((average number of predicted classes - k) / C)^2, as a scalar.

    Args:
        probabilities: (B, C) float.
        k: How many classes an image shows on average.
        usable: (B, C) bool; the average is then taken over these cells alone and scaled up to C classes, so that a
            held-out cell neither counts nor is missed. With no cell in use the result is 0.

    Source: Cole et al. 2021, eq. 10.
    """
    classes = probabilities.shape[1]
    if usable is not None:
        probabilities = probabilities[usable]
    if not probabilities.numel():
        return probabilities.sum()
    return (probabilities.mean() - k / classes) ** 2
