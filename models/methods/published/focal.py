"""Focal loss on assumed negatives: cells that are already predicted well count little."""

from models.losses.focal import Focal
from models.methods.base import Method, worth_trying
from models.methods.end_to_end import shared_protocol


class FocalMethod(Method):
    """Focal loss on assumed negatives, with the defaults of the multi-label code in which it is the usual baseline."""

    name = "focal"
    title = "Focal loss"
    paper = "Lin et al., Focal Loss for Dense Object Detection, ICCV"
    year = 2017
    url = "https://arxiv.org/abs/1708.02002"
    assumes = "What nobody marked is absent, and cells that are right already need no more learning."
    threshold = 0.4
    tunable = worth_trying(gamma_pos=(0.0, 1.0, 2.0), gamma_neg=(1.0, 2.0, 3.0, 4.0))
    published = shared_protocol()

    def __init__(self, gamma_pos: float = 2.0, gamma_neg: float = 2.0, detached: bool = True, eps: float = 1e-8):
        """Store the focal exponents and the handling of the logarithm.

        Args:
            gamma_pos, gamma_neg: Exponents of the weights of present and of unseen cells.
            detached: Take the weights as constants of the gradient: that code does; the paper does not.
            eps: Lower bound of probabilities inside logarithms.

        Raises:
            ValueError: A number is negative.
        """
        self.gamma_pos, self.gamma_neg = gamma_pos, gamma_neg
        self.detached = detached
        self.eps = eps
        self.criterion()  # what makes no sense is refused now, not at the first training

    def criterion(self) -> Focal:
        """Return the loss, which is the same in every epoch."""
        return Focal(self.gamma_pos, self.gamma_neg, self.detached, self.eps)
