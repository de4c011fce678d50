"""Weak assume negative: all assumed absences of an image together weigh as much as its one positive."""

from models.losses.weak_assume_negative import WeakAssumeNegative
from models.methods.base import Method, worth_trying
from models.methods.end_to_end import shared_protocol


class WAN(Method):
    """Weak assume negative. The default is the published weight, 1 / (C - 1) for C classes."""

    name = "wan"
    title = "Weak assume negative"
    paper = "Cole et al., Multi-Label Learning from Single Positive Labels, CVPR"
    year = 2021
    url = "https://arxiv.org/abs/2106.09708"
    assumes = "What nobody marked is absent, but that is worth little beside what somebody said."
    threshold = 0.6
    tunable = worth_trying(gamma=(None, 0.02, 0.1, 0.3, 0.6))
    published = shared_protocol()

    def __init__(self, gamma: float | None = None, eps: float = 1e-5):
        """Store gamma, the weight of an unseen cell (None: 1 / (C - 1)), and eps, added inside the logarithm.

        The published code has eps 1e-5.

        Raises:
            ValueError: One of the numbers is negative.
        """
        self.gamma = gamma
        self.eps = eps
        self.criterion()  # what makes no sense is refused now, not at the first training

    def criterion(self) -> WeakAssumeNegative:
        """Return the loss, which is the same in every epoch."""
        return WeakAssumeNegative(self.gamma, self.eps)
