"""Entropy maximization, and the same with asymmetric pseudo-labels (APL).

APL: after each epoch since the warm-up, the least likely cells per class become soft negatives, permanently.
Positives are never guessed. Zhou et al., ECCV 2022, https://arxiv.org/abs/2203.16219
"""

from collections.abc import Callable

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import check_fractions, check_non_negative
from spmll.losses.entropy_maximization import EntropyMaximization
from spmll.methods.base import Method, search_grid
from spmll.methods.published.ranks import select_lowest
from spmll.methods.training_recipes import shared_protocol


class EM(Method):
    """Entropy maximization with the published alpha for VOC. COCO and NUS-WIDE have .1, CUB .01."""

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
        """Return the entropy maximization loss, the same in all epochs. Its beta is unused."""
        return EntropyMaximization(alpha=self.alpha, eps=self.eps)

    def should_stop_early(self, scores: list[float]) -> bool:
        """Return whether the last epoch's validation score is not the best, as in published code."""
        return has_not_improved(scores)


def has_not_improved(scores: list[float]) -> bool:
    """Return whether the last validation score (mAP) is not above all earlier ones."""
    return len(scores) > 1 and scores[-1] <= max(scores[:-1])


class EMAPL(Method):
    """Entropy maximization with pseudo-negatives and published constants for VOC.

    COCO: alpha .1, beta .9. NUS-WIDE: .1, .2, warm-up .4. CUB: .01, .4, .3.
    """

    name = "em_apl"
    title = "Entropy maximization + asymmetric pseudo-labelling"
    paper = "Zhou et al., Acknowledging the Unknown for Multi-label Learning with Single Positive Labels, ECCV"
    year = 2022
    url = "https://arxiv.org/abs/2203.16219"
    assumes = "What nobody marked is unknown; nine tenths of it turn out to be absent."
    threshold = 0.7
    tunable = search_grid(alpha=(0.01, 0.1, 0.2, 0.5), beta=(0.02, 0.1, 0.4, 0.9), warm_up=(0.3, 0.5, 0.7))
    published = shared_protocol(alpha=(0.2, 0.1, 0.1, 0.01), beta=(0.02, 0.9, 0.2, 0.4), warm_up=(0.5, 0.5, 0.4, 0.3))

    def __init__(
        self,
        alpha: float = 0.2,
        beta: float = 0.02,
        negatives: float = 0.9,
        warm_up: float = 0.5,
        eps: float = 1e-5,
    ):
        """Store the weights and the schedule of pseudo-negatives.

        Args:
            alpha: Weight of unseen cells.
            beta: Weight of pseudo-negatives.
            negatives: Final share of unseen cells as pseudo-negatives (theta).
            warm_up: Share of epochs before the first pseudo-negatives.
            eps: Added inside logarithms.
        """
        check_non_negative(alpha=alpha, beta=beta, eps=eps)
        check_fractions(negatives=negatives, warm_up=warm_up)
        self.alpha, self.beta = alpha, beta
        self.negatives, self.warm_up = negatives, warm_up
        self.eps = eps

    def criterion(self) -> EntropyMaximization:
        return EntropyMaximization(self.alpha, self.beta, self.eps)

    def should_stop_early(self, scores: list[float]) -> bool:
        """Return whether the last epoch's validation score is not the best, even before pseudo-negatives exist."""
        return has_not_improved(scores)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training, and compute the number of new pseudo-negatives per class and epoch."""
        super().begin(labels, mask, epochs, generator)
        self.first = max(1, round(self.warm_up * epochs))
        unseen = (labels == UNSEEN) if mask is None else (labels == UNSEEN) & mask
        # int() as in the published code: with few images a class may get no pseudo-negative at all.
        self.counts = (self.negatives * unseen.sum(0).double() / max(epochs - self.first, 1)).long()

    def end_epoch(self, epoch: int, predict: Callable[[], Tensor]) -> None:
        """Write soft negatives after each epoch but the last, in which published code writes them too."""
        if self.first <= epoch < self.total_epochs:
            write_pseudo_negatives(self.targets, predict(), self.counts, self.mask)


def write_pseudo_negatives(targets: Tensor, probabilities: Tensor, counts: Tensor, mask: Tensor | None = None) -> None:
    """Write -p into the `counts` least likely unseen cells per class, in place (Zhou et al. 2022).

    Values are moved by 1e-7 away from 0 and 1, which mean unseen and answered.

    Args:
        targets: (N, C). Only zeros change.
        probabilities: (N, C).
        counts: (C,) int64.
        mask: (N, C), usable cells.
    """
    open_cells = targets == UNSEEN
    if mask is not None:
        open_cells &= mask
    chosen = open_cells & select_lowest(torch.where(open_cells, probabilities, torch.inf), counts)
    guess = -probabilities.clamp(1e-7, 1 - 1e-7).to(targets.dtype)
    targets.copy_(torch.where(chosen, guess, targets))
