"""Thresholds of `export --unknown model`, and expected errors among filled-in cells.

Errors are bounded per class, because pooling would hide a bad class. No cell exceeds MAX_ERROR_FACTOR times the
requested error (1 if uncalibrated), as rare classes could otherwise become absent everywhere.
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
    """Counts and expected errors of the labels filled in for one class.

    Attributes:
        name: Class name.
        present_from: Lowest probability of present, if any.
        absent_to: Highest probability of absent, if any.
        present: Labels filled in as present.
        wrong_present: Expected errors among them.
        absent: Labels filled in as absent.
        wrong_absent: Expected errors among them.
        unknown: Labels left unanswered.
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
    """Counts and expected errors of the labels filled in, for all classes.

    Attributes:
        limits: Requested limits.
        calibrated: Whether answers calibrated the probabilities.
        classes: One entry per class.
    """

    limits: Limits
    calibrated: bool
    classes: list[ClassFill]

    def sum(self, name: str) -> float:
        """Return the sum of a ClassFill field over all classes."""
        return sum(getattr(class_, name) for class_ in self.classes)

    def sentences(self) -> list[str]:
        """Describe the filled-in cells and their expected errors."""
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
        """Describe the thresholds in words."""
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
    """Return the highest probability of an error that a filled-in label may have."""
    return min(EVEN_PROBABILITY, limits.expected_error * (MAX_ERROR_FACTOR if calibrated else 1.0))


class OpenCells:
    """An accumulator of probability histograms of unanswered cells, in constant memory.

    Attributes:
        counts: (C, PROBABILITY_STEPS + 1) int64, cells per rounded probability.
        sums: Same shape, float64, sums of unrounded probabilities.
        without: (C,) int64, cells without a probability.
    """

    counts: np.ndarray
    sums: np.ndarray
    without: np.ndarray

    def __init__(self, classes: int):
        """Create empty histograms.

        Args:
            classes: Number of classes C.
        """
        self.counts = np.zeros((classes, PROBABILITY_STEPS + 1), np.int64)
        self.sums = np.zeros((classes, PROBABILITY_STEPS + 1))
        self.without = np.zeros(classes, np.int64)

    def add(self, probabilities: np.ndarray, open_: np.ndarray) -> None:
        """Count unanswered cells of n images.

        Args:
            probabilities: (n, C) float in [0, 1], NaN without a model.
            open_: (n, C) bool, cells to count.
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
    """Compute both thresholds of each class. A cell that satisfies both becomes present.

    Args:
        cells: Cells to fill in.
        limits: Requested limits.
        calibrated: Whether answers calibrated the probabilities.

    Returns:
        Lowest probability of present, highest of absent, (C,) float64, NaN for none.
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
    """Count the cells that the thresholds fill in, and their expected errors.

    Args:
        names: C class names.
        cells: Cells to fill in.
        present_from: (C,) float64, NaN for none.
        absent_to: Likewise.

    Returns:
        One entry per class.
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
    """Round probabilities as in the export, so that they agree with the thresholds."""
    return np.round(chances.astype(np.float64), PROBABILITY_DIGITS)


def _to_optional_float(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _format_share(share: float) -> str:
    return f"{100 * share:g} %"


def _describe_wrong(cells: float, total: float) -> str:
    if not total:
        return "none"
    return f"about {cells:,.0f}" if cells >= 0.95 else "less than 1"
