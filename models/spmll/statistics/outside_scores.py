"""Outside models' scores, as inputs of the stacker and as first guesses.

Probabilities become centered logits, other scores are standardized per class and clipped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from spmll.labels import PRESENT
from spmll.statistics.logistic import fit_logistic

MAX_INPUT = 4.0  # an input lies between -MAX_INPUT and MAX_INPUT
PROBABILITY_EPS = 1e-3  # probabilities are moved so far inside (0, 1) first
PRIOR_WEIGHT = 0.25  # of all sources together, an input, before answers say more
GUESS_PRIOR_POSITIVES = 3.0  # positives of a class: with as many, a trusted first guess and our own model count alike
TRUST_PRIOR_POSITIVES = 5.0  # positives: so many must speak against a source before it is trusted half
CHANCE_TRUST = 0.2  # what noise earns by chance: from there on trust is counted
GUESS_SHIFT_PRECISION = 1.0  # of the shift that "absent" answers give a guess
CLASSES_PER_CHUNK = 16  # classes at once: no second copy of everything


@dataclass(frozen=True, eq=False)
class OutsideScores:
    """Scores of all images by a model from outside the project.

    Attributes:
        scores: (N, C) or nan.
        scale: "probability", or "score" if only the order counts.
    """

    name: str
    scores: np.ndarray
    scale: str

    @property
    def is_probability(self) -> bool:
        return self.scale == "probability"

    def compute_inputs(self) -> np.ndarray:
        """Return stacker inputs, (N, C) float32 in [-MAX_INPUT, MAX_INPUT], centered per class, or nan."""
        images, classes = self.scores.shape
        result = np.full((images, classes), np.nan, np.float32)
        for start in range(0, classes, CLASSES_PER_CHUNK):
            columns = slice(start, start + CLASSES_PER_CHUNK)
            values = (
                self._compute_logits(columns) if self.is_probability else np.array(self.scores[:, columns], np.float64)
            )
            known = ~np.isnan(values)
            count = np.maximum(known.sum(0), 1)
            values -= np.where(known, values, 0).sum(0) / count
            spread = np.sqrt(np.square(np.where(known, values, 0)).sum(0) / count)
            values /= np.maximum(spread, 1) if self.is_probability else np.where(spread > 1e-9, spread, 1)
            result[:, columns] = np.clip(values, -MAX_INPUT, MAX_INPUT)
        return result

    def _compute_logits(self, columns: slice) -> np.ndarray:
        return logit(np.clip(np.array(self.scores[:, columns], np.float64), PROBABILITY_EPS, 1 - PROBABILITY_EPS))

    def guess_logits(self, column: int) -> np.ndarray:
        """Return one class's logits (N,), if the scores are probabilities."""
        return self._compute_logits(slice(column, column + 1))[:, 0]


def add_first_guesses(
    probabilities: np.ndarray, labels: np.ndarray, unbiased: np.ndarray, outside: Sequence[OutsideScores], stacked: bool
) -> np.ndarray:
    """Return probabilities (N, C) with outside scores where answers are too few.

    A class without a model gets the outside models' mean, shifted by unbiased answers, and images without scores
    its minimum. Other classes, unless `stacked`, average model and mean in logits (worth GUESS_PRIOR_POSITIVES
    positives), plus PRIOR_WEIGHT of scores that are not probabilities.

    Args:
        probabilities: (N, C), nan for unmarked classes.
        labels: (N, C).
        unbiased: (N, C).
        stacked: Fill only classes without a model, since a stacker used the scores.
    """
    if not outside or (stacked and not np.isnan(probabilities).all(0).any()):
        return probabilities
    result = probabilities.copy()
    inputs = [source.compute_inputs() for source in outside]
    trusted = [estimate_trust(values, labels) for values in inputs]
    triples = list(zip(outside, inputs, trusted, strict=True))
    for column in range(result.shape[1]):
        of_class = [
            (source, values, estimate_class_trust(values[:, column], labels[:, column], weight))
            for source, values, weight in triples
        ]
        guessing = [(source, weight) for source, _, weight in of_class if source.is_probability and weight > 0]
        orders = [(values, weight) for source, values, weight in of_class if not source.is_probability]
        guess, weight = _average_columns(
            [(source.guess_logits(column), weight) for source, weight in guessing], len(result)
        )
        own, has_guess = result[:, column], not np.isnan(guess).all()
        if np.isnan(own).all():
            if has_guess:
                filled = np.where(np.isnan(guess), np.nanmin(guess), guess)
                result[:, column] = expit(filled + _fit_shift(filled, labels[:, column], unbiased[:, column]))
        elif not stacked:
            logits = logit(np.clip(own.astype(np.float64), 1e-6, 1 - 1e-6))
            share = weight * GUESS_PRIOR_POSITIVES / (GUESS_PRIOR_POSITIVES + int((labels[:, column] == PRESENT).sum()))
            logits = np.where(np.isnan(guess), logits, logits + share * (guess - logits))
            order, weight = _average_columns([(values[:, column], weight) for values, weight in orders], len(result))
            result[:, column] = expit(logits + PRIOR_WEIGHT * weight * np.nan_to_num(order))
    return result


def estimate_trust(inputs: np.ndarray, labels: np.ndarray) -> float:
    """Return the trust in a source, in [0, 1], from "present" labels alone, 1 without any.

    It grows with how far positives exceed all images, in standard deviations. Noise gains none.

    Args:
        inputs: (N, C) of `compute_inputs`.
        labels: (N, C).
    """
    values = inputs[labels == PRESENT]
    values = values[~np.isnan(values)]
    spread = _compute_std(inputs)
    above = min(max(float(values.mean()) / spread, 0.0), 1.0) if len(values) and spread > 1e-9 else 0.0
    earned = (TRUST_PRIOR_POSITIVES + len(values) * above) / (TRUST_PRIOR_POSITIVES + len(values))
    return max(0.0, (earned - CHANCE_TRUST) / (1 - CHANCE_TRUST))


def estimate_class_trust(inputs: np.ndarray, labels: np.ndarray, source_trust: float) -> float:
    """Return the trust in a source for one class, at most `source_trust`.

    `source_trust` counts as TRUST_PRIOR_POSITIVES positives of the class.

    Args:
        inputs: (N,).
        labels: (N,).
    """
    values = inputs[labels == PRESENT]
    values = values[~np.isnan(values)]
    spread = float(np.nanstd(inputs)) if len(values) else 0.0
    above = min(max(float(values.mean()) / spread, 0.0), 1.0) if spread > 1e-9 else 0.0
    earned = max(0.0, (above - CHANCE_TRUST) / (1 - CHANCE_TRUST))
    return min(
        source_trust,
        (TRUST_PRIOR_POSITIVES * source_trust + len(values) * earned) / (TRUST_PRIOR_POSITIVES + len(values)),
    )


def _compute_std(inputs: np.ndarray) -> float:
    """Return the standard deviation without nan, computed in chunks, or 0 if there is none."""
    sums = np.zeros(3)
    for start in range(0, inputs.shape[1], CLASSES_PER_CHUNK):
        part = inputs[:, start : start + CLASSES_PER_CHUNK]
        known = part[~np.isnan(part)].astype(np.float64)
        sums += len(known), known.sum(), np.square(known).sum()
    count, total, squares = sums
    return float(np.sqrt(max(squares / count - (total / count) ** 2, 0.0))) if count else 0.0


def _average_columns(columns: Sequence[tuple[np.ndarray, float]], images: int) -> tuple[np.ndarray, float]:
    """Return the weighted mean (N,) of columns, ignoring nan, and their mean weight."""
    sums, total = np.zeros(images), np.zeros(images)
    for values, weight in columns:
        known = ~np.isnan(values)
        sums[known] += weight * values[known]
        total[known] += weight
    mean = np.divide(sums, total, out=np.full(images, np.nan), where=total > 0)
    return mean, sum(weight for _, weight in columns) / max(len(columns), 1)


def _fit_shift(guess: np.ndarray, labels: np.ndarray, unbiased: np.ndarray) -> float:
    """Return the shift of a class's logits that fits unbiased answers best, or 0 without answers."""
    rows = np.flatnonzero(unbiased)
    if not len(rows):
        return 0.0
    fit = fit_logistic(
        np.ones((len(rows), 1)),
        labels[rows] == PRESENT,
        np.zeros(1),
        np.array([GUESS_SHIFT_PRECISION]),
        offset=guess[rows],
    )
    return float(fit.coefficients[0, 0])
