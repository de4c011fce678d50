"""Ignore unobserved, all negatives known: what one positive an image could do if every absence were known too.

A yardstick of the paper, not a method for real data ("1 P, all N"): its labels are 1 for the one observed positive, -1
for all that is truly absent, and 0 for the positives that stay hidden.

Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021, eq. 7 ("IUN"),
https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import LOSS_FORMS, Loss, check_choice, check_non_negative, log_loss


class IgnoreUnobservedNegatives(Loss):
    """-log(p) where present, -log(1 - p) where absent, 0 for a hidden positive."""

    name = "ignore_unobserved_negatives"

    def __init__(self, form: str = "paper", eps: float = 1e-5):
        """Store which form decides whether the negatives count.

        Args:
            form: "paper": they count; "code": they cost nothing, as in the release, which looks for -1 in labels that
                are 0 and 1. The default is "paper", since the release has an oversight that the code of EM/APL
                corrects.
            eps: Added inside the logarithm: 1e-5 in the published code, 0 for the exact loss.
        """
        super().__init__()
        check_non_negative(eps=eps)
        self.form = check_choice("form", form, LOSS_FORMS)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        cost = log_loss(logits, labels, self.eps)
        counts = labels > UNSEEN if self.form == "code" else labels != UNSEEN
        return torch.where(counts, cost, 0)
