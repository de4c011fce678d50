"""Pairwise ranking: present classes should exceed all others by a margin of 1.

Cole et al., CVPR 2021, appendix A, https://arxiv.org/abs/2106.09708
"""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import LOSS_FORMS, Loss, check_choice


class PairwiseRanking(Loss):
    """The sum over pairs of present i and other j of max(0, 1 - p_i + p_j), assigned to cell j.

    -1 counts as unseen. Images without present classes cost nothing.
    """

    name = "pairwise_ranking"

    def __init__(self, form: str = "code"):
        """Store the divisor: B x C in form "code", images in form "paper"."""
        super().__init__()
        self.form = check_choice("form", form, LOSS_FORMS)
        if self.form == "paper":
            self.reduction = "images"

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        p = torch.sigmoid(logits)
        present = labels > UNSEEN
        # Probabilities are at most 1 apart, so the hinge never cuts anything off, and the pairs need not be formed:
        # the sum over i of 1 - p_i + p_j is this.
        short_of_one = torch.where(present, torch.sigmoid(-logits), 0).sum(1, keepdim=True)
        return torch.where(present, 0, short_of_one + present.sum(1, keepdim=True) * p)
