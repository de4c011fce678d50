"""Entropy maximization without pseudo-labels."""

from spmll.losses.base import check_non_negative
from spmll.losses.entropy_maximization import EntropyMaximization
from spmll.methods.base import Method, search_grid
from spmll.methods.training_recipes import shared_protocol


class EM(Method):
    """Entropy maximization with the published alpha for VOC.

    COCO and NUS-WIDE have .1, CUB .01.
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
        """Store alpha, the weight of unseen cells, and eps, added inside logarithms."""
        check_non_negative(alpha=alpha, eps=eps)
        self.alpha = alpha
        self.eps = eps

    def criterion(self) -> EntropyMaximization:
        """Return the constant loss, with beta unused."""
        return EntropyMaximization(alpha=self.alpha, eps=self.eps)

    def should_stop_early(self, scores: list[float]) -> bool:
        """Return whether the last epoch is not the best, as in published code."""
        return has_not_improved(scores)


def has_not_improved(scores: list[float]) -> bool:
    """Return whether the last validation mAP is not above all earlier ones."""
    return len(scores) > 1 and scores[-1] <= max(scores[:-1])
