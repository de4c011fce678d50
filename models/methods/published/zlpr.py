"""ZLPR on assumed negatives: the classes of an image compete; present ones should score above 0, absent ones below."""

from models.losses.zlpr import ZLPR
from models.methods.base import Method
from models.methods.end_to_end import shared_protocol


class ZLPRMethod(Method):
    """The ZLPR loss on assumed negatives, which has no constants; OPML (opml.py) adds two."""

    name = "zlpr"
    title = "Zero-bounded log-sum-exp, pairwise ranking"
    paper = "Su et al., ZLPR: A Novel Loss for Multi-label Classification"
    year = 2022
    url = "https://arxiv.org/abs/2208.02955"
    assumes = "What nobody marked ranks below what somebody did, in the same image."
    threshold = 0.5
    lr = 2.5e-3  # summed over classes, this loss is steeper than the others beside the same weight decay
    published = shared_protocol()

    def criterion(self) -> ZLPR:
        """Return the loss, which is the same in every epoch."""
        return ZLPR()
