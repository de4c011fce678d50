"""OPML: ZLPR with two constants to choose, which bound how far present and other classes are pushed from 0.

The text of the paper that is at hand has lost its formulas. This form is the one that agrees with everything it says of
them: both sums are bounded by a positive constant, one positive is the special case, both constants 1 give ZLPR, and
the gradients compare with those of cross-entropy as described. Which values the authors chose is lost too; the
exponents are searched on validation data (methods/published/loss_only.py).

Li et al., "Pushing One Pair of Labels Apart Each Time in Multi-Label Learning: From Single Positive to Full Labels",
2023, eqs. 3, 6 and 11, https://arxiv.org/abs/2302.14695
"""

from torch import Tensor

from spmll.losses.base import PerImageLoss, check_finite, presence_probability, weighted_log_sum_exp


class OPML(PerImageLoss):
    """log(e^a + sum over present of e^-z) + log(e^b + sum over the others of e^z), for each image.

    A soft label -q is in both sums, with weights q and 1 - q (eq. 11). A person's -1 is one of the others, with weight
    1, like an unseen cell. The lower bound is a + b, so the loss may be negative.
    """

    name = "opml"

    def __init__(self, a: float = 0.0, b: float = 0.0):
        """Store the exponents of the two constants: e^a beside the present classes, e^b beside the others.

        a = b = 0 is ZLPR, the only pair that is known from another paper to work.
        """
        super().__init__()
        check_finite(a=a, b=b)
        self.a, self.b = a, b

    def per_image(self, logits: Tensor, labels: Tensor, usable: Tensor) -> Tensor:
        """Return the loss of each image: (B, C), (B, C), (B, C) -> (B,)."""
        present = presence_probability(labels)
        return weighted_log_sum_exp(-logits, present * usable, self.a) + weighted_log_sum_exp(
            logits, (1 - present) * usable, self.b
        )
