"""OPML: ZLPR with two constants that bound how far classes are pushed from 0.

The paper's formulas were unavailable, but this form fits its description. Li et al. 2023, eqs. 3, 6 and 11,
https://arxiv.org/abs/2302.14695
"""

from torch import Tensor

from spmll.losses.base import PerImageLoss, check_finite, presence_probability, weighted_log_sum_exp


class OPML(PerImageLoss):
    """log(e^a + sum over present of e^-z) + log(e^b + sum over others of e^z) per image.

    A soft -q is in both sums, with weights q and 1 - q (eq. 11). -1 and unseen cells are "others". The minimum is
    a + b.
    """

    name = "opml"

    def __init__(self, a: float = 0.0, b: float = 0.0):
        """Store the exponents. a = b = 0 is ZLPR."""
        super().__init__()
        check_finite(a=a, b=b)
        self.a, self.b = a, b

    def per_image(self, logits: Tensor, labels: Tensor, usable: Tensor) -> Tensor:
        """Return image losses (B,)."""
        present = presence_probability(labels)
        return weighted_log_sum_exp(-logits, present * usable, self.a) + weighted_log_sum_exp(
            logits, (1 - present) * usable, self.b
        )
