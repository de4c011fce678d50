"""Calibrates predicted probabilities with labels given after the predictions.

Labels used in training cannot measure calibration.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from annotator.indexing import find_positions
from annotator.records import PRESENT
from annotator.store.database.database import Database
from annotator.store.labels import calibration_data
from annotator.store.networks import adapted_networks
from spmll.rows import Rows
from spmll.statistics.calibration import Calibration, fit_calibration, to_logits

CALIBRATION_KIND = "isotonic"
MIN_ANSWERS = 40  # answers before anything is calibrated
BIN_COUNT = 10  # quantile bins of a class's answered logits, from which importance weights are estimated
WEIGHT_POWER = 0.2  # the power that importance weights are raised to
ANCHORS_PER_CLASS = 20  # logits of each class at which the model's own probabilities count, where nobody was asked
CLASSES_PER_BLOCK = 16  # classes calibrated at once, to avoid a second copy of all probabilities
ROUNDING_ERROR = 5e-4  # rounding error of logged probabilities, which have the three digits that people see
MIN_THRESHOLD, MAX_THRESHOLD = 0.25, 0.5  # between these a method's own threshold may move


@dataclass(frozen=True, eq=False)
class LoggedAnswers:
    """Labels of cells with earlier predicted probabilities."""

    # (n,), uncalibrated predictions
    logits: np.ndarray
    # (n,), class columns of the next run
    columns: np.ndarray
    # (n,) bool, the labels
    present: np.ndarray
    left_out: list[str] = field(default_factory=list)


def load_logged_answers(db: Database, method: str, backbone: str, class_ids: list[int]) -> LoggedAnswers:
    """Return labels for predictions of earlier runs with this method and backbone.

    Images that the backbone was trained on are excluded.
    """
    left_out = []
    answers, odd = calibration_data.load_scored_answers(
        db, method, backbone, adapted_networks.load_fitted_image_ids(db, backbone)
    )
    logits, known = np.zeros(len(answers)), np.isin(answers[:, 1], class_ids)
    for run_id, row in calibration_data.load_calibrations(db, np.unique(answers[:, 0]).astype(int).tolist()).items():
        rows = np.flatnonzero(answers[:, 0] == run_id)
        probabilities = np.clip(answers[rows, 2], ROUNDING_ERROR, 1 - ROUNDING_ERROR)
        try:
            calibration, of_run = _parse_run_calibration(*row)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            left_out.append(f"{len(rows):,} answers to run {run_id}: its row cannot be read ({error})")
            known[rows] = False
            continue
        if calibration is None:
            logits[rows] = to_logits(probabilities)
            continue
        columns, of_known_class = find_positions(answers[rows, 1], of_run)
        odd += int((~of_known_class).sum())
        known[rows[~of_known_class]] = False
        logits[rows[of_known_class]] = calibration.invert(probabilities[of_known_class], columns[of_known_class])
    if odd:
        left_out.append(f"{odd:,} answers with a score: of a class that their run did not have, or no probability")
    columns, _ = find_positions(answers[known, 1], np.array(class_ids, np.int64))
    return LoggedAnswers(logits[known], columns, answers[known, 3] == PRESENT, left_out)


def fit_run_calibration(answers: LoggedAnswers, probabilities: np.ndarray, unknown: np.ndarray) -> Calibration | None:
    """Return a new run's calibration, None with fewer than MIN_ANSWERS labels.

    Args:
        probabilities: (N, C), nan if missing.
        unknown: (N, C) bool, unanswered cells.

    Likely cells are labeled first. Each label is therefore weighted by the unanswered cells per labeled one in
    its logit bin, flattened by a power below 1 (Shimodaira 2000) to limit single labels.
    """
    if len(answers.logits) < MIN_ANSWERS:
        return None
    classes = probabilities.shape[1]
    weights = np.ones(len(answers.logits))
    anchors = np.full((classes, ANCHORS_PER_CLASS), np.nan)
    for column in range(classes):
        logits = to_logits(probabilities[unknown[:, column], column])
        if len(logits) and not np.isnan(logits).any():
            anchors[column] = np.quantile(logits, (np.arange(ANCHORS_PER_CLASS) + 0.5) / ANCHORS_PER_CLASS)
            rows = np.flatnonzero(answers.columns == column)
            if len(rows):
                weights[rows] = _compute_weights(answers.logits[rows], logits)
    return fit_calibration(
        CALIBRATION_KIND, answers.logits, answers.columns, answers.present, weights, classes, anchors
    )


def make_identity_calibration(classes: int, answers: int) -> Calibration | None:
    """Return the identity for runs calibrated in training, None with too few labels."""
    return None if answers < MIN_ANSWERS else Calibration("stacked", np.ones(classes), np.zeros(classes))


def apply_calibration(calibration: Calibration | None, probabilities: np.ndarray) -> np.ndarray:
    """Return calibrated probabilities (N, C)."""
    if calibration is None:
        return probabilities
    result = np.empty_like(probabilities)
    for start in range(0, probabilities.shape[1], CLASSES_PER_BLOCK):
        columns = slice(start, start + CLASSES_PER_BLOCK)
        result[:, columns] = calibration.apply(to_logits(probabilities[:, columns]), columns)
    return result


class CalibratedRows:
    """A lazy array of calibrated probabilities (N, C), computed per requested rows."""

    def __init__(self, calibration: Calibration | None, probabilities: Rows):
        self._calibration, self._probabilities = calibration, probabilities
        self.shape, self.dtype, self.ndim = probabilities.shape, probabilities.dtype, probabilities.ndim

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any, /) -> np.ndarray:
        return apply_calibration(self._calibration, self._probabilities[rows])


def compute_threshold(calibration: Calibration | None, threshold: float) -> float:
    """Return the calibrated probability above which a class is suggested.

    This is the method's threshold after calibration, averaged over classes and clipped.
    """
    if calibration is None:
        return threshold
    thresholds = calibration.apply(np.full((1, len(calibration.slopes)), to_logits(np.array(threshold))))
    return float(np.clip(thresholds.mean(), MIN_THRESHOLD, MAX_THRESHOLD))


def _parse_run_calibration(class_ids: Any, saved: Any) -> tuple[Calibration | None, np.ndarray]:
    """Return a stored run's calibration, or None, and its class ids (C,) int64."""
    columns = np.array(class_ids, np.int64)
    calibration = Calibration.from_dict(saved)
    if calibration is not None:
        calibration.check(len(columns))
    return calibration, columns


def _compute_weights(shown: np.ndarray, unknown: np.ndarray) -> np.ndarray:
    edges = np.unique(np.quantile(shown, np.linspace(0, 1, BIN_COUNT + 1)[1:-1]))
    of_shown, of_unknown = (np.searchsorted(edges, logits) for logits in (shown, unknown))
    counts, unknown_counts = (np.bincount(bins, minlength=len(edges) + 1) for bins in (of_shown, of_unknown))
    return (((unknown_counts + 1) / np.maximum(counts, 1)) ** WEIGHT_POWER)[of_shown]
