"""Calibration: one strictly increasing map per class from model to calibrated logits.

Each class has a slope and shift (Platt 1999), shrunk by empirical Bayes towards all classes. Without answers the map is
the identity.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from spmll.statistics.logistic import LogisticFit, fit_logistic

# probabilities are clipped to [PROBABILITY_EPS, 1 - PROBABILITY_EPS] before their logit is taken
PROBABILITY_EPS = 1e-7
# Lowest and highest (log of slope, shift): a model worse than chance is flattened, never turned round.
LINE_BOUNDS = np.array([np.log(0.02), -np.inf]), np.array([np.log(8.0), np.inf])
POOLED_PRIOR_STD = (0.7, 1.5)  # prior standard deviations of the pooled (log of slope, shift) around the identity's
CLASS_PRIOR_STD = (0.3, 0.6)  # prior standard deviations of a class's around the pooled ones
CLASS_PRIOR_WEIGHT = 4.0  # classes that CLASS_PRIOR_STD is worth
EM_ROUNDS = 6  # of expectation and maximisation
# isotonic: pseudo-answers from the Platt map that are added, and at how many logits
PSEUDO_ANSWERS, PSEUDO_ANSWER_PLACES = (20.0, 20)
PLATT_SHARE = 0.1  # isotonic: share of the Platt map in the logit, so that the map increases within a pool
ANCHOR_ANSWERS = 10.0  # answers a class that the model's own probabilities count for, where nobody was asked

Knots = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Calibration:
    """Maps of C classes: logit -> slope * logit + shift, then a piecewise linear map if any.

    Attributes:
        kind: Name in CALIBRATIONS.
        slopes, shifts: (C,).
        knots: Class -> (k,) increasing logits and values.
    """

    kind: str
    slopes: np.ndarray
    shifts: np.ndarray
    knots: dict[int, Knots] = field(default_factory=dict)

    def calibrate_logits(self, logits: np.ndarray, columns: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return calibrated logits (N, C) of the same float type, keeping nan (`columns`: classes of the columns)."""
        result = logits * self.slopes[columns].astype(logits.dtype) + self.shifts[columns].astype(logits.dtype)
        for place, class_ in enumerate(np.arange(len(self.slopes))[columns].tolist()):
            if class_ in self.knots:
                result[:, place] = _interpolate(result[:, place], self.knots[class_])
        return result

    def apply(self, logits: np.ndarray, columns: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return calibrated probabilities (N, C) of logits (N, C)."""
        return expit(self.calibrate_logits(logits, columns))

    def invert(self, probabilities: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Return model logits (n,) from calibrated probabilities (n,) of cells."""
        result = to_logits(probabilities)
        for class_, knots in self.knots.items():
            of_class = classes == class_
            result[of_class] = _interpolate(result[of_class], (knots[1], knots[0]))
        return (result - self.shifts[classes]) / self.slopes[classes]

    def to_dict(self) -> dict[str, Any]:
        knots = {str(class_): [np.round(ends, 5).tolist() for ends in pair] for class_, pair in self.knots.items()}
        slopes, shifts = np.round(self.slopes, 6).tolist(), np.round(self.shifts, 6).tolist()
        return {"kind": self.kind, "slopes": slopes, "shifts": shifts, "knots": knots}

    def check(self, classes: int) -> None:
        """Raise ValueError unless there is an increasing map for each of `classes` classes."""
        if self.slopes.shape != (classes,) or self.shifts.shape != (classes,):
            raise ValueError(f"slopes {self.slopes.shape} and shifts {self.shifts.shape} must be ({classes},)")
        if not (np.isfinite(self.slopes).all() and np.isfinite(self.shifts).all() and (self.slopes > 0).all()):
            raise ValueError("slopes must be finite and above 0, shifts finite")
        for class_, (start, end) in self.knots.items():
            if not 0 <= class_ < classes or start.ndim != 1 or start.shape != end.shape or not len(start):
                raise ValueError(f"knots of class {class_}: {start.shape} and {end.shape}, of {classes} classes")
            if not (np.isfinite(start).all() and np.isfinite(end).all()):
                raise ValueError(f"knots of class {class_} must be finite")

    @classmethod
    def from_dict(cls, saved: dict[str, Any] | None) -> "Calibration | None":
        """Load a calibration saved by `to_dict`, or return None for None."""
        if saved is None:
            return None
        knots = {int(class_): (np.array(pair[0]), np.array(pair[1])) for class_, pair in saved["knots"].items()}
        return cls(saved["kind"], np.array(saved["slopes"], float), np.array(saved["shifts"], float), knots)


def to_logits(probabilities: np.ndarray) -> np.ndarray:
    """Return finite logits of probabilities, at least float32, keeping nan."""
    wide = np.asarray(probabilities, np.result_type(probabilities, np.float32))
    return logit(np.clip(wide, PROBABILITY_EPS, 1 - PROBABILITY_EPS))


def fit_calibration(
    kind: str,
    logits: np.ndarray,
    classes: np.ndarray,
    present: np.ndarray,
    weights: np.ndarray,
    n_classes: int,
    anchors: np.ndarray | None = None,
) -> Calibration:
    """Fit the calibration that explains the answers best, the identity without answers.

    Args:
        logits: (n,), predicted before the answer was known.
        classes: (n,) int.
        present: (n,) bool, the answers.
        weights: (n,), inverse probabilities of selection. Uneven weights reduce the effective answers (Kish
            1965).
        anchors: (C, k) logits of unselected cells or nan. There the model's predictions count as ANCHOR_ANSWERS
            answers per class, against extrapolation to unlikely cells.

    Raises:
        ValueError: An argument is invalid.
    """
    if kind not in CALIBRATIONS:
        raise ValueError(f"No calibration is called {kind!r}. There is: {', '.join(CALIBRATIONS)}.")
    logits, classes, weights = np.asarray(logits, float), np.asarray(classes, np.int64), np.asarray(weights, float)
    answers = np.asarray(present, float)
    arrays = {"classes": classes, "present": answers, "weights": weights}
    shapes = {name: array.shape for name, array in arrays.items()}
    if logits.ndim != 1 or any(shape != logits.shape for shape in shapes.values()):
        raise ValueError(f"logits are {logits.shape}, {shapes}; all must be (answers,).")
    if not np.isfinite(logits).all() or not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("Logits must be finite, and weights finite and not negative.")
    if len(classes) and not (classes.min() >= 0 and classes.max() < n_classes):
        raise ValueError(f"Classes run from {classes.min()} to {classes.max()}; there are {n_classes}.")
    weights = _rescale_weights(classes, weights, n_classes)
    if anchors is not None and anchors.size:
        of_class, place = np.nonzero(np.isfinite(anchors))
        added = np.asarray(anchors, float)[of_class, place]
        logits, classes = np.concatenate([logits, added]), np.concatenate([classes, of_class])
        answers = np.concatenate([answers, expit(added)])
        weights = np.concatenate([weights, np.full(len(added), ANCHOR_ANSWERS / anchors.shape[1])])
    return CALIBRATIONS[kind](logits, classes, answers, weights, n_classes)


def _fit_platt(logits, classes, present, weights, n_classes) -> Calibration:
    """Fit a slope and a shift per class (Platt 1999), in a family that includes the identity (Kull et al. 2017)."""
    return Calibration("platt", *_fit_class_lines(logits, classes, present, weights, n_classes, shifted=True))


def _fit_temperature(logits, classes, present, weights, n_classes) -> Calibration:
    """Fit a slope per class (Guo et al., ICML 2017, sec. 4.2)."""
    return Calibration("temperature", *_fit_class_lines(logits, classes, present, weights, n_classes, shifted=False))


def _fit_isotonic(logits, classes, present, weights, n_classes) -> Calibration:
    """Fit an increasing map per class, shrunk towards Platt's (Zadrozny and Elkan, KDD 2002)."""
    slopes, shifts = _fit_class_lines(logits, classes, present, weights, n_classes, shifted=True)
    knots = {}
    for class_ in np.unique(classes).tolist():
        of_class = classes == class_
        lines = slopes[class_] * logits[of_class] + shifts[class_]
        of_pools = _fit_pools(lines, present[of_class], weights[of_class])
        if of_pools is not None:
            knots[class_] = of_pools
    return Calibration("isotonic", slopes, shifts, knots)


CALIBRATIONS = {"platt": _fit_platt, "temperature": _fit_temperature, "isotonic": _fit_isotonic}
"""The kinds of `fit`, by name."""


def _rescale_weights(classes: np.ndarray, weights: np.ndarray, n_classes: int) -> np.ndarray:
    """Scale the weights of each class to sum to its effective sample size, (sum w)^2 / sum w^2."""
    total, squares = np.bincount(classes, weights, n_classes), np.bincount(classes, weights**2, n_classes)
    return weights * (total / np.maximum(squares, 1e-300))[classes]


def _fit_class_lines(logits, classes, present, weights, n_classes, *, shifted) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes and shifts (C,), shrunk towards the line of all classes by EM (Laplace approximation)."""
    # The slope turns around the mean logit and not around 0: there, slope and shift hardly depend on each other.
    middle = float(np.average(logits, weights=weights)) if shifted and weights.sum() else 0.0
    centred, free = logits - middle, np.array([1.0, 1.0 if shifted else 1e-12])

    def fit_lines(groups: np.ndarray, start: np.ndarray, centre: np.ndarray, variance: np.ndarray) -> LogisticFit:
        """Fit (log slope, shift) per group with a Gaussian prior."""

        def predict(lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            turned = np.exp(lines[groups, 0]) * centred
            return turned + lines[groups, 1], np.stack([turned, np.ones_like(turned)], 1)

        return fit_logistic(
            predict, present, np.tile(centre, (len(start), 1)), 1 / variance,
            offset=middle, weights=weights, groups=groups, start=start, bounds=LINE_BOUNDS,
        )  # fmt: skip

    pooled = fit_lines(
        np.zeros_like(classes), np.zeros((1, 2)), np.zeros(2), np.square(POOLED_PRIOR_STD) * free
    ).coefficients[0]
    seen = np.bincount(classes, weights, n_classes) > 0
    spread = np.square(CLASS_PRIOR_STD) * free
    lines, centre = np.tile(pooled, (n_classes, 1)), pooled
    for _ in range(EM_ROUNDS if seen.any() else 0):
        fitted = fit_lines(classes, lines, centre, spread)
        lines, variance = fitted.coefficients, np.linalg.inv(fitted.information).diagonal(axis1=1, axis2=2)
        # A class with many answers dominates the pooled line; in this mean all classes count the same.
        centre = (CLASS_PRIOR_WEIGHT * pooled + lines[seen].sum(0)) / (CLASS_PRIOR_WEIGHT + seen.sum())
        apart = ((lines - centre) ** 2 + variance)[seen].sum(0)
        spread = (CLASS_PRIOR_WEIGHT * np.square(CLASS_PRIOR_STD) + apart) / (CLASS_PRIOR_WEIGHT + seen.sum()) * free
    slopes = np.exp(lines[:, 0])
    return slopes, lines[:, 1] + middle * (1 - slopes)


def _fit_pools(lines: np.ndarray, present: np.ndarray, weights: np.ndarray) -> Knots | None:
    """Fit an increasing step function to a class's answers (isotonic regression), or return None for one step."""
    places = np.quantile(lines, np.linspace(0, 1, PSEUDO_ANSWER_PLACES))
    logits = np.concatenate([lines, places])
    answers = np.concatenate([present, expit(places)])
    counts = np.concatenate([weights, np.full(PSEUDO_ANSWER_PLACES, PSEUDO_ANSWERS / PSEUDO_ANSWER_PLACES)])
    order = np.argsort(logits, kind="stable")
    order = order[counts[order] > 0]
    pooled = isotonic_regression(answers[order], weights=counts[order])
    starts, counted = pooled.blocks[:-1], counts[order]
    sizes = np.add.reduceat(counted, starts)
    surest = 0.5 / (sizes.max() + 1)
    values = logit(np.clip(pooled.x[starts], surest, 1 - surest))
    # Both ends of every pool, and a share of the line, so that the map increases within a pool.
    ends = np.stack([starts, pooled.blocks[1:] - 1], 1).ravel()
    logits, values = logits[order][ends], np.repeat(values, 2)
    values = (1 - PLATT_SHARE) * values + PLATT_SHARE * logits
    apart = np.concatenate([[True], np.diff(logits) > 1e-3])
    return (logits[apart], values[apart]) if apart.sum() > 1 else None


def _interpolate(values: np.ndarray, knots: Knots) -> np.ndarray:
    start, end = knots
    result = np.interp(values, start, end).astype(values.dtype)
    result = np.where(values < start[0], values - start[0] + end[0], result)
    return np.where(values > start[-1], values - start[-1] + end[-1], result)
