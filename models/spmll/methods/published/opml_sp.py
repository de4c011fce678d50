"""OPML for single positives: the OPML loss with soft targets, a high-rank term, and correction of labels.

How reliable the scores of a class are is measured by their average precision (AP) for its marked cells, anew after
every epoch. The larger it is, the more an unseen cell's own score softens its target, and the fewer of the class's
unseen cells are corrected to present.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from spmll.labels import PRESENT, UNSEEN
from spmll.losses.base import check_choice, check_fractions, check_non_negative
from spmll.losses.high_rank import RANK_FORMS, rank_penalty
from spmll.losses.opml import OPML
from spmll.methods.base import Method, check_positive, search_grid
from spmll.methods.published.ranks import select_lowest
from spmll.methods.training_recipes import OPML_RECIPES

SMOOTHING_RULES = ("both", "ap")
CORRECTION_TIMES = ("every", "once")


class OPMLSP(Method):
    """OPML with soft targets, a high-rank term and corrected labels; all constants were searched.

    The text at hand has lost every number, the rule of smoothing, and when labels are corrected. The search used linear
    heads on cached features, mAP on validation images, and clicks on all and on a fifth of the training images: 101
    random settings on two sets and two seeds, then one change at a time from the best on four sets and two other seeds.
    The means of the second search are: ZLPR 47.7, OPML 49.0, this method 50.8. Nearly all of the gain comes from the
    correction: often, early, of many cells (rho 0.3; 0: 49.1), in each class at most half as many as its marks.
    Smoothing helps only where it is nearly absent (gamma 8 is as good as none, 4 costs 0.6), in the form (AP p)^gamma.
    The high-rank term has no effect at 0.001; at 0.01 it adds 1.4 on one set and costs 7 on another.
    """

    name = "opml_sp"
    title = "One pair of labels apart, soft, high-rank, corrected"
    paper = (
        "Li et al., Pushing One Pair of Labels Apart Each Time in Multi-Label Learning: "
        "From Single Positive to Full Labels"
    )
    year = 2023
    url = "https://arxiv.org/abs/2302.14695"
    assumes = "What nobody marked is absent as far as the network doubts it, and the likeliest of it is present."
    threshold = 0.6
    lr = 2.5e-3  # as for opml
    tunable = search_grid(strength=(0.0, 0.001, 0.01), rho=(0.03, 0.1, 0.3, 1.0), kappa=(0.25, 0.5, 1.0))
    published = OPML_RECIPES
    open_points = (
        "The text at hand has lost every number; all were searched on validation images.",
        "It has lost the rule of smoothing: (AP p)^gamma is the better of two that were tried.",
        "It does not say when labels are corrected; here after every epoch from the warm-up on.",
    )

    def __init__(
        self,
        a: float = 1.0,
        b: float = 2.0,
        strength: float = 0.001,
        delta: float = 1.0,
        rank: str = "logdet",
        gamma: float = 8.0,
        rule: str = "both",
        rho: float = 0.3,
        kappa: float = 0.5,
        correct: str = "every",
        warm_up: float = 0.25,
    ):
        """Store the constants of the paper, by the paper's letters where they are known.

        Args:
            a: First exponent of the constants of the loss (eq. 6).
            b: Second exponent of the constants of the loss (eq. 6).
            strength: Weight of the high-rank term (eq. 10).
            delta: Diagonal of the high-rank term (losses/high_rank.py).
            rank: Form of the high-rank term (losses/high_rank.py).
            gamma: Power of the smoothing (eq. 11); 0: no smoothing.
            rule: Soft target of an unseen cell with score p. "both": (AP p)^gamma; "ap": AP^gamma p.
            rho: Of n images, rho n (1 - AP) unseen cells of a class are corrected to present (sec. III-E).
            kappa: Upper bound: never more than kappa times the marked cells of the class.
            correct: "every": anew after every epoch from the warm-up on; "once": at the end of the warm-up,
                permanently.
            warm_up: Share of the epochs before the first correction.

        Raises:
            ValueError: A choice is unknown, or a number is outside its range.
        """
        check_non_negative(strength=strength, gamma=gamma, kappa=kappa)
        check_positive(delta=delta)
        check_fractions(rho=rho, warm_up=warm_up)
        self.a, self.b = a, b
        self.strength, self.delta, self.rank = strength, delta, check_choice("rank", rank, RANK_FORMS)
        self.gamma, self.rule = gamma, check_choice("rule", rule, SMOOTHING_RULES)
        self.rho, self.kappa, self.warm_up = rho, kappa, warm_up
        self.correct = check_choice("correct", correct, CORRECTION_TIMES)
        self.criterion()  # what makes no sense is refused now, not at the first training

    def criterion(self) -> OPML:
        """Return the OPML loss; `loss` adds soft targets and the high-rank term."""
        return OPML(self.a, self.b)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start as Method does, with the reliability of every class at 0 until there are predictions."""
        super().begin(labels, mask, epochs, generator)
        self.given = self.targets.clone()
        self.reliability = self.targets.new_zeros(labels.shape[1])
        self.first = max(1, round(self.warm_up * epochs))

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch: soft targets from its own scores, and the high-rank term."""
        logits = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
        targets, mask = self.targets[rows], None if self.mask is None else self.mask[rows]
        if self.gamma:
            soft = smooth_targets(torch.sigmoid(logits.detach()), self.reliability, self.gamma, self.rule)
            targets = torch.where(targets == UNSEEN, -soft.to(targets.dtype), targets)
        loss = self.loss_function(logits, targets, mask)
        if self.strength:
            p = torch.sigmoid(logits)
            p = p if mask is None else torch.where(mask, p, 0)
            loss = loss + self.strength * rank_penalty(p, self.delta, self.rank)
        return loss

    def end_epoch(self, epoch: int, predict: Callable[[], Tensor]) -> None:
        """Measure the reliability of each class, and correct labels as scheduled; not after the last epoch."""
        if epoch >= self.total_epochs or not (self.gamma or self.rho):
            return
        probabilities = predict()
        self.reliability = compute_observed_ap(probabilities, self.given, self.mask)
        if self.rho and (epoch == self.first or (self.correct == "every" and epoch > self.first)):
            self.targets = correct_labels(probabilities, self.given, self.reliability, self.rho, self.kappa, self.mask)


def smooth_targets(p: Tensor, reliability: Tensor, gamma: float, rule: str = "both") -> Tensor:
    """Return the soft targets of unseen cells: (B, C) in [0, 1).

    Args:
        p: (B, C) current probabilities.
        reliability: (C,) AP of each class.
        gamma: As in OPMLSP.
        rule: As in OPMLSP.
    """
    soft = (reliability * p) ** gamma if rule == "both" else reliability**gamma * p
    return soft.clamp(max=1 - 1e-6)  # -1 would be a person's word


def compute_observed_ap(probabilities: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the average precision of each class for its marked cells, all others counted as wrong: (C,) float.

    0 for a class without a marked cell.

    Args:
        probabilities: (N, C).
        labels: (N, C), 1 where a cell is marked present.
        mask: (N, C) bool: cells that take part; None: all.
    """
    scores, marked = probabilities.T.cpu().numpy(), (labels >= PRESENT).T.cpu().numpy()
    use = np.ones_like(marked) if mask is None else mask.T.cpu().numpy()
    each = [compute_found_precision(p[rows], p[rows & hits]) for p, hits, rows in zip(scores, marked, use, strict=True)]
    return torch.tensor(each, dtype=torch.float32, device=labels.device)


def compute_found_precision(scores: np.ndarray, positives: np.ndarray) -> float:
    """Return the average precision of the scores `positives` among all `scores`; 0 if there are no positives.

    The result equals metrics.average_precision, in a fifth of the time: only values are sorted.
    """
    if not len(positives):
        return 0.0
    scores, positives = np.sort(scores), np.sort(positives)
    at_least = len(scores) - np.searchsorted(scores, positives)
    return float(np.mean((len(positives) - np.searchsorted(positives, positives)) / at_least))


def correct_labels(
    probabilities: Tensor,
    labels: Tensor,
    reliability: Tensor,
    rho: float,
    kappa: float,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the labels with the likeliest unseen cells of each class set to present (sec. III-E).

    Args:
        probabilities: (N, C) float.
        labels: (N, C) float.
        reliability: (C,) AP of each class.
        rho: floor(rho n (1 - AP)) cells of a class are corrected.
        kappa: At most floor(kappa x the marked cells of the class) are corrected.
        mask: (N, C) bool: cells that may be used, and of which n are counted; None: all.
    """
    usable = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask
    unseen, marked = (labels == UNSEEN) & usable, ((labels >= PRESENT) & usable).sum(0)
    counts = torch.minimum(rho * usable.sum(0) * (1 - reliability), kappa * marked).floor().long()
    chosen = select_lowest(torch.where(unseen, -probabilities, torch.inf), counts) & unseen
    return torch.where(chosen, float(PRESENT), labels)
