"""Weak assume negative: all assumed absences of an image together weigh as much as its one positive."""

from models.losses.weak_assume_negative import WeakAssumeNegative
from models.methods.base import Method, worth_trying
from models.methods.end_to_end import shared_protocol


class WAN(Method):
    """The default is the published weight, 1 / (C - 1) for C classes."""

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
        """gamma weighs an unseen cell (None: 1 / (C - 1)); eps is added inside the logarithm (published code: 1e-5).

        Raises:
            ValueError: One of them is negative.
        """
        self.gamma = gamma
        self.eps = eps
        self.criterion()  # what makes no sense is refused now, not at the first training

    def criterion(self) -> WeakAssumeNegative:
        """The same loss in every epoch."""
        return WeakAssumeNegative(self.gamma, self.eps)
