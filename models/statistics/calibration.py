"""Probabilities that mean what they say: one rising map a class, from the model's logit to a calibrated logit.

A class has a slope and a shift of its own (Platt 1999), both pulled towards those of all classes together, the more so
the fewer answers it has. How strongly is learned from how much classes differ (empirical Bayes): a class with three
answers gets nearly the pooled map, one with a thousand nearly its own, and without any answer nothing is changed at
all. Every map rises strictly, so the order within a class stays what the model made of it.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from models.statistics.logistic import LogisticFit, fit_logistic

SUREST = 1e-7  # probabilities are kept this far inside (0, 1) before their logit is taken
# Lowest and highest (log of slope, shift): a model worse than chance is flattened, never turned round.
LINES = np.array([np.log(0.02), -np.inf]), np.array([np.log(8.0), np.inf])
IDENTITY = (0.7, 1.5)  # spread of the log of the slope, and of the shift, around those of no change; of all classes
SPREAD = (0.3, 0.6)  # the same of one class around all, before anything is known of how much classes differ
BELIEF = 4.0  # classes that SPREAD is worth
ROUNDS = 6
PSEUDO, PLACES = 20.0, 20  # isotonic: answers in the sense of the Platt map that are mixed in, and at how many places
STRAIGHT = 0.1  # and the share of the Platt map in the logit, so that it rises within a pool
ANCHORED = 10.0  # answers of each class that the model's own word counts for, where nobody was asked

Knots = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Calibration:
    """The maps of C classes: logit -> slope * logit + shift, then, if there are knots, along the line through them.

    kind      its name in CALIBRATIONS
    slopes    (C,) float64 > 0
    shifts    (C,) float64
    knots     class -> (k,) rising logits and (k,) rising values; beyond the ends the line goes on at slope 1
    """

    kind: str
    slopes: np.ndarray
    shifts: np.ndarray
    knots: dict[int, Knots] = field(default_factory=dict)

    def logits(self, logits: np.ndarray, columns: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Calibrated logits (N, C) of the model's logits (N, C), in the same kind of float; nan stays nan.

        columns    which classes the columns are, (n,) int; all of them by default
        """
        result = logits * self.slopes[columns].astype(logits.dtype) + self.shifts[columns].astype(logits.dtype)
        for place, class_ in enumerate(np.arange(len(self.slopes))[columns].tolist()):
            if class_ in self.knots:
                result[:, place] = _along(result[:, place], self.knots[class_])
        return result

    def apply(self, logits: np.ndarray, columns: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Probabilities (N, C) of the model's logits (N, C); as in `logits`."""
        return expit(self.logits(logits, columns))

    def invert(self, probabilities: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """The model's logits (n,) that calibrated probabilities (n,) of single cells, classes (n,) int, came from."""
        result = raw_logits(probabilities)
        for class_, knots in self.knots.items():
            of_class = classes == class_
            result[of_class] = _along(result[of_class], knots[::-1])
        return (result - self.shifts[classes]) / self.slopes[classes]

    def as_dict(self) -> dict:
        """Of plain numbers, for JSON."""
        knots = {str(one): [np.round(part, 5).tolist() for part in pair] for one, pair in self.knots.items()}
        slopes, shifts = np.round(self.slopes, 6).tolist(), np.round(self.shifts, 6).tolist()
        return {"kind": self.kind, "slopes": slopes, "shifts": shifts, "knots": knots}

    def check(self, classes: int) -> None:
        """Raises ValueError unless these are rising maps of so many classes."""
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
    def from_dict(cls, found: dict | None) -> "Calibration | None":
        """What `as_dict` told; None of None."""
        if found is None:
            return None
        knots = {int(one): (np.array(pair[0]), np.array(pair[1])) for one, pair in found["knots"].items()}
        return cls(found["kind"], np.array(found["slopes"], float), np.array(found["shifts"], float), knots)


def raw_logits(probabilities: np.ndarray) -> np.ndarray:
    """Logits of probabilities, of any shape, kept finite; nan stays nan. float16 becomes float32."""
    wide = np.asarray(probabilities, np.result_type(probabilities, np.float32))
    return logit(np.clip(wide, SUREST, 1 - SUREST))


def fit(
    kind: str,
    logits: np.ndarray,
    classes: np.ndarray,
    present: np.ndarray,
    weights: np.ndarray,
    n_classes: int,
    anchors: np.ndarray | None = None,
) -> Calibration:
    """The calibration that agrees best with answers.

    kind         a name in CALIBRATIONS
    logits       (n,) of the answered cells, as the model gave them before they were answered; finite
    classes      (n,) int, which class each is of, 0 .. n_classes - 1
    present      (n,) bool, the answers
    weights      (n,) >= 0, how many cells each stands for: the inverse of its chance to be asked about. Only their
                 proportions matter; the fewer of them carry most of the weight, the less the answers count (Kish 1965)
    anchors      (C, k) logits of cells that nobody was asked about, spread over all of them: there the model's own word
                 counts for ANCHORED answers a class. Without, answers about likely cells alone would say, along a line
                 drawn far past them, what unlikely ones are worth. nan: not used

    With no answers at all the result is the identity. Raises ValueError for an unknown kind, shapes that differ,
    logits that are not finite, negative weights, and classes there are not.
    """
    if kind not in CALIBRATIONS:
        raise ValueError(f"No calibration is called {kind!r}. There is: {', '.join(CALIBRATIONS)}.")
    logits, classes, weights = np.asarray(logits, float), np.asarray(classes, np.int64), np.asarray(weights, float)
    answers = np.asarray(present, float)
    shapes = {name: one.shape for name, one in (("classes", classes), ("present", answers), ("weights", weights))}
    if logits.ndim != 1 or any(shape != logits.shape for shape in shapes.values()):
        raise ValueError(f"logits are {logits.shape}, {shapes}; all must be (answers,).")
    if not np.isfinite(logits).all() or not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("Logits must be finite, and weights finite and not negative.")
    if len(classes) and not (classes.min() >= 0 and classes.max() < n_classes):
        raise ValueError(f"Classes run from {classes.min()} to {classes.max()}; there are {n_classes}.")
    weights = _effective(classes, weights, n_classes)
    if anchors is not None and anchors.size:
        of_class, place = np.nonzero(np.isfinite(anchors))
        added = np.asarray(anchors, float)[of_class, place]
        logits, classes = np.concatenate([logits, added]), np.concatenate([classes, of_class])
        answers = np.concatenate([answers, expit(added)])
        weights = np.concatenate([weights, np.full(len(added), ANCHORED / anchors.shape[1])])
    return CALIBRATIONS[kind](logits, classes, answers, weights, n_classes)


def _platt(logits, classes, present, weights, n_classes) -> Calibration:
    """A slope and a shift a class.

    Platt, "Probabilistic outputs for support vector machines", 1999. Kull et al., "Beta calibration", AISTATS 2017,
    say where it fails: with a model that is calibrated already, unless the identity is among the maps, as it is here.
    """
    return Calibration("platt", *_lines(logits, classes, present, weights, n_classes, shifted=True))


def _temperature(logits, classes, present, weights, n_classes) -> Calibration:
    """A slope a class and no shift: Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, sec. 4.2."""
    return Calibration("temperature", *_lines(logits, classes, present, weights, n_classes, shifted=False))


def _isotonic(logits, classes, present, weights, n_classes) -> Calibration:
    """Any rising map: Zadrozny and Elkan, "Transforming classifier scores into accurate multiclass probability
    estimates", KDD 2002. Shrunk towards the Platt map of the class by answers in its sense that are mixed in before
    neighbours are pooled; straight lines between the middles of the pools, so that no two logits become one."""
    slopes, shifts = _lines(logits, classes, present, weights, n_classes, shifted=True)
    knots = {}
    for class_ in np.unique(classes).tolist():
        of_class = classes == class_
        lines = slopes[class_] * logits[of_class] + shifts[class_]
        found = _pools(lines, present[of_class], weights[of_class])
        if found is not None:
            knots[class_] = found
    return Calibration("isotonic", slopes, shifts, knots)


CALIBRATIONS = {"platt": _platt, "temperature": _temperature, "isotonic": _isotonic}
"""What `fit` can fit, by name."""


def _effective(classes: np.ndarray, weights: np.ndarray, n_classes: int) -> np.ndarray:
    """Weights whose sum, in each class, is the number of equally weighted answers that would be worth as much."""
    total, squares = np.bincount(classes, weights, n_classes), np.bincount(classes, weights**2, n_classes)
    return weights * (total / np.maximum(squares, 1e-300))[classes]


def _lines(logits, classes, present, weights, n_classes, *, shifted) -> tuple[np.ndarray, np.ndarray]:
    """Slopes (C,) and shifts (C,): the pooled line first, then every class around it.

    How much classes differ is estimated by a few rounds of expectation and maximisation with Gaussian posteriors
    (Laplace); SPREAD counts as BELIEF classes in it, so that two classes alone do not decide it.
    """
    # Turned around the mean logit and not around 0: there, slope and shift can be told apart.
    middle = float(np.average(logits, weights=weights)) if shifted and weights.sum() else 0.0
    centred, free = logits - middle, np.array([1.0, 1.0 if shifted else 1e-12])

    def fit_lines(groups: np.ndarray, start: np.ndarray, centre: np.ndarray, variance: np.ndarray) -> LogisticFit:
        """(log of slope, shift) of every group (G, 2) under a Gaussian prior with this mean and variance, (2,) each."""

        def predict(lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            turned = np.exp(lines[groups, 0]) * centred
            return turned + lines[groups, 1], np.stack([turned, np.ones_like(turned)], 1)

        return fit_logistic(
            predict, present, np.tile(centre, (len(start), 1)), 1 / variance,
            offset=middle, weights=weights, groups=groups, start=start, bounds=LINES,
        )  # fmt: skip

    pooled = fit_lines(np.zeros_like(classes), np.zeros((1, 2)), np.zeros(2), np.square(IDENTITY) * free).coefficients[
        0
    ]
    seen = np.bincount(classes, weights, n_classes) > 0
    spread = np.square(SPREAD) * free
    each, centre = np.tile(pooled, (n_classes, 1)), pooled
    for _ in range(ROUNDS if seen.any() else 0):
        fitted = fit_lines(classes, each, centre, spread)
        each, variance = fitted.coefficients, np.linalg.inv(fitted.information).diagonal(axis1=1, axis2=2)
        # In the pooled line one class with many answers outvotes all the others; here every class has one voice.
        centre = (BELIEF * pooled + each[seen].sum(0)) / (BELIEF + seen.sum())
        apart = ((each - centre) ** 2 + variance)[seen].sum(0)
        spread = (BELIEF * np.square(SPREAD) + apart) / (BELIEF + seen.sum()) * free
    slopes = np.exp(each[:, 0])
    return slopes, each[:, 1] + middle * (1 - slopes)


def _pools(lines: np.ndarray, present: np.ndarray, weights: np.ndarray) -> Knots | None:
    """The knots of one class: pooled adjacent violators of its answers and of PSEUDO ones on the line; None for too
    few to have two pools."""
    places = np.quantile(lines, np.linspace(0, 1, PLACES))
    every = np.concatenate([lines, places])
    answers = np.concatenate([present, expit(places)])
    counts = np.concatenate([weights, np.full(PLACES, PSEUDO / PLACES)])
    order = np.argsort(every, kind="stable")
    order = order[counts[order] > 0]
    found = isotonic_regression(answers[order], weights=counts[order])
    starts, counted = found.blocks[:-1], counts[order]
    sizes = np.add.reduceat(counted, starts)
    surest = 0.5 / (sizes.max() + 1)
    values = logit(np.clip(found.x[starts], surest, 1 - surest))
    # Both ends of every pool, and a little of the line: within a pool no two logits may become one.
    ends = np.stack([starts, found.blocks[1:] - 1], 1).ravel()
    logits, values = every[order][ends], np.repeat(values, 2)
    values = (1 - STRAIGHT) * values + STRAIGHT * logits
    rising = np.concatenate([[True], np.diff(logits) > 1e-3])
    return (logits[rising], values[rising]) if rising.sum() > 1 else None


def _along(values: np.ndarray, knots: Knots) -> np.ndarray:
    start, end = knots
    result = np.interp(values, start, end).astype(values.dtype)
    result = np.where(values < start[0], values - start[0] + end[0], result)
    return np.where(values > start[-1], values - start[-1] + end[-1], result)
