"""Binary cross-entropy with label smoothing: the opposite of a known answer gets a small weight.

Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021, sec. 5.2 and table 1
("BCE-LS"), https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import (
    LOSS_FORMS,
    Loss,
    check_choice,
    check_fractions,
    check_non_negative,
    negative_log_sigmoid,
    presence_probability,
)


class BinaryCrossEntropySmoothed(Loss):
    """(1 - a) x the log loss of the right answer + a x that of the wrong one; 0 where unseen.

    A person's -1 is smoothed like a present cell: the two weights still sum to 1. A soft label -q is smoothed around q.
    """

    name = "binary_cross_entropy_smoothed"

    def __init__(self, smoothing: float = 0.1, form: str = "code", eps: float = 1e-5):
        """Store how much of the wrong answer is mixed into each label.

        Args:
            smoothing: The coefficient as papers and code give it: 0.1.
            form: "code": the weight of the wrong answer is `smoothing`; "paper": half of it. The default is "code",
                since the published tables were made with it.
            eps: Added inside the logarithm: 1e-5 in the published code, 0 for the exact loss.
        """
        super().__init__()
        check_fractions(smoothing=smoothing)
        check_non_negative(eps=eps)
        self.smoothing = smoothing
        self.form = check_choice("form", form, LOSS_FORMS)
        self.eps = eps

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        wrong = self.smoothing if self.form == "code" else self.smoothing / 2
        q = presence_probability(labels)
        q = (1 - wrong) * q + wrong * (1 - q)
        cost = q * negative_log_sigmoid(logits, self.eps) + (1 - q) * negative_log_sigmoid(-logits, self.eps)
        return torch.where(labels == UNSEEN, 0, cost)
