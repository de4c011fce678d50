"""ZLPR: present classes should score above 0 and others below. Su et al. 2022, https://arxiv.org/abs/2208.02955"""

from torch import Tensor

from spmll.losses.base import PerImageLoss, presence_probability, weighted_log_sum_exp


class ZLPR(PerImageLoss):
    """log(1 + sum over present of e^-z) + log(1 + sum over others of e^z) per image.

    A soft -q is in both sums, with weights q and 1 - q.
    """

    name = "zlpr"

    def __init__(self):
        """Create the loss, which has no constants."""
        super().__init__()

    def per_image(self, logits: Tensor, labels: Tensor, usable: Tensor) -> Tensor:
        present = presence_probability(labels)
        return weighted_log_sum_exp(-logits, present * usable) + weighted_log_sum_exp(logits, (1 - present) * usable)
