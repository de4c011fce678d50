"""Hill loss: an assumed negative that the network finds very likely is probably a hidden positive, so it counts less.

The loss of an unseen cell is a hill: its slope rises with p and falls back to 0 at p = 1.

Zhang et al., "Simple and Robust Loss Design for Multi-Label Learning with Missing Labels", 2021,
https://arxiv.org/abs/2112.07368
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import Loss, check_choice, check_finite, check_non_negative, focal_loss, negative_log_sigmoid

HILL_FORMS = ("code", "gr")


class Hill(Loss):
    """(1 - p_m)^gamma x -log(p_m) where present, p_m = sigmoid(z - margin); (lamb - p) p^2 where unseen.

    A person's -1 costs -log(1 - p), since a confirmed absence is not a hidden positive.
    """

    name = "hill"

    def __init__(
        self, lamb: float = 1.5, margin: float = 1.0, gamma: float = 2.0, form: str = "code", eps: float = 1e-7
    ):
        """Store the constants; the defaults are the published ones.

        Args:
            lamb: Position of the top of the hill: at 1.5 the slope p^2 (1 - p) (2 lamb - 3 p) never becomes negative.
            margin: Margin of present cells.
            gamma: Focal exponent of present cells.
            form: "code": as above, the authors' own; "gr": -log(p + eps) where present, as the code and table 1 of the
                GR paper have it, to compare with its figures.
            eps: Added inside the logarithm of form "gr": 1e-7 in its code. The authors have none, and logits below
                about -100 break their float32; here form "code" is exact.
        """
        super().__init__()
        check_non_negative(lamb=lamb, gamma=gamma, eps=eps)
        check_finite(margin=margin)
        self.lamb, self.margin, self.gamma = lamb, margin, gamma
        self.form = check_choice("form", form, HILL_FORMS)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        p = torch.sigmoid(logits)
        own = self.form == "code"
        present = focal_loss(logits - self.margin, self.gamma) if own else negative_log_sigmoid(logits, self.eps)
        unseen = (self.lamb - p) * p * p
        return torch.where(
            labels > UNSEEN, present, torch.where(labels == UNSEEN, unseen, negative_log_sigmoid(-logits))
        )
