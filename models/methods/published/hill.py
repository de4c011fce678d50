"""Hill loss on assumed negatives: negatives that the network finds very likely lose their weight."""

from models.losses.hill import Hill
from models.methods.base import Method, worth_trying
from models.methods.end_to_end import shared_protocol


class HillMethod(Method):
    """Hill loss on assumed negatives; the defaults are the published ones."""

    name = "hill"
    title = "Hill loss"
    paper = "Zhang et al., Simple and Robust Loss Design for Multi-Label Learning with Missing Labels"
    year = 2021
    url = "https://arxiv.org/abs/2112.07368"
    assumes = "What nobody marked is absent, except where the network is sure of the opposite."
    threshold = 0.5
    tunable = worth_trying(lamb=(1.0, 1.25, 1.5, 2.0), margin=(0.0, 0.5, 1.0), gamma=(0.0, 1.0, 2.0))
    published = shared_protocol()

    def __init__(
        self, lamb: float = 1.5, margin: float = 1.0, gamma: float = 2.0, form: str = "code", eps: float = 1e-7
    ):
        """Store the position of the hill and the constants of present cells.

        Args:
            lamb: Below 1.5, unseen cells near p = 1 are pushed further up; at 1.5 they get no gradient there.
            margin, gamma: Margin subtracted from the logits of present cells, and their focal exponent.
            form: "code": the authors'; "gr": present cells as the GR paper lists them, to compare with its tables.
            eps: Added inside the logarithm of form "gr".

        Raises:
            ValueError: The form is unknown, or a number is outside its range.
        """
        self.lamb, self.margin, self.gamma = lamb, margin, gamma
        self.form = form
        self.eps = eps
        self.criterion()  # what makes no sense is refused now, not at the first training

    def criterion(self) -> Hill:
        """Return the loss, which is the same in every epoch."""
        return Hill(self.lamb, self.margin, self.gamma, self.form, self.eps)
