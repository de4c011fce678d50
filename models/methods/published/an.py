"""Assume negative without additions: the plain baseline."""

from models.losses.assume_negative import AssumeNegative
from models.losses.base import at_least_zero
from models.methods.base import Method
from models.methods.end_to_end import shared_protocol


class AN(Method):
    """The baseline that trains on the labels as if every unseen cell were absent."""

    name = "an"
    title = "Assume negative"
    paper = "Cole et al., Multi-Label Learning from Single Positive Labels, CVPR"
    year = 2021
    url = "https://arxiv.org/abs/2106.09708"
    assumes = "What nobody marked is absent."
    threshold = 0.4
    published = shared_protocol()

    def __init__(self, eps: float = 1e-5):
        """Store eps, which is added inside the logarithm (published code: 1e-5; 0 for the exact loss)."""
        at_least_zero(eps=eps)
        self.eps = eps

    def criterion(self) -> AssumeNegative:
        """Return the loss, which is the same in every epoch."""
        return AssumeNegative(self.eps)
