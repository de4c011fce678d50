"""The stacker, which combines model scores into one calibrated logit per cell.

A logistic regression (Wolpert 1992) on held-out scores of answered cells, weighted to the score distribution
of unanswered ones (Shimodaira 2000). An outside model adds its score and an indicator that it exists, with
small prior weights and per-class weights shrunk towards the common one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spmll.labels import PRESENT, UNSEEN
from spmll.statistics.logistic import fit_logistic
from spmll.statistics.outside_scores import PRIOR_WEIGHT

TAIL_LOGIT = -3.5  # logit below which a score may be worth more than it says
SCORE_BINS = 12  # of scores, in which answered and unanswered cells are compared
MIN_IMPORTANCE, MAX_IMPORTANCE = 0.1, 10.0  # of importance weights
# Of `auto`, of the answered-cell head, one other class on the image, more than one, the tail, and a shift:
PRIOR_MEAN = np.array([0.5, 0.5, 0.0, 0.0, -0.3, 0.0])
# Other classes begin with almost no weight: what a few hundred answers seemed to show of them was mostly chance
# (docs/experiments.md, "`auto`").
PRIOR_PRECISION = np.array([2.0, 2.0, 100.0, 100.0, 2.0, 1.0])
# Of a class's own slope around 1 and shift around 0. Fixed, not estimated from how much classes differ as in
# calibration.py: while grids of one class after another are answered, that estimate is large, and every class would
# follow its newest grids up and down.
CLASS_PRECISION = np.array([16.0, 4.0])
MIN_SLOPE = 0.1
# Of a model from elsewhere: its input, and whether it says anything; then of a class's own departure from the first.
OUTSIDE_PRECISION = np.array([4.0, 2.0])
OUTSIDE_CLASS_PRECISION = 2.0
CHANCE_VARIANCES = 2.0  # variances that the square of a weight must exceed before it counts


@dataclass(frozen=True, eq=False)
class Scores:
    """The stacker's inputs: logits of n images by several models.

    Attributes:
        auto: (n, C), by `auto`'s ensemble, or nan.
        known: (n, C), by the answered-cell head.
        outside: (n, C) per outside model, or nan.
    """

    auto: np.ndarray
    known: np.ndarray
    outside: Sequence[np.ndarray] = ()

    @property
    def mean(self) -> np.ndarray:
        """Return the mean (n, C) of `auto` and `known`, or `known` where `auto` is nan."""
        return np.where(np.isnan(self.auto), self.known, (self.auto + self.known) / 2)

    def __getitem__(self, rows: slice | np.ndarray) -> "Scores":
        return Scores(self.auto[rows], self.known[rows], [inputs[rows] for inputs in self.outside])

    def select_cells(self, rows: np.ndarray, columns: np.ndarray) -> "Scores":
        """Return the scores (m, 1) of single cells, given by row and column."""
        auto, known, *outside = (values[rows, columns][:, None] for values in (self.auto, self.known, *self.outside))
        return Scores(auto, known, outside)


@dataclass(frozen=True, eq=False)
class Stacker:
    """A fitted stacker: a linear function of a cell's inputs, then slope and shift per class.

    Attributes:
        line: (6 + 2K,), weights for K outside models.
        slopes, shifts: (C,).
        own: (C, K), additional class weights of outside models, or None.
    """

    line: np.ndarray
    slopes: np.ndarray
    shifts: np.ndarray
    own: np.ndarray | None = None

    def logits(self, scores: Scores, others: np.ndarray) -> np.ndarray:
        """Return calibrated logits (n, C), with `others` from `count_other_classes`."""
        result = self._apply_line(scores, others)
        result *= self.slopes.astype(result.dtype)
        result += self.shifts.astype(result.dtype)
        for place, inputs in enumerate(scores.outside):
            assert self.own is not None
            result += np.nan_to_num(inputs) * self.own[:, place]
        return result

    def cell_logits(self, scores: Scores, others: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return calibrated logits (n,) of cells of classes `columns`."""
        result = self.slopes[columns] * self._apply_line(scores, others)[:, 0] + self.shifts[columns]
        for place, inputs in enumerate(scores.outside):
            assert self.own is not None
            result += np.nan_to_num(inputs[:, 0]) * self.own[columns, place]
        return result

    def outside_weights(self) -> np.ndarray:
        """Return the weight of each outside model in each class, (C, K)."""
        if self.own is None:
            return np.zeros((len(self.slopes), 0))
        return self.slopes[:, None] * self.line[None, 5:-1:2] + self.own

    def _apply_line(self, scores: Scores, others: np.ndarray) -> np.ndarray:
        # Plain numbers, so that float32 scores stay float32.
        *weights, shift = self.line.tolist()
        result = np.full(scores.known.shape, shift, scores.known.dtype)
        for values, weight in zip(_build_inputs(scores, others), weights, strict=True):
            result += weight * values
        return result


def estimate_other_classes(stackers: Sequence[Stacker], scores: Scores, labels: np.ndarray) -> np.ndarray:
    """Return the expected number of other classes per cell (n, C), refined by successive stackers.

    Args:
        stackers: Each fitted with its predecessor's numbers, the first with those of mean scores.
        labels: (n, C) int8.
    """
    others = count_other_classes(labels, sigmoid(scores.mean))
    for stacker in stackers:
        others = count_other_classes(labels, sigmoid(stacker.logits(scores, others)))
    return others


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-logits)), several times faster than scipy's expit."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-logits))


def count_other_classes(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return the expected number of other present classes in each cell's image, (n, C) float32."""
    present = np.where(labels == UNSEEN, probabilities, labels == PRESENT).astype(np.float32)
    return present.sum(1, keepdims=True) - present


def fit_stacker(
    held_out: Scores,
    others: np.ndarray,
    columns: np.ndarray,
    present: np.ndarray,
    weights: np.ndarray,
    classes: int,
    context_inputs: int = 0,
) -> Stacker:
    """Fit a stacker to unbiased answers.

    Args:
        held_out: (n, 1) scores by models that have not seen the image.
        others: (n, 1), of `count_other_classes`.
        columns: (n,), classes.
        present: (n,), answers.
        weights: (n,).
        context_inputs: Number of last `outside` inputs that are context, with prior weight 0.
    """
    inputs = np.column_stack([*(values[:, 0] for values in _build_inputs(held_out, others)), np.ones(len(columns))])
    outside = len(held_out.outside)
    models = outside - context_inputs
    of_outside = np.concatenate([np.tile([PRIOR_WEIGHT / max(models, 1), 0.0], models), np.zeros(2 * context_inputs)])
    prior = np.concatenate([PRIOR_MEAN[:-1], of_outside, PRIOR_MEAN[-1:]])
    precision = np.concatenate([PRIOR_PRECISION[:-1], np.tile(OUTSIDE_PRECISION, outside), PRIOR_PRECISION[-1:]])
    fit = fit_logistic(inputs, present, prior, precision, weights=weights)
    line, of_sources = fit.coefficients[0], slice(len(PRIOR_MEAN) - 1, -1)
    variance = np.linalg.inv(fit.information[0]).diagonal()
    line[of_sources] = _shrink_chance_part(line, prior, precision, variance)[of_sources]
    # Slopes and shifts of the classes, drawn towards 1 and 0 (Platt 1999, with a Gaussian prior).
    by_class = np.column_stack(
        [inputs @ line, np.ones(len(columns)), *(np.nan_to_num(values[:, 0]) for values in held_out.outside)]
    )
    mean = np.tile([1.0, 0.0, *[0.0] * outside], (classes, 1))
    of_class = np.concatenate([CLASS_PRECISION, np.full(outside, OUTSIDE_CLASS_PRECISION)])
    fit = fit_logistic(by_class, present, mean, of_class, weights=weights, groups=columns)
    own = fit.coefficients
    if outside:
        variance = np.linalg.inv(fit.information).diagonal(axis1=1, axis2=2)
        own[:, 2:] = _shrink_chance_part(own, mean, of_class, variance)[:, 2:]
    return Stacker(line, np.maximum(own[:, 0], MIN_SLOPE), own[:, 1], own[:, 2:] if outside else None)


def _shrink_chance_part(
    fitted: np.ndarray, prior: np.ndarray, precision: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """Reduce a coefficient's distance from its prior by the part that chance explains (CHANCE_VARIANCES)."""
    share = np.clip(precision * variance, 0, 1)
    of_prior = share * prior
    added, chance = fitted - of_prior, CHANCE_VARIANCES * (1 - share) * variance
    return of_prior + added * np.maximum(0, 1 - chance / np.maximum(added * added, 1e-12))


def compute_importance_weights(answered: np.ndarray, unanswered: np.ndarray) -> np.ndarray:
    """Return weights (n,) that give answered scores the distribution of unanswered ones.

    They sum to the effective number of answers (Kish 1965).
    """
    if not len(unanswered):
        return np.ones(len(answered))
    edges = np.quantile(unanswered, np.arange(1, SCORE_BINS) / SCORE_BINS)
    places = np.searchsorted(edges, answered)
    of_answered = np.bincount(places, minlength=SCORE_BINS) / len(answered)
    of_unanswered = np.bincount(np.searchsorted(edges, unanswered), minlength=SCORE_BINS) / len(unanswered)
    weights = np.clip((of_unanswered / np.maximum(of_answered, 1e-9))[places], MIN_IMPORTANCE, MAX_IMPORTANCE)
    return weights * weights.sum() / (weights * weights).sum()


def compute_group_weights(groups: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return weights (n,) with which all answers of a group to a class count as one answer."""
    _, place, count = np.unique(np.stack([groups, columns]), axis=1, return_inverse=True, return_counts=True)
    return 1 / count[place]


def _build_inputs(scores: Scores, others: np.ndarray) -> list[np.ndarray]:
    """Return the inputs of the linear function, (n, C) each. Missing `auto` scores are replaced by `known`."""
    auto = np.where(np.isnan(scores.auto), scores.known, scores.auto)
    tail = np.minimum(scores.mean - TAIL_LOGIT, 0)
    outside = [
        values
        for inputs in scores.outside
        for values in (np.nan_to_num(inputs), (~np.isnan(inputs)).astype(np.float32))
    ]
    return [auto, scores.known, np.minimum(others, 1), np.maximum(others - 1, 0), tail, *outside]
