"""Comparison of two scorings by a paired bootstrap over images or groups.

Efron and Tibshirani 1993, chapter 13, paired as in Koehn, EMNLP 2004.
"""

from dataclasses import dataclass

import numpy as np

from spmll.statistics.metrics import check_same_shape

BOOTSTRAP_DRAWS = 1000
TAIL_SHARE = 0.025  # left out at either end: an interval of 95 %
MIN_ANSWERS_PER_STATE = 3  # answers of either state that a class needs to be judged


@dataclass(frozen=True)
class Difference:
    """A figure of two scorings, with a 95% interval of their difference."""

    first: float
    second: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """Return the figure of the second scoring minus that of the first."""
        return self.second - self.first


@dataclass(frozen=True)
class Comparison:
    """Two scorings compared on the same answers.

    Attributes:
        ap: Mean average precision.
        log_loss: Log loss per answered cell, in nats.
    """

    ap: Difference
    log_loss: Difference
    images: int
    answers: int
    classes: int

    @property
    def is_better(self) -> bool:
        """Return whether the second scoring ranks better and its log loss is not worse (95% confidence)."""
        return self.ap.low > 0 and self.log_loss.low <= 0


def compare_scorings(
    first: np.ndarray,
    second: np.ndarray,
    labels: np.ndarray,
    seed: int = 0,
    draws: int = BOOTSTRAP_DRAWS,
    groups: np.ndarray | None = None,
) -> Comparison:
    """Compare two scorings of N images.

    Args:
        first: (N, C) probabilities.
        second: (N, C) probabilities.
        labels: (N, C), 1 present, -1 absent, 0 unanswered. Classes need MIN_ANSWERS_PER_STATE of either.
        groups: (N,) from 0, resampled together, or None.

    Raises:
        ValueError: Shapes differ or no class can be judged.
    """
    first, labels = check_same_shape("compare", first, labels)
    second, _ = check_same_shape("compare", second, labels)
    first, second = (np.clip(np.nan_to_num(scores, nan=1e-6), 1e-6, 1 - 1e-6) for scores in (first, second))
    judged = np.flatnonzero(
        ((labels > 0).sum(0) >= MIN_ANSWERS_PER_STATE) & ((labels < 0).sum(0) >= MIN_ANSWERS_PER_STATE)
    )
    if not len(judged):
        raise ValueError(f"No class has {MIN_ANSWERS_PER_STATE} answers of either state: nothing can be compared.")
    known = labels[:, judged] != 0
    images = np.flatnonzero(known.any(1))
    first, second, labels = (array[images][:, judged] for array in (first, second, labels))
    random = np.random.default_rng(seed)
    of_image = np.arange(len(images)) if groups is None else np.unique(groups[images], return_inverse=True)[1]
    units = int(of_image.max()) + 1
    weights = random.multinomial(units, np.full(units, 1 / units), draws).astype(np.float64)[:, of_image]
    weights = np.concatenate([np.ones((1, len(images))), weights])  # the first: as it is
    ap, losses = (
        np.stack([figure(s, labels, weights) for s in (first, second)])
        for figure in (_compute_mean_ap, _compute_log_loss)
    )
    return Comparison(
        _summarize_difference(ap), _summarize_difference(losses), len(images), int((labels != 0).sum()), len(judged)
    )


def _summarize_difference(figures: np.ndarray) -> Difference:
    """Return the Difference of figures (2, 1 + draws), whose first column is of all images and not drawn."""
    differences = figures[1, 1:] - figures[0, 1:]
    low, high = np.nanquantile(differences, [TAIL_SHARE, 1 - TAIL_SHARE])
    return Difference(float(figures[0, 0]), float(figures[1, 0]), float(low), float(high))


def _compute_mean_ap(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return mean average precisions (draws,), without classes whose positives were not drawn."""
    each = np.full((labels.shape[1], len(weights)), np.nan)
    for column in range(labels.shape[1]):
        answered = np.flatnonzero(labels[:, column])
        order = answered[np.argsort(-scores[answered, column], kind="stable")]
        drawn = weights[:, order]
        hits = drawn * (labels[order, column] > 0)
        precision = np.cumsum(hits, 1) / np.maximum(np.cumsum(drawn, 1), 1)
        positives = hits.sum(1)
        each[column] = np.where(positives > 0, (hits * precision).sum(1) / np.maximum(positives, 1), np.nan)
    return np.nanmean(each, 0)


def _compute_log_loss(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    costs = -np.log(np.where(labels > 0, scores, 1 - scores)) * (labels != 0)
    return weights @ costs.sum(1) / np.maximum(weights @ (labels != 0).sum(1), 1)
