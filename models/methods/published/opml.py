"""OPML: the classes of an image compete, and two constants bound how far present and other classes are pushed."""

from models.losses.opml import OPML
from models.methods.base import Method, worth_trying
from models.methods.end_to_end import EndToEnd, per_set

# The authors train with SGD; their learning rate, batch and epochs are lost. These are a guess from neighbours: the
# momentum SGD of Kim et al. (CVPR 2022), slower, because this loss is not divided by the number of classes.
ASSUMED = per_set(*[EndToEnd(1e-3, 16, 10, head_lr_scale=10, optimiser="sgd")] * 4)


class OPMLMethod(Method):
    """The OPML loss alone, on assumed negatives.

    The authors' a and b are lost. The defaults were searched (linear heads on cached features, mAP on validation
    images, clicks on all and on a fifth of the training images): 36 pairs from -2 to 3 on two sets and two seeds, then
    the best pairs on four sets and two other seeds. In the second search 0, 0, which is ZLPR, has 47.7, and 1, 2 has
    49.0; 2, 3 and 2, 2 are as good.
    """

    name = "opml"
    title = "One pair of labels apart"
    paper = (
        "Li et al., Pushing One Pair of Labels Apart Each Time in Multi-Label Learning: "
        "From Single Positive to Full Labels"
    )
    year = 2023
    url = "https://arxiv.org/abs/2302.14695"
    assumes = "What nobody marked ranks below what somebody did, in the same image, up to a bound."
    threshold = 0.5
    lr = 2.5e-3  # summed over classes, this loss is steeper than the others beside the same weight decay
    tunable = worth_trying(a=(-1.0, 0.0, 1.0, 2.0, 3.0), b=(0.0, 1.0, 2.0, 3.0))
    published = ASSUMED
    open_points = ("The text at hand has lost a and b, and how networks were trained; a and b were searched.",)

    def __init__(self, a: float = 1.0, b: float = 2.0):
        """Store a and b, exponents of the constants beside the present and the other classes; 0 and 0 is ZLPR.

        Raises:
            ValueError: One of them is not finite.
        """
        self.a, self.b = a, b
        self.criterion()  # what makes no sense is refused now, not at the first training

    def criterion(self) -> OPML:
        """Return the loss, which is the same in every epoch."""
        return OPML(self.a, self.b)
