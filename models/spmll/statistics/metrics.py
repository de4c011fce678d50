"""Quality of rankings and probabilities, on numpy only. nan scores rank last and are never dropped."""

from dataclasses import dataclass

import numpy as np

from spmll.labels import PRESENT, UNSEEN


@dataclass(frozen=True)
class HiddenAP:
    """The average precision of positives that were not marked (hidden), in two versions."""

    cells: float  # of one ranking of all unseen cells, as in suggestions of all classes
    classes: float  # mean over the classes with hidden positives


def average_precision(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return the average precision, sum of (R_n - R_(n-1)) P_n, nan without positives.

    Equals scikit-learn's average_precision_score.

    Args:
        scores: (n,). Equal scores form one step.
        truth: (n,) bool or 0/1.
    """
    scores, truth = check_ranking("average_precision", scores, truth)
    positives = int(truth.sum())
    if positives == 0:
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    scores, hits = scores[order], np.cumsum(truth[order])
    # Compared, not subtracted: all that rank behind (-inf) are equal, but their difference is nan.
    steps = np.append(np.flatnonzero(scores[1:] != scores[:-1]), len(scores) - 1)
    precision = hits[steps] / (steps + 1)
    return float(np.sum(np.diff(hits[steps], prepend=0) * precision) / positives)


def asl_average_precision(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return the average precision as ASL, Hill and SPLC compute it: summed precision at hits / (hits + 1e-8).

    Every image has its own rank, and the last of equal scores comes first, as published (Ben-Baruch et al., ICCV 2021,
    Zhang et al. 2021).

    Args:
        scores: (n,), nan last.
        truth: (n,) bool or 0/1.

    Returns:
        0 without positives, nan without scores.
    """
    scores, truth = check_ranking("asl_average_precision", scores, truth)
    if not len(scores):
        return float("nan")
    hits = truth[np.argsort(scores, kind="stable")[::-1]]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].sum() / (hits.sum() + 1e-8))


def mean_average_precision(
    scores: np.ndarray, truth: np.ndarray, mask: np.ndarray | None = None, *, empty_as_zero: bool = False
) -> float:
    """Return the mean `average_precision` over classes, nan without positives.

    Args:
        scores: (N, C).
        truth: (N, C).
        mask: (N, C), used cells.
        empty_as_zero: Count classes without positives as 0, as in the tables of Cole et al., EM/APL, GR, Large
            Loss and LAGC.
    """
    scores, truth = check_same_shape("mean_average_precision", scores, truth)
    mask = np.ones(truth.shape, bool) if mask is None else check_same_shape("mean_average_precision", mask, truth)[0]
    each = [
        average_precision(scores[use, column], truth[use, column])
        for column, use in enumerate(np.asarray(mask, bool).T)
    ]
    values = np.nan_to_num(each, nan=0.0) if empty_as_zero else np.array([v for v in each if not np.isnan(v)])
    return float(np.mean(values)) if len(values) else float("nan")


def hidden_average_precision(probabilities: np.ndarray, labels: np.ndarray, truth: np.ndarray) -> HiddenAP:
    """Return the average precision of unmarked positives among unseen cells, nan without any.

    Args:
        probabilities: (N, C).
        labels: (N, C), known labels.
        truth: (N, C), true labels.
    """
    probabilities, truth = check_same_shape("hidden_average_precision", probabilities, truth)
    labels = check_same_shape("hidden_average_precision", labels, truth)[0]
    unseen = labels == UNSEEN
    return HiddenAP(
        cells=average_precision(probabilities[unseen], truth[unseen]),
        classes=mean_average_precision(probabilities, truth, unseen),
    )


def precision_at(scores: np.ndarray, truth: np.ndarray, k: int) -> float:
    """Return the true share of the k highest scores, nan without scores.

    Args:
        scores: (n,), ties in order.
        truth: (n,) bool or 0/1.
        k: At least 1, else ValueError.
    """
    if k < 1:
        raise ValueError(f"k = {k}; the precision of the first k needs at least 1.")
    scores, truth = check_ranking("precision_at", scores, truth)
    if not len(scores):
        return float("nan")
    return float(truth[np.argsort(-scores, kind="stable")[:k]].mean())


def precision_and_recall_at(probabilities: np.ndarray, truth: np.ndarray, k: int) -> tuple[float, float]:
    """Return mean precision and recall of each image's k most probable classes.

    Recall averages images with a true class, nan without any.

    Args:
        probabilities: (N, C), ties in order, nan last.
        truth: (N, C) bool or 0/1.
        k: At least 1, else ValueError.
    """
    if k < 1:
        raise ValueError(f"k = {k}; the precision of the first k classes needs at least 1.")
    scores, truth = check_same_shape("precision_and_recall_at", probabilities, truth)
    truth = truth.astype(bool)
    if not truth.size:
        return float("nan"), float("nan")
    first = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    hits = np.take_along_axis(truth, first, axis=1).sum(1)
    shown = truth.sum(1)
    recall = float(np.mean(hits[shown > 0] / shown[shown > 0])) if shown.any() else float("nan")
    return float(np.mean(hits / first.shape[1])), recall


def wasserstein_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the first Wasserstein distance of two samples, nan if one is empty.

    Args:
        first: (n,).
        second: (m,).
    """
    first, second = np.sort(np.asarray(first, float)), np.sort(np.asarray(second, float))
    if not (len(first) and len(second)):
        return float("nan")
    steps = np.sort(np.concatenate([first, second]))
    below = [np.searchsorted(sample, steps[:-1], side="right") / len(sample) for sample in (first, second)]
    return float(np.sum(np.abs(below[0] - below[1]) * np.diff(steps)))


def count_honest_totals(
    probabilities: np.ndarray, labels: np.ndarray, truth: np.ndarray, marks: int = 10
) -> tuple[int, int]:
    """Return the number of rare classes, and of those whose sum of probabilities is plausible.

    Rare means marked on at least one and fewer than `marks` images, plausible within a factor 2 of the truth.

    Args:
        probabilities: (N, C).
        labels: (N, C), known labels.
        truth: (N, C), true labels.
    """
    probabilities, truth = check_same_shape("honest_totals", probabilities, truth)
    labels = check_same_shape("honest_totals", labels, truth)[0]
    known = (labels == PRESENT).sum(0)
    rare = (known > 0) & (known < marks)
    ratio = probabilities[:, rare].sum(0, dtype=np.float64) / (truth[:, rare] > 0).sum(0)
    return int(rare.sum()), int(((ratio >= 0.5) & (ratio <= 2)).sum())


def expected_calibration_error(probabilities: np.ndarray, truth: np.ndarray, bins: int = 15) -> float:
    """Return the mean gap between probability and frequency (Guo et al., ICML 2017, eq. 3).

    Args:
        probabilities: Any shape, in [0, 1]. nan is skipped.
        truth: The same shape.
        bins: Number of equal bins.

    Raises:
        ValueError: An argument is invalid.
    """
    probabilities, truth = check_same_shape("expected_calibration_error", probabilities, truth)
    claimed = ~np.isnan(probabilities)
    probabilities, truth = probabilities[claimed].astype(np.float64), truth[claimed] > 0
    if bins < 1:
        raise ValueError(f"There must be at least one bin, not {bins}.")
    if not len(probabilities):
        return float("nan")
    if probabilities.min() < 0 or probabilities.max() > 1:
        raise ValueError(
            f"Probabilities run from {probabilities.min():g} to {probabilities.max():g}; they must be in [0, 1]. "
            "Are these logits?"
        )
    place = np.minimum((probabilities * bins).astype(int), bins - 1)
    gaps = np.bincount(place, weights=probabilities - truth, minlength=bins)
    return float(np.abs(gaps).sum() / len(probabilities))


def find_best_threshold(present: int, chances: np.ndarray) -> float:
    """Return the threshold on unknown cells with the largest expected F1 of all labels.

    It is half of the F1 it reaches (Lipton et al., ECML PKDD 2014), 1 if no cell should be added.

    Args:
        present: Cells known to be present.
        chances: (n,), calibrated, nan never counted.
    """
    ranked = np.sort(chances[~np.isnan(chances)].astype(np.float64))[::-1]
    hits = present + np.concatenate([[0.0], np.cumsum(ranked)])
    filled = present + np.arange(len(hits))
    best = int(np.argmax(2 * hits / np.maximum(filled + hits[-1], 1e-9)))
    return float(ranked[best - 1]) if best else 1.0


def find_confident_threshold(
    chances: np.ndarray, expected_error: float, worst: float, counts: np.ndarray | None = None
) -> float:
    """Return the lowest threshold with acceptable expected errors, or nan.

    Args:
        chances: (n,), calibrated, nan never counted.
        expected_error: Largest mean of 1 - chance at or above the threshold.
        worst: Largest 1 - chance of any single cell at or above it.
        counts: (n,), cells per chance, by default one.
    """
    counts = np.ones(len(chances), np.int64) if counts is None else counts
    known = ~np.isnan(chances) & (counts > 0)
    order = np.argsort(-chances[known].astype(np.float64))
    ranked, cells = chances[known].astype(np.float64)[order], counts[known][order]
    wrong = 1 - ranked
    # Both conditions hold up to one place and nowhere after it, as the mean of an increasing sequence increases, too.
    good = (np.cumsum(wrong * cells) <= expected_error * np.cumsum(cells) + 1e-12) & (wrong <= worst + 1e-12)
    last = np.append(ranked[1:] != ranked[:-1], True) if len(ranked) else np.zeros(0, bool)
    fits = np.flatnonzero(good & last)
    return float(ranked[fits[-1]]) if len(fits) else float("nan")


def check_ranking(caller: str, scores: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores as floats with nan as -inf, and truth as bool, or raise ValueError that names the caller."""
    scores, truth = check_same_shape(caller, scores, truth)
    if scores.ndim != 1:
        raise ValueError(f"{caller} takes one ranking, (n,); these are {scores.shape}. Choose cells with a mask first.")
    scores = scores.astype(np.float64)
    return np.where(np.isnan(scores), -np.inf, scores), truth > 0


def check_same_shape(caller: str, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays, or raise ValueError that names the caller if their shapes differ."""
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape:
        raise ValueError(f"{caller} was given {first.shape} beside {second.shape}; both must describe the same cells.")
    return first, second
