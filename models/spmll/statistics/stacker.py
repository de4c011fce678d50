"""The stacker: combines the scores of two models into one calibrated logit for each cell.

Wolpert, "Stacked generalization", Neural Networks 1992: a logistic regression on the scores of other models. It is
fitted to answers of people by scores of models that had not seen the image; a model's scores for answers it has learned
from are always right. Answered cells are the likely ones, so each is weighted by how often its score occurs among the
cells nobody has answered (Shimodaira 2000, "Improving predictive inference under covariate shift by weighting the
log-likelihood function").

Scores of models from elsewhere (outside_scores.py) are inputs like our own, with a weight that begins small. Where such
a model gives no score its input is 0; a second input is 1 where it gives one, because a detector is silent where it
finds nothing. Each class has a weight of its own, shrunk towards that of all classes: a model that knows birds need not
know fungi, and the effect of random numbers fades with the answers.
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
    """Logits (n, C) of `auto`, nan where it has no model, and of the head trained on answered cells.

    Attributes:
        outside: Inputs (n, C) of each model from elsewhere, nan where it gives no score.
    """

    auto: np.ndarray
    known: np.ndarray
    outside: Sequence[np.ndarray] = ()

    @property
    def mean(self) -> np.ndarray:
        """Return the mean (n, C) of both of our models; the second alone where the first has no model."""
        return np.where(np.isnan(self.auto), self.known, (self.auto + self.known) / 2)

    def __getitem__(self, rows: slice | np.ndarray) -> "Scores":
        """Return the scores of some of the images."""
        return Scores(self.auto[rows], self.known[rows], [inputs[rows] for inputs in self.outside])

    def select_cells(self, rows: np.ndarray, columns: np.ndarray) -> "Scores":
        """Return scores (m, 1) of single cells."""
        auto, known, *outside = (values[rows, columns][:, None] for values in (self.auto, self.known, *self.outside))
        return Scores(auto, known, outside)


@dataclass(frozen=True, eq=False)
class Stacker:
    """A linear function of the inputs of a cell, (6 + 2K,), then a slope and a shift of its class, (C,) each.

    Attributes:
        own: (C, K), each class's addition to the weight of each of K models from elsewhere; None without such models.
    """

    line: np.ndarray
    slopes: np.ndarray
    shifts: np.ndarray
    own: np.ndarray | None = None

    def logits(self, scores: Scores, others: np.ndarray) -> np.ndarray:
        """Return calibrated logits (n, C); others (n, C) are from `count_other_classes`."""
        result = self._apply_line(scores, others)
        result *= self.slopes.astype(result.dtype)
        result += self.shifts.astype(result.dtype)
        for place, inputs in enumerate(scores.outside):
            assert self.own is not None
            result += np.nan_to_num(inputs) * self.own[:, place]
        return result

    def cell_logits(self, scores: Scores, others: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return calibrated logits (n,) of single cells: scores and others (n, 1), columns (n,) the class of each."""
        result = self.slopes[columns] * self._apply_line(scores, others)[:, 0] + self.shifts[columns]
        for place, inputs in enumerate(scores.outside):
            assert self.own is not None
            result += np.nan_to_num(inputs[:, 0]) * self.own[columns, place]
        return result

    def outside_weights(self) -> np.ndarray:
        """Return the weights (C, K) of the inputs of each model from elsewhere in the logit of each class."""
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
    """Return others (n, C) float32, as `count_other_classes`, by the probabilities of the stackers, one after the
        other.

    Args:
        stackers: Each was fitted with the others of the one before, the first with those of the mean of the scores.
        scores: The scores of the images.
        labels: (n, C) int8.
    """
    others = count_other_classes(labels, sigmoid(scores.mean))
    for stacker in stackers:
        others = count_other_classes(labels, sigmoid(stacker.logits(scores, others)))
    return others


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-logits)), of the same float type; scipy's expit takes several times as long."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-logits))


def count_other_classes(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return (n, C) float32, the expected number of other classes in each image besides each class.

    labels are (n, C) int8; unseen cells count with their probability.
    """
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
        held_out: Scores (n, 1) of each answered cell, by models that have not seen its image.
        others: (n, 1), from `count_other_classes`.
        columns: (n,), the class of each cell.
        present: (n,) bool, the answers.
        weights: (n,), how often each answer counts.
        classes: C.
        context_inputs: How many of the inputs from elsewhere, the last ones, are of the context of images
            (image_context.py): their weights begin at 0.
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
    """Return coefficients with the part of their distance from the prior removed that chance explains; same shapes.

    The prior's share of an estimate is precision * variance. The part that answers added has variance (1 - that share)
    * variance if the source is pure noise, and is reduced by CHANCE_VARIANCES times that.
    """
    share = np.clip(precision * variance, 0, 1)
    of_prior = share * prior
    added, chance = fitted - of_prior, CHANCE_VARIANCES * (1 - share) * variance
    return of_prior + added * np.maximum(0, 1 - chance / np.maximum(added * added, 1e-12))


def compute_importance_weights(answered: np.ndarray, unanswered: np.ndarray) -> np.ndarray:
    """Return weights (n,) with which answered scores (n,) are distributed like the unanswered ones (m,).

    Their sum is the equivalent number of equally weighted answers (Kish 1965).
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
    """Return weights (n,) of answers by which all of one group to one class count as one: images of a group look alike.

    Args:
        groups: (n,), the group of each answer's image.
        columns: (n,), the class of each answer.
    """
    _, place, count = np.unique(np.stack([groups, columns]), axis=1, return_inverse=True, return_counts=True)
    return 1 / count[place]


def _build_inputs(scores: Scores, others: np.ndarray) -> list[np.ndarray]:
    """Return the inputs of the linear function, (n, C) each; `known` replaces `auto` where that is nan."""
    auto = np.where(np.isnan(scores.auto), scores.known, scores.auto)
    tail = np.minimum(scores.mean - TAIL_LOGIT, 0)
    outside = [
        values
        for inputs in scores.outside
        for values in (np.nan_to_num(inputs), (~np.isnan(inputs)).astype(np.float32))
    ]
    return [auto, scores.known, np.minimum(others, 1), np.maximum(others - 1, 0), tail, *outside]
