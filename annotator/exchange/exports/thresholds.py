"""Which unknown cells `export --unknown model` fills in, and how many of them are expected to be wrong.

Each class has two thresholds of its own: cells at or above the first become present, cells at or below the second
absent, cells between them stay unknown. The expected number of wrong cells is a sum of probabilities, so a class with
few cells needs no pooling with others; a pooled figure would let the many cells of easy classes hide a bad class.
Within a class, no cell is filled in whose own error probability exceeds WORST times the requested error: a class with
1 % positives could otherwise become absent everywhere.

The result is only as good as the probabilities. While there are too few answers to calibrate them
(worker/training/calibrate.py, and models/ensemble for `auto`), WORST is 1: every single cell, not only the mean, must
be within the requested error.
"""

from dataclasses import dataclass

import numpy as np

from annotator.exchange.formats.view import DIGITS
from models.statistics.metrics import confident_threshold

EXPECTED_ERROR = 0.01
WORST = 10.0
STEPS = 10**DIGITS  # a probability is one of 0, 1/STEPS, ..., 1 once it is rounded
EVEN = 0.5  # no cell is filled in with the less likely state


@dataclass(frozen=True)
class Limits:
    """The requested thresholds. present_from, absent_to: a threshold for all classes; None: from the expected error."""

    expected_error: float = EXPECTED_ERROR
    present_from: float | None = None
    absent_to: float | None = None

    def problems(self) -> list[str]:
        """Return sentences about impossible or overlapping thresholds; [] if they can be used."""
        given = {"present from": self.present_from, "absent up to": self.absent_to}
        sentences = [
            f"The threshold {value} ({name}) is not a probability: it must lie between 0 and 1."
            for name, value in given.items()
            if value is not None and not 0 <= value <= 1
        ]
        if not 0 < self.expected_error < EVEN:
            sentences.append(
                f"An expected error of {self.expected_error} is not possible: it must lie between 0 and {EVEN}, such "
                f"as {EXPECTED_ERROR}."
            )
        overlap = None not in (self.present_from, self.absent_to) and (self.absent_to or 0) > (self.present_from or 0)
        if overlap and not sentences:
            sentences.append(f"Present from {self.present_from} and absent up to {self.absent_to} overlap: swap them.")
        return sentences


@dataclass(frozen=True)
class ClassFill:
    """The fill of one class: its thresholds, and the numbers of cells filled in, expected wrong, and left unknown.

    A threshold of None: no cell is filled in with that state.
    """

    name: str
    present_from: float | None
    absent_to: float | None
    present: int
    wrong_present: float
    absent: int
    wrong_absent: float
    unknown: int


@dataclass(frozen=True)
class Fill:
    """The fill of all classes. calibrated: the probabilities were calibrated with answers of people."""

    limits: Limits
    calibrated: bool
    classes: list[ClassFill]

    def sum(self, name: str) -> float:
        """Return the sum of a field of ClassFill over all classes."""
        return sum(getattr(class_, name) for class_ in self.classes)

    def sentences(self) -> list[str]:
        """Return sentences about the cells filled in, the expected errors, and the probabilities that these rest on."""
        present, absent, unknown = (self.sum(name) for name in ("present", "absent", "unknown"))
        sentences = [
            f"The model fills in {present:,} present and {absent:,} absent; {unknown:,} pairs stay unanswered. "
            f"Expected to be wrong: {_wrong(self.sum('wrong_present'), present)} of the present ones, "
            f"{_wrong(self.sum('wrong_absent'), absent)} of the absent ones."
        ]
        if self.calibrated:
            sentences.append("These numbers rest on probabilities that are calibrated with people's answers.")
        else:
            sentences.append(
                "These numbers rest on uncalibrated probabilities: too few suggestions, grids and audits have been "
                "answered. More may be wrong."
            )
        return [*sentences, self.rule()]

    def rule(self) -> str:
        """Return a sentence about the thresholds."""
        asked = _share(self.limits.expected_error)
        given = [("present from", self.limits.present_from), ("absent up to", self.limits.absent_to)]
        parts = [
            f"{word} a probability of {value:g}, as asked for"
            if value is not None
            else f"{word} where at most {asked} of what is filled in for a class is expected to be wrong"
            for word, value in given
        ]
        worst = _share(worst_of(self.limits, self.calibrated))
        alone = f" Nothing with an error probability above {worst} is filled in."
        return f"Thresholds: {'; '.join(parts)}." + (alone if None in (value for _, value in given) else "")


def worst_of(limits: Limits, calibrated: bool) -> float:
    """Return the largest error probability that a single cell may have to be filled in."""
    return min(EVEN, limits.expected_error * (WORST if calibrated else 1.0))


class OpenCells:
    """A histogram per class of the probabilities of the cells that may be filled in; its size is fixed.

    Attributes:
        counts: (C, STEPS + 1) int64, cells of each rounded probability.
        sums: (C, STEPS + 1) float64, the sum of their probabilities before they were rounded.
        without: (C,) int64, cells without a probability.
    """

    def __init__(self, classes: int):
        self.counts = np.zeros((classes, STEPS + 1), np.int64)
        self.sums = np.zeros((classes, STEPS + 1))
        self.without = np.zeros(classes, np.int64)

    def add(self, probabilities: np.ndarray, open_: np.ndarray) -> None:
        """Count the cells where open_ (n, C) is True; probabilities: (n, C) float, nan where a class has no model."""
        self.without += (open_ & np.isnan(probabilities)).sum(0)
        rows, columns = np.nonzero(open_ & ~np.isnan(probabilities))
        raw = probabilities[rows, columns].astype(np.float64)
        place = columns * (STEPS + 1) + np.rint(rounded(raw) * STEPS).astype(np.int64)
        np.add.at(self.counts.reshape(-1), place, 1)
        np.add.at(self.sums.reshape(-1), place, raw)


def thresholds(cells: OpenCells, limits: Limits, calibrated: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the thresholds of each class, (C,) each: present from, and absent up to; nan where nothing is filled in.

    A cell that satisfies both, which only given thresholds allow, becomes present.
    """
    classes = len(cells.counts)
    given = limits.present_from, limits.absent_to
    result = np.full((2, classes), np.nan)
    worst, chances = worst_of(limits, calibrated), np.arange(STEPS + 1) / STEPS
    for column in range(classes) if None in given else ():
        counts = cells.counts[column]
        result[0, column] = confident_threshold(chances, limits.expected_error, worst, counts)
        result[1, column] = 1 - confident_threshold(1 - chances, limits.expected_error, worst, counts)
    result = np.round(result, DIGITS)
    for row, threshold in enumerate(given):
        if threshold is not None:
            result[row] = threshold
    return result[0], result[1]


def expect(names: list[str], cells: OpenCells, present_from: np.ndarray, absent_to: np.ndarray) -> list[ClassFill]:
    """Return for each class the number of open cells that these thresholds (C,) fill in, and the expected errors."""
    result = []
    chances = np.arange(STEPS + 1) / STEPS
    for column, name in enumerate(names):
        counts, sums = cells.counts[column], cells.sums[column]
        present = chances >= present_from[column]
        absent = (chances <= absent_to[column]) & ~present
        result.append(
            ClassFill(
                name,
                _threshold(present_from[column]),
                _threshold(absent_to[column]),
                int(counts[present].sum()),
                round(float((counts[present] - sums[present]).sum()), 2),
                int(counts[absent].sum()),
                round(float(sums[absent].sum()), 2),
                int(counts[~present & ~absent].sum() + cells.without[column]),
            )
        )
    return result


def rounded(chances: np.ndarray) -> np.ndarray:
    """Return the probabilities rounded as an export writes them, so that the file agrees with the thresholds."""
    return np.round(chances.astype(np.float64), DIGITS)


def _threshold(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _share(share: float) -> str:
    return f"{100 * share:g} %"


def _wrong(cells: float, of: float) -> str:
    if not of:
        return "none"
    return f"about {cells:,.0f}" if cells >= 0.95 else "less than 1"
