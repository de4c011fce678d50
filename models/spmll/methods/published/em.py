"""Entropy maximization alone: predictions of unanswered cells stay uncertain; no pseudo-labels."""

from spmll.losses.base import check_non_negative
from spmll.losses.entropy_maximization import EntropyMaximization
from spmll.methods.base import Method, search_grid
from spmll.methods.training_recipes import shared_protocol


class EM(Method):
    """Entropy maximization without pseudo-labels. The default alpha is the published one for PASCAL VOC.

    COCO and NUS-WIDE have alpha .1, CUB .01.
    """

    name = "em"
    title = "Entropy maximization"
    paper = "Zhou et al., Acknowledging the Unknown for Multi-label Learning with Single Positive Labels, ECCV"
    year = 2022
    url = "https://arxiv.org/abs/2203.16219"
    assumes = "What nobody marked is unknown, and stays so."
    threshold = 0.7  # the published code advises 0.75 for this loss
    tunable = search_grid(alpha=(0.01, 0.05, 0.1, 0.2, 0.5))
    published = shared_protocol(alpha=(0.2, 0.1, 0.1, 0.01))

    def __init__(self, alpha: float = 0.2, eps: float = 1e-5):
        """Store alpha, the weight of an unseen cell against a seen one, and eps, added inside every logarithm.

        The published code has eps 1e-5.

        Raises:
            ValueError: One of the numbers is negative.
        """
        check_non_negative(alpha=alpha, eps=eps)
        self.alpha = alpha
        self.eps = eps

    def criterion(self) -> EntropyMaximization:
        """Return the loss, which is the same in every epoch; without pseudo-labels its weight beta is never used."""
        return EntropyMaximization(alpha=self.alpha, eps=self.eps)

    def should_stop_early(self, scores: list[float]) -> bool:
        """Return whether the last epoch is no better than the best before it; in the published code only."""
        return has_not_improved(scores)


def has_not_improved(scores: list[float]) -> bool:
    """Return whether the last validation mAP is not above all earlier ones: the early stop of Zhou et al.'s code.

    False for fewer than two scores.
    """
    return len(scores) > 1 and scores[-1] <= max(scores[:-1])
