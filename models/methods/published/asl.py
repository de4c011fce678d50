"""Asymmetric loss on assumed negatives: negatives have a large focal exponent, and the easiest ones cost nothing."""

from models.losses.asymmetric import Asymmetric
from models.methods.base import Method, worth_trying
from models.methods.end_to_end import shared_protocol


class ASL(Method):
    """Asymmetric loss on assumed negatives, with the constants of the published training scripts.

    The class in that code itself has gamma_pos 1.
    """

    name = "asl"
    title = "Asymmetric loss"
    paper = "Ridnik et al., Asymmetric Loss For Multi-Label Classification, ICCV"
    year = 2021
    url = "https://arxiv.org/abs/2009.14119"
    assumes = "What nobody marked is absent, and easy absences need no learning at all."
    threshold = 0.55
    tunable = worth_trying(gamma_pos=(0.0, 1.0), gamma_neg=(1.0, 2.0, 4.0, 6.0), clip=(0.0, 0.05, 0.1, 0.2))
    published = shared_protocol()

    def __init__(
        self,
        gamma_pos: float = 0.0,
        gamma_neg: float = 4.0,
        clip: float = 0.05,
        detached: bool = True,
        eps: float = 1e-8,
    ):
        """Store the focal exponents, the shift and the handling of the logarithm.

        Args:
            gamma_pos, gamma_neg: Exponents of the weights of present and of unseen cells.
            clip: Amount subtracted from the probability of an unseen cell.
            detached: Take the weights as constants of the gradient: the published AsymmetricLoss does so by default,
                its "optimized" twin does not, and the paper does not say.
            eps: Lower bound of probabilities inside logarithms.

        Raises:
            ValueError: A number is negative, or clip is not below 1.
        """
        self.gamma_pos, self.gamma_neg = gamma_pos, gamma_neg
        self.clip = clip
        self.detached = detached
        self.eps = eps
        self.criterion()  # what makes no sense is refused now, not at the first training

    def criterion(self) -> Asymmetric:
        """Return the loss, which is the same in every epoch."""
        return Asymmetric(self.gamma_pos, self.gamma_neg, self.clip, self.detached, self.eps)
