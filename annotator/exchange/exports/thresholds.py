"""The thresholds of `export --unknown model`, and how many of the cells that it fills in are expected to be wrong.

Each class has two thresholds of its own: cells at or above the one become present, cells at or below the other absent,
cells between them stay unknown. The expected number of wrong cells is a sum of probabilities, so a class with few cells
needs no pooling with others; a pooled figure would let the many cells of easy classes hide a bad one. Within a class,
no cell is filled in whose own error probability exceeds MAX_ERROR_FACTOR times the requested error: a class with 1 %
positives
could otherwise become absent everywhere.

This is only as good as the probabilities. While there are too few answers to calibrate them
(worker/training/calibrate.py, and spmll/ensemble for `auto`), MAX_ERROR_FACTOR is 1: every single cell, not only the
mean, must
be within the requested error.
"""

from dataclasses import dataclass

import numpy as np

from annotator.exchange.exports.export_options import EVEN_PROBABILITY, Limits
from annotator.exchange.formats.export_view import PROBABILITY_DIGITS
from spmll.statistics.metrics import find_confident_threshold

MAX_ERROR_FACTOR = 10.0
PROBABILITY_STEPS = 10**PROBABILITY_DIGITS  # a probability is one of 0, 1/STEPS, ..., 1 once it is rounded


@dataclass(frozen=True)
class ClassFill:
    """The number of cells of one class that are filled in, and how many are expected to be wrong.

    Attributes:
        name: Name of the class.
        present_from: The probability from which on cells become present; None: no cell does.
        absent_to: The probability up to which cells become absent; None: no cell does.
        present: Number of cells that become present.
        wrong_present: Expected number of these that are wrong.
        absent: Number of cells that become absent.
        wrong_absent: Expected number of these that are wrong.
        unknown: Number of cells that stay unknown.
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
    """The cells of all classes that are filled in.

    Attributes:
        limits: The limits that were requested.
        calibrated: The probabilities were calibrated with answers of people.
        classes: One entry a class.
    """

    limits: Limits
    calibrated: bool
    classes: list[ClassFill]

    def sum(self, name: str) -> float:
        """Return the sum of a field of ClassFill over all classes."""
        return sum(getattr(class_, name) for class_ in self.classes)

    def sentences(self) -> list[str]:
        """Return, in sentences, what is filled in, how much of it is expected to be wrong, and on what basis."""
        present, absent, unknown = (self.sum(name) for name in ("present", "absent", "unknown"))
        sentences = [
            f"The model fills in {present:,} present and {absent:,} absent; {unknown:,} pairs stay unanswered. "
            f"Expected to be wrong: {_describe_wrong(self.sum('wrong_present'), present)} of the present ones, "
            f"{_describe_wrong(self.sum('wrong_absent'), absent)} of the absent ones."
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
        """Return the thresholds, in words."""
        asked = _format_share(self.limits.expected_error)
        given = [("present from", self.limits.present_from), ("absent up to", self.limits.absent_to)]
        parts = [
            f"{word} a probability of {value:g}, as asked for"
            if value is not None
            else f"{word} where at most {asked} of what is filled in for a class is expected to be wrong"
            for word, value in given
        ]
        worst = _format_share(max_cell_error(self.limits, self.calibrated))
        alone = f" Nothing with an error probability above {worst} is filled in."
        return f"Thresholds: {'; '.join(parts)}." + (alone if None in (value for _, value in given) else "")


def max_cell_error(limits: Limits, calibrated: bool) -> float:
    """Return the largest error probability that a single filled-in cell may have."""
    return min(EVEN_PROBABILITY, limits.expected_error * (MAX_ERROR_FACTOR if calibrated else 1.0))


class OpenCells:
    """The distribution of the probabilities of open cells, in each class.

    Cells are counted block by block; the size in memory does not grow with their number.

    Attributes:
        counts: (C, PROBABILITY_STEPS + 1) int64, cells of each rounded probability.
        sums: (C, PROBABILITY_STEPS + 1) float64, the sum of their probabilities before they were rounded.
        without: (C,) int64, cells without a probability.
    """

    counts: np.ndarray
    sums: np.ndarray
    without: np.ndarray

    def __init__(self, classes: int):
        """Start with no cells.

        Args:
            classes: C, the number of classes.
        """
        self.counts = np.zeros((classes, PROBABILITY_STEPS + 1), np.int64)
        self.sums = np.zeros((classes, PROBABILITY_STEPS + 1))
        self.without = np.zeros(classes, np.int64)

    def add(self, probabilities: np.ndarray, open_: np.ndarray) -> None:
        """Count the open cells of a block of n images.

        Args:
            probabilities: (n, C) float in [0, 1], nan where a class has no model.
            open_: (n, C) bool, True for the cells to count.
        """
        self.without += (open_ & np.isnan(probabilities)).sum(0)
        rows, columns = np.nonzero(open_ & ~np.isnan(probabilities))
        raw = probabilities[rows, columns].astype(np.float64)
        place = columns * (PROBABILITY_STEPS + 1) + np.rint(round_probabilities(raw) * PROBABILITY_STEPS).astype(
            np.int64
        )
        np.add.at(self.counts.reshape(-1), place, 1)
        np.add.at(self.sums.reshape(-1), place, raw)


def compute_thresholds(cells: OpenCells, limits: Limits, calibrated: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the two thresholds of each class.

    A cell that satisfies both, which only given thresholds allow, becomes present.

    Args:
        cells: The cells that may be filled in.
        limits: What was requested.
        calibrated: The probabilities were calibrated with answers of people.

    Returns:
        The probability from which on cells become present, and the one up to which they become absent: (C,) float64
        each, nan where no cell does.
    """
    classes = len(cells.counts)
    given = limits.present_from, limits.absent_to
    result = np.full((2, classes), np.nan)
    worst, chances = max_cell_error(limits, calibrated), np.arange(PROBABILITY_STEPS + 1) / PROBABILITY_STEPS
    for column in range(classes) if None in given else ():
        counts = cells.counts[column]
        result[0, column] = find_confident_threshold(chances, limits.expected_error, worst, counts)
        result[1, column] = 1 - find_confident_threshold(1 - chances, limits.expected_error, worst, counts)
    result = np.round(result, PROBABILITY_DIGITS)
    for row, threshold in enumerate(given):
        if threshold is not None:
            result[row] = threshold
    return result[0], result[1]


def estimate_fill(
    names: list[str], cells: OpenCells, present_from: np.ndarray, absent_to: np.ndarray
) -> list[ClassFill]:
    """Return how many open cells the thresholds fill in, and how many of these are expected to be wrong.

    Args:
        names: Names of the C classes.
        cells: The cells that may be filled in.
        present_from: (C,) float64, nan: no cell becomes present.
        absent_to: (C,) float64, nan: no cell becomes absent.

    Returns:
        One entry a class, in the order of `names`.
    """
    result = []
    chances = np.arange(PROBABILITY_STEPS + 1) / PROBABILITY_STEPS
    for column, name in enumerate(names):
        counts, sums = cells.counts[column], cells.sums[column]
        present = chances >= present_from[column]
        absent = (chances <= absent_to[column]) & ~present
        result.append(
            ClassFill(
                name,
                _to_optional_float(present_from[column]),
                _to_optional_float(absent_to[column]),
                int(counts[present].sum()),
                round(float((counts[present] - sums[present]).sum()), 2),
                int(counts[absent].sum()),
                round(float(sums[absent].sum()), 2),
                int(counts[~present & ~absent].sum() + cells.without[column]),
            )
        )
    return result


def round_probabilities(chances: np.ndarray) -> np.ndarray:
    """Return probabilities rounded as an export writes them, so that the file agrees with the thresholds."""
    return np.round(chances.astype(np.float64), PROBABILITY_DIGITS)


def _to_optional_float(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _format_share(share: float) -> str:
    return f"{100 * share:g} %"


def _describe_wrong(cells: float, total: float) -> str:
    if not total:
        return "none"
    return f"about {cells:,.0f}" if cells >= 0.95 else "less than 1"
