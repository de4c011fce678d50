"""Assume negative with label smoothing: no label, given or assumed, counts in full."""

from models.losses.assume_negative_smoothed import AssumeNegativeSmoothed
from models.methods.base import Method, worth_trying
from models.methods.end_to_end import shared_protocol


class ANLS(Method):
    """Assume negative with smoothed labels; the defaults are those of the published code.

    positive = 0 is the asymmetric variant of the appendix.
    """

    name = "an_ls"
    title = "Assume negative, label smoothing"
    paper = "Cole et al., Multi-Label Learning from Single Positive Labels, CVPR"
    year = 2021
    url = "https://arxiv.org/abs/2106.09708"
    assumes = "What nobody marked is absent, and one label in ten is wrong."
    threshold = 0.4
    tunable = worth_trying(positive=(0.0, 0.05, 0.1, 0.2), negative=(0.05, 0.1, 0.2, 0.3))
    published = shared_protocol()

    def __init__(self, positive: float = 0.1, negative: float = 0.1, form: str = "code", eps: float = 1e-5):
        """Store how much of the opposite of each label is mixed in.

        Args:
            positive, negative: Smoothing of present cells, and of all others.
            form: "code": the weight of the opposite is the smoothing; "paper": half of it. The published tables were
                made by the code.
            eps: Added inside the logarithm (published code: 1e-5).

        Raises:
            ValueError: The form is unknown, or a smoothing is not between 0 and 1.
        """
        self.positive, self.negative = positive, negative
        self.form = form
        self.eps = eps
        self.criterion()  # what makes no sense is refused now, not at the first training

    def criterion(self) -> AssumeNegativeSmoothed:
        """Return the loss, which is the same in every epoch."""
        return AssumeNegativeSmoothed(self.positive, self.negative, self.form, self.eps)
