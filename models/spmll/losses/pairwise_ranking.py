"""Pairwise ranking: present classes should be more probable than all others, by a margin of 1.

Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021, appendix A, https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import LOSS_FORMS, Loss, check_choice


class PairwiseRanking(Loss):
    """The sum over pairs of a present class i and another class j of max(0, 1 - p_i + p_j).

    The loss of each pair is that of the cell j. A person's -1 is treated like an unseen cell: a pair has one weight. An
    image without a present class has no pair, so it costs nothing.
    """

    name = "pairwise_ranking"

    def __init__(self, form: str = "code"):
        """Store the form, which decides what the sum is divided by.

        "code": by B x C, so that the loss does not grow with the number of classes (the default); "paper": by the
        number of images only (`reduction` is set to "images").
        """
        super().__init__()
        self.form = check_choice("form", form, LOSS_FORMS)
        if self.form == "paper":
            self.reduction = "images"

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell: (B, C), (B, C) -> (B, C)."""
        p = torch.sigmoid(logits)
        present = labels > UNSEEN
        # Probabilities are at most 1 apart, so the hinge never cuts anything off, and the pairs need not be formed:
        # the sum over i of 1 - p_i + p_j is this.
        short_of_one = torch.where(present, torch.sigmoid(-logits), 0).sum(1, keepdim=True)
        return torch.where(present, 0, short_of_one + present.sum(1, keepdim=True) * p)
