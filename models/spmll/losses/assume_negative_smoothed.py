"""The assume-negative loss with label smoothing, separately for given and assumed labels.

Cole et al., CVPR 2021, eq. 9 and appendix A, https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import LOSS_FORMS, Loss, check_choice, check_fractions, check_non_negative, negative_log_sigmoid


class AssumeNegativeSmoothed(Loss):
    """(1 - a) x the log loss of the label + a x that of its opposite, absent unless present."""

    name = "assume_negative_smoothed"

    def __init__(self, positive: float = 0.1, negative: float = 0.1, form: str = "code", eps: float = 1e-5):
        """Store the smoothing of present cells and of all others.

        Args:
            form: "code" (published tables) weighs the opposite by the smoothing, "paper" by half.
            eps: Added inside logarithms, 0 if exact.
        """
        super().__init__()
        check_fractions(positive=positive, negative=negative)
        check_non_negative(eps=eps)
        self.positive, self.negative = positive, negative
        self.form = check_choice("form", form, LOSS_FORMS)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return cell losses (B, C)."""
        scale = 1.0 if self.form == "code" else 0.5
        # A tensor of the logits' type: where() of two numbers would round them to float32.
        certain = labels.new_tensor(1 - scale * self.positive)
        present = torch.where(labels > UNSEEN, certain, scale * self.negative)
        return present * negative_log_sigmoid(logits, self.eps) + (1 - present) * negative_log_sigmoid(
            -logits, self.eps
        )
