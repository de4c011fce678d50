"""ZLPR: every present class should score above 0 and every other class below 0.

Su et al., "ZLPR: A Novel Loss for Multi-label Classification", 2022, https://arxiv.org/abs/2208.02955
"""

from torch import Tensor

from spmll.losses.base import PerImageLoss, presence_probability, weighted_log_sum_exp


class ZLPR(PerImageLoss):
    """log(1 + sum over present of e^-z) + log(1 + sum over the others of e^z), for each image.

    A soft label -q is in both sums, with weights q and 1 - q. A person's -1 is one of the others, with weight 1, like
    an unseen cell: the sum has no weight for certainty.
    """

    name = "zlpr"

    def __init__(self):
        """Take no arguments: this loss has no constants."""
        super().__init__()

    def per_image(self, logits: Tensor, labels: Tensor, usable: Tensor) -> Tensor:
        """Return the loss of each image: (B, C), (B, C), (B, C) -> (B,)."""
        present = presence_probability(labels)
        return weighted_log_sum_exp(-logits, present * usable) + weighted_log_sum_exp(logits, (1 - present) * usable)
