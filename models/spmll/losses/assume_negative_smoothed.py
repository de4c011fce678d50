"""Assume negative with label smoothing: every label, given or assumed, is mixed with its opposite.

The wrong assumption about a hidden positive then costs less to contradict. The two kinds of label can be smoothed
differently; smoothing only the assumed ones (positive = 0) is the asymmetric variant of the appendix.

Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021, eq. 9 and appendix A,
https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import LOSS_FORMS, Loss, check_choice, check_fractions, check_non_negative, negative_log_sigmoid


class AssumeNegativeSmoothed(Loss):
    """(1 - a) x the log loss of the label + a x that of its opposite; every cell not present is a negative.

    A person's -1 is smoothed by `negative`, like an unseen cell: smoothing does not express doubt here, and the two
    weights still sum to 1.

    """

    name = "assume_negative_smoothed"

    def __init__(self, positive: float = 0.1, negative: float = 0.1, form: str = "code", eps: float = 1e-5):
        """Store how much of the opposite label is mixed into each label.

        Args:
            positive: Smoothing of present cells; 0.1 in the paper.
            negative: Smoothing of all others; 0.1 in the paper.
            form: "code": the weight of the opposite is the smoothing; "paper": half of it. The default is "code", since
                the published tables were made with it.
            eps: Added inside the logarithm: 1e-5 in the published code, 0 for the exact loss.
        """
        super().__init__()
        check_fractions(positive=positive, negative=negative)
        check_non_negative(eps=eps)
        self.positive, self.negative = positive, negative
        self.form = check_choice("form", form, LOSS_FORMS)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        scale = 1.0 if self.form == "code" else 0.5
        # A tensor of the logits' type: where() of two numbers would round them to float32.
        certain = labels.new_tensor(1 - scale * self.positive)
        present = torch.where(labels > UNSEEN, certain, scale * self.negative)
        return present * negative_log_sigmoid(logits, self.eps) + (1 - present) * negative_log_sigmoid(
            -logits, self.eps
        )
