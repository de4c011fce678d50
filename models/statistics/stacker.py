"""The stacker: combines the scores of two models into one calibrated logit for each cell.

Wolpert, "Stacked generalization", Neural Networks 1992: a logistic regression on the scores of other models. It is
fitted to answers of people by scores of models that had not seen the image; scores of answers that were learned from
are always right. Answered cells are the likely ones, so each is weighted by how often its score occurs among the cells
nobody has answered (Shimodaira 2000, "Improving predictive inference under covariate shift by weighting the
log-likelihood function").
"""

from dataclasses import dataclass

import numpy as np

from models.labels import PRESENT, UNSEEN
from models.statistics.logistic import fit_logistic

TAIL = -3.5  # logit below which a score may be worth more than it says
BINS = 12  # of scores, in which answered and unanswered cells are compared
SMALLEST, LARGEST = 0.1, 10.0  # of importance weights
# Of `auto`, of the answered-cell head, one other class on the image, more than one, the tail, and a shift:
PRIOR_MEAN = np.array([0.5, 0.5, 0.0, 0.0, -0.3, 0.0])
PRIOR_PRECISION = np.array([2.0, 2.0, 2.0, 2.0, 2.0, 1.0])
# Of a class's own slope around 1 and shift around 0. Fixed, not estimated from how much classes differ as in
# calibration.py: while grids of one class after another are answered, that estimate is large, and every class would
# follow its newest grids up and down.
CLASS_PRECISION = np.array([8.0, 1.0])
LEAST_SLOPE = 0.1


@dataclass(frozen=True, eq=False)
class Scores:
    """Logits (n, C) of `auto`, nan where it has no model, and of the head trained on answered cells."""

    auto: np.ndarray
    known: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """(n, C) of both; of the second alone where the first has no model."""
        return np.where(np.isnan(self.auto), self.known, (self.auto + self.known) / 2)


@dataclass(frozen=True, eq=False)
class Stacker:
    """A line through the inputs of a cell, (6,), then a slope and a shift of its class, (C,) each."""

    line: np.ndarray
    slopes: np.ndarray
    shifts: np.ndarray

    def logits(self, scores: Scores, others: np.ndarray) -> np.ndarray:
        """(n, C) calibrated logits; others (n, C) how many other classes are on the image, from `other_classes`."""
        return self.slopes * (_inputs(scores, others) @ self.line[:-1] + self.line[-1]) + self.shifts

    def logits_of_cells(self, scores: Scores, others: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(n,) the same of single cells: scores and others (n, 1), columns (n,) the class of each."""
        values = (_inputs(scores, others) @ self.line[:-1] + self.line[-1])[:, 0]
        return self.slopes[columns] * values + self.shifts[columns]


def other_classes(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """(n, C) float32: how many classes each image holds besides this one; labels (n, C) int8, else probabilities."""
    present = np.where(labels == UNSEEN, probabilities, labels == PRESENT).astype(np.float32)
    return present.sum(1, keepdims=True) - present


def fit_stacker(
    held_out: Scores, others: np.ndarray, columns: np.ndarray, present: np.ndarray, weights: np.ndarray, classes: int
) -> Stacker:
    """Fit it to unbiased answers.

    held_out   scores (n, 1) of each answered cell, by models that have not seen its image
    others     (n, 1), from `other_classes`
    columns    (n,) the class of each cell; present (n,) bool the answers; weights (n,) how often each counts
    """
    inputs = np.column_stack([_inputs(held_out, others)[:, 0], np.ones(len(columns))])
    line = fit_logistic(inputs, present, PRIOR_MEAN, PRIOR_PRECISION, weights=weights).coefficients[0]
    # Slopes and shifts of the classes, drawn towards 1 and 0 (Platt 1999, with a Gaussian prior).
    by_class, mean = np.column_stack([inputs @ line, np.ones(len(columns))]), np.tile([1.0, 0.0], (classes, 1))
    own = fit_logistic(by_class, present, mean, CLASS_PRECISION, weights=weights, groups=columns).coefficients
    return Stacker(line, np.maximum(own[:, 0], LEAST_SLOPE), own[:, 1])


def importance_weights(answered: np.ndarray, unanswered: np.ndarray) -> np.ndarray:
    """(n,) weights with which answered scores (n,) are distributed as the unanswered ones (m,) are.

    Their sum is the number of equally weighted answers that would be worth as much (Kish 1965).
    """
    if not len(unanswered):
        return np.ones(len(answered))
    edges = np.quantile(unanswered, np.arange(1, BINS) / BINS)
    places = np.searchsorted(edges, answered)
    of_answered = np.bincount(places, minlength=BINS) / len(answered)
    of_unanswered = np.bincount(np.searchsorted(edges, unanswered), minlength=BINS) / len(unanswered)
    weights = np.clip((of_unanswered / np.maximum(of_answered, 1e-9))[places], SMALLEST, LARGEST)
    return weights * weights.sum() / (weights * weights).sum()


def _inputs(scores: Scores, others: np.ndarray) -> np.ndarray:
    """(n, C, 5) what the line goes through; a class that `auto` has no model of is judged by the other alone."""
    auto = np.where(np.isnan(scores.auto), scores.known, scores.auto)
    tail = np.minimum(scores.mean - TAIL, 0)
    return np.stack([auto, scores.known, np.minimum(others, 1), np.maximum(others - 1, 0), tail], -1)
