"""Quality of rankings and of probabilities. Numpy only, so that pages can use it.

Scores that are nan (a class without a model) rank behind all others. They are never left out: a positive that no model
can find is missed.
"""

from dataclasses import dataclass

import numpy as np

from spmll.labels import PRESENT, UNSEEN


@dataclass(frozen=True)
class HiddenAP:
    """Average precision of hidden positives."""

    cells: float  # of one ranking of all unseen cells, as in suggestions of all classes
    classes: float  # mean over the classes with hidden positives


def average_precision(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return the area under the precision-recall steps, sum of (R_n - R_(n-1)) P_n; nan if nothing is true.

    There is no interpolation. The result equals scikit-learn's average_precision_score.

    Args:
        scores: (n,) float, higher is more likely; equal scores form one step, so their order does not matter.
        truth: (n,) bool or 0/1.

    Raises:
        ValueError: The lengths differ.
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
    """Return the average precision that ASL, Hill and SPLC report: precision at every hit, summed, over (hits + 1e-8).

    Unlike in `average_precision`, every image has a rank of its own, so that among equal scores the order decides. The
    published code sorts upwards and reverses the result; here, too, the last of equal ones therefore comes first, on
    every machine (theirs leaves the order of more than 16 scores to the sorting algorithm). Without equal scores, the
    two differ by the 1e-8 only.

    Args:
        scores: (n,) float, higher is more likely; nan ranks behind all others.
        truth: (n,) bool or 0/1.

    Returns:
        0 where nothing is true, nan without a single score.

    Raises:
        ValueError: The lengths differ.

    Source: helper_functions.py of Ben-Baruch et al., "Asymmetric Loss", ICCV 2021, taken over by Zhang et al., "Simple
    and Robust Loss Design for Multi-Label Learning with Missing Labels", 2021.
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
    """Return the mean over classes of `average_precision`, in [0, 1]; nan if no class has a positive.

    Args:
        scores: (N, C).
        truth: (N, C) bool or 0/1.
        mask: (N, C) bool, True where a cell takes part; None: all.
        empty_as_zero: Treatment of a class without positives: False leaves it out, True counts it as 0, as the
            published code of Cole et al., EM/APL, GR, Large Loss and LAGC does (use it to compare with their tables).
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
    """Return the average precision of the positives that nobody has marked, among the unseen cells.

    Both figures are nan when nothing is hidden.

    Args:
        probabilities: (N, C) float.
        labels: (N, C) int8, the known labels; only cells that are 0 (not looked at) are ranked.
        truth: (N, C) bool or 0/1, the true labels.
    """
    probabilities, truth = check_same_shape("hidden_average_precision", probabilities, truth)
    labels = check_same_shape("hidden_average_precision", labels, truth)[0]
    unseen = labels == UNSEEN
    return HiddenAP(
        cells=average_precision(probabilities[unseen], truth[unseen]),
        classes=mean_average_precision(probabilities, truth, unseen),
    )


def precision_at(scores: np.ndarray, truth: np.ndarray, k: int) -> float:
    """Return the share of true cells among the k highest scores; among all if there are fewer; nan without scores.

    Args:
        scores: (n,); equal scores are taken in the order given.
        truth: (n,) bool or 0/1.
        k: The number of scores, at least 1.

    Raises:
        ValueError: The lengths differ or k is below 1.
    """
    if k < 1:
        raise ValueError(f"k = {k}; the precision of the first k needs at least 1.")
    scores, truth = check_ranking("precision_at", scores, truth)
    if not len(scores):
        return float("nan")
    return float(truth[np.argsort(-scores, kind="stable")[:k]].mean())


def precision_and_recall_at(probabilities: np.ndarray, truth: np.ndarray, k: int) -> tuple[float, float]:
    """Return how many of the k most probable classes of an image are true, and how many of its classes these are.

    Args:
        probabilities: (N, C); equal ones are taken in the order of the classes, nan ranks last.
        truth: (N, C) bool or 0/1.
        k: The number of classes, at least 1; all of them if there are fewer.

    Returns:
        The mean over images of the share of true ones among the first k, and the mean over images with a true class of
        the share of these that are among the first k; nan without such an image.

    Raises:
        ValueError: The shapes differ or k is below 1.
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
    """Return the area between the distribution functions of two samples of numbers; nan if one of them is empty.

    It is the mean distance that the numbers of one sample have to be moved to become the other (the first Wasserstein
    distance).

    Args:
        first: (n,) float.
        second: (m,) float.
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
    """Return the number of rare classes, and of those whose probabilities add up to the truth within a factor of 2.

    A class is rare if it is marked on at least one image and on fewer than `marks`. Only the sum over all images of a
    class is judged: it is what plans and stopping rules are made from.

    Args:
        probabilities: (N, C), in [0, 1].
        labels: (N, C) int8, the known labels.
        truth: (N, C) bool or 0/1, the true labels.
        marks: As above.

    Raises:
        ValueError: The shapes differ.
    """
    probabilities, truth = check_same_shape("honest_totals", probabilities, truth)
    labels = check_same_shape("honest_totals", labels, truth)[0]
    known = (labels == PRESENT).sum(0)
    rare = (known > 0) & (known < marks)
    ratio = probabilities[:, rare].sum(0, dtype=np.float64) / (truth[:, rare] > 0).sum(0)
    return int(rare.sum()), int(((ratio >= 0.5) & (ratio <= 2)).sum())


def expected_calibration_error(probabilities: np.ndarray, truth: np.ndarray, bins: int = 15) -> float:
    """Return the average gap between a probability and how often it comes true, in [0, 1]; nan without a probability.

    Args:
        probabilities: Any shape, in [0, 1]; nan is left out here, since no probability was claimed.
        truth: The same shape, bool or 0/1.
        bins: Number of bins of equal width; in each, the mean probability is compared with the share of true cells.

    Raises:
        ValueError: The shapes differ, a probability is outside [0, 1], or `bins` is below 1.

    Source: Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, eq. 3, on every cell as a binary
    forecast.
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
    """Return the probability from which unknown cells must count as present for the largest expected F1 of all labels.

    The best threshold is half of the F1 it reaches, so below 0.5 wherever labels are far from complete: Lipton, Elkan
    and Naryanaswamy, "Optimal Thresholding of Classifiers to Maximize F1 Measure", ECML PKDD 2014.

    Args:
        present: Number of cells that are known to be present.
        chances: (n,) calibrated probabilities of the unknown cells, in any order; nan (no model) is never counted.

    Returns:
        A probability; 1 where any further positive would lower the F1.
    """
    ranked = np.sort(chances[~np.isnan(chances)].astype(np.float64))[::-1]
    hits = present + np.concatenate([[0.0], np.cumsum(ranked)])
    filled = present + np.arange(len(hits))
    best = int(np.argmax(2 * hits / np.maximum(filled + hits[-1], 1e-9)))
    return float(ranked[best - 1]) if best else 1.0


def find_confident_threshold(
    chances: np.ndarray, expected_error: float, worst: float, counts: np.ndarray | None = None
) -> float:
    """Return the lowest threshold with few enough expected errors among the cells at or above it; nan if there is none.

    The threshold is one of the chances: equal ones are on the same side.

    Args:
        chances: (n,) calibrated probabilities that a label would be right, in any order; nan (no model) is never
            counted.
        expected_error: Largest mean of 1 - chance over the cells at or above the threshold.
        worst: Largest 1 - chance of any of them: many certain cells do not make up for a guess.
        counts: (n,) number of cells with each chance, so that millions of cells need only their different chances;
            None: one each.
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
    """Return scores as float64, nan replaced by -inf, and truth as bool. Raise ValueError unless both are (n,)."""
    scores, truth = check_same_shape(caller, scores, truth)
    if scores.ndim != 1:
        raise ValueError(f"{caller} takes one ranking, (n,); these are {scores.shape}. Choose cells with a mask first.")
    scores = scores.astype(np.float64)
    return np.where(np.isnan(scores), -np.inf, scores), truth > 0


def check_same_shape(caller: str, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both as arrays. Raise ValueError when their shapes differ."""
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape:
        raise ValueError(f"{caller} was given {first.shape} beside {second.shape}; both must describe the same cells.")
    return first, second
