"""Ignore unobserved: learn from answered cells only, which needs answered negatives.

Cole et al., CVPR 2021, https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import LOSS_FORMS, Loss, check_choice, check_non_negative, log_loss


class IgnoreUnobserved(Loss):
    """-log(p) if present, -log(1 - p) if absent or soft, 0 if unseen (eq. 6, "IU")."""

    name = "ignore_unobserved"

    def __init__(self, eps: float = 1e-5):
        """Store eps, added inside logarithms, 0 if exact."""
        super().__init__()
        check_non_negative(eps=eps)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        cost = log_loss(logits, labels, self.eps)
        return torch.where(labels == UNSEEN, 0, cost)


class IgnoreUnobservedNegatives(Loss):
    """-log(p) if present, -log(1 - p) if absent, 0 for hidden positives (eq. 7, "IUN").

    A yardstick of the paper ("1 P, all N"): 1 is the observed positive, -1 truly absent, 0 a hidden positive.
    """

    name = "ignore_unobserved_negatives"

    def __init__(self, form: str = "paper", eps: float = 1e-5):
        """Store whether truly absent cells count.

        Args:
            form: "paper": they count. "code": they cost nothing, an oversight of the release that EM/APL's code
                corrects.
            eps: Added inside logarithms, 0 if exact.
        """
        super().__init__()
        check_non_negative(eps=eps)
        self.form = check_choice("form", form, LOSS_FORMS)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        cost = log_loss(logits, labels, self.eps)
        counts = labels > UNSEEN if self.form == "code" else labels != UNSEEN
        return torch.where(counts, cost, 0)
