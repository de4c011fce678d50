"""OPML for single positives: OPML loss, soft targets, a high-rank term and label correction.

A class's reliability is its average precision (AP) for marked cells, measured per epoch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spmll.labels import PRESENT, UNSEEN
from spmll.losses.base import check_choice, check_fractions, check_non_negative
from spmll.losses.opml import OPML, RANK_FORMS, rank_penalty
from spmll.methods.base import Method, check_positive, search_grid
from spmll.methods.published.ranks import select_lowest
from spmll.methods.training_recipes import OPML_RECIPES

SMOOTHING_RULES = ("both", "ap")
CORRECTION_TIMES = ("every", "once")


@dataclass(eq=False, repr=False)
class OPMLSP(Method):
    """OPML with soft targets, a high-rank term and corrected labels, all constants searched.

    The available text lacks every number. Mean validation mAP of the search: ZLPR 47.7, OPML 49.0, this method
    50.8. Nearly all gain comes from early, frequent correction of many cells (rho 0: 49.1). Smoothing helps only
    if nearly absent. The high-rank term is useless at 0.001 and risky at 0.01.

    Constants have the paper's letters where known.

    Args:
        a: First exponent of the loss (eq. 6).
        b: Second exponent.
        strength: Weight of the high-rank term (eq. 10).
        gamma: Power of smoothing (eq. 11), 0 for none.
        rule: Soft target at score p. "both": (AP p)^gamma. "ap": AP^gamma p.
        rho: rho n (1 - AP) unseen cells per class become present.
        kappa: At most kappa times the marked cells.
        correct: "every" epoch after warm-up, or "once".
        warm_up: Share of epochs before corrections.
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

    a: float = 1.0
    b: float = 2.0
    strength: float = 0.001
    delta: float = 1.0
    rank: str = "logdet"
    gamma: float = 8.0
    rule: str = "both"
    rho: float = 0.3
    kappa: float = 0.5
    correct: str = "every"
    warm_up: float = 0.25

    def __post_init__(self):
        """Validate constants and choices."""
        check_non_negative(strength=self.strength, gamma=self.gamma, kappa=self.kappa)
        check_positive(delta=self.delta)
        check_fractions(rho=self.rho, warm_up=self.warm_up)
        check_choice("rank", self.rank, RANK_FORMS)
        check_choice("rule", self.rule, SMOOTHING_RULES)
        check_choice("correct", self.correct, CORRECTION_TIMES)
        self.criterion()  # what makes no sense is refused now, not at the first training

    def criterion(self) -> OPML:
        """Return the OPML loss without soft targets and high-rank term."""
        return OPML(self.a, self.b)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training in which no class is reliable yet."""
        super().begin(labels, mask, epochs, generator)
        self.given = self.targets.clone()
        self.reliability = self.targets.new_zeros(labels.shape[1])
        self.first = max(1, round(self.warm_up * epochs))

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch with soft targets and the high-rank term."""
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
        """Measure the reliability of each class and correct labels as scheduled, except after the last epoch."""
        if epoch >= self.total_epochs or not (self.gamma or self.rho):
            return
        probabilities = predict()
        self.reliability = compute_observed_ap(probabilities, self.given, self.mask)
        if self.rho and (epoch == self.first or (self.correct == "every" and epoch > self.first)):
            self.targets = correct_labels(probabilities, self.given, self.reliability, self.rho, self.kappa, self.mask)


def smooth_targets(p: Tensor, reliability: Tensor, gamma: float, rule: str = "both") -> Tensor:
    """Return soft targets of unseen cells, (B, C) in [0, 1).

    Args:
        p: (B, C) probabilities.
        reliability: (C,), each class's average precision for marked cells.
        gamma: Power of the smoothing.
        rule: "both" or "ap", see `OPMLSP`.
    """
    soft = (reliability * p) ** gamma if rule == "both" else reliability**gamma * p
    return soft.clamp(max=1 - 1e-6)  # -1 would be a person's word


def compute_observed_ap(probabilities: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return each class's average precision for marked cells, (C,), 0 for classes without marks.

    Args:
        probabilities: (N, C).
        labels: (N, C).
        mask: (N, C), usable cells.
    """
    scores, marked = probabilities.T.cpu().numpy(), (labels >= PRESENT).T.cpu().numpy()
    use = np.ones_like(marked) if mask is None else mask.T.cpu().numpy()
    each = [compute_found_precision(p[rows], p[rows & hits]) for p, hits, rows in zip(scores, marked, use, strict=True)]
    return torch.tensor(each, dtype=torch.float32, device=labels.device)


def compute_found_precision(scores: np.ndarray, positives: np.ndarray) -> float:
    """Return the average precision of a ranking by `scores`, given the scores of its positives (0 without any).

    Five times faster than metrics.average_precision.
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
    """Return labels with the likeliest unseen cells per class set to present (sec. III-E).

    At most floor(rho n (1 - AP)) and floor(kappa x marked) cells.

    Args:
        probabilities: (N, C).
        labels: (N, C).
        reliability: (C,) AP.
        mask: (N, C), usable cells.
    """
    usable = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask
    unseen, marked = (labels == UNSEEN) & usable, ((labels >= PRESENT) & usable).sum(0)
    counts = torch.minimum(rho * usable.sum(0) * (1 - reliability), kappa * marked).floor().long()
    chosen = select_lowest(torch.where(unseen, -probabilities, torch.inf), counts) & unseen
    return torch.where(chosen, float(PRESENT), labels)
