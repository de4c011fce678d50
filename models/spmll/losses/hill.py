"""Hill loss: unseen cells with very high predictions count less, as probably unmarked positives.

Its slope rises with p and returns to 0 at p = 1. Zhang et al. 2021, https://arxiv.org/abs/2112.07368
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_choice, check_finite, check_non_negative, focal_loss, negative_log_sigmoid

HILL_FORMS = ("code", "gr")


class Hill(Loss):
    """(1 - p_m)^gamma x -log(p_m), p_m = sigmoid(z - margin), if present, (lamb - p) p^2 if unseen.

    An answered -1 costs -log(1 - p).
    """

    name = "hill"

    def __init__(
        self, lamb: float = 1.5, margin: float = 1.0, gamma: float = 2.0, form: str = "code", eps: float = 1e-7
    ):
        """Store the constants, by default the published ones.

        Args:
            lamb: At 1.5 the slope p^2 (1 - p) (2 lamb - 3 p) is never negative.
            margin: Subtracted from logits of present cells.
            gamma: Focal exponent of present cells.
            form: "code" uses the formula of the class, "gr" -log(p + eps) if present, as in the GR paper.
            eps: Inside the logarithm of "gr". "code" is exact.
        """
        super().__init__()
        check_non_negative(lamb=lamb, gamma=gamma, eps=eps)
        check_finite(margin=margin)
        self.lamb, self.margin, self.gamma = lamb, margin, gamma
        self.form = check_choice("form", form, HILL_FORMS)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        p = torch.sigmoid(logits)
        own = self.form == "code"
        present = focal_loss(logits - self.margin, self.gamma) if own else negative_log_sigmoid(logits, self.eps)
        unseen = (self.lamb - p) * p * p
        return torch.where(
            labels > UNSEEN, present, torch.where(labels == UNSEEN, unseen, negative_log_sigmoid(-logits))
        )
