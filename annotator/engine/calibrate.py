"""From a model's probabilities to calibrated ones, by what people answered to earlier predictions.

Only answers to probabilities that were logged *before* the answer count: what a model says of cells it has learned from
proves nothing. The logged ones were calibrated ones of their runs, and are turned back into logits by the calibration
that is kept with each run. The order of the images within a class stays as the model made it.
"""

from dataclasses import dataclass

import numpy as np

from annotator.records import PRESENT
from annotator.store import scored
from annotator.store.database import Database
from models.calibration import Calibration, fit, raw_logits

KIND = "isotonic"
FEWEST = 40  # answers before anything is calibrated
BINS = 10  # of a class's answered logits, equally many in each, in which it is counted how many of all were shown
FLATTENED = 0.2  # the power that importance weights are raised to
ANCHORS = 20  # logits of each class at which the model is believed where nobody was asked
COLUMNS = 16  # turned around at once: no second copy of everything
ROUNDED = 5e-4  # probabilities are logged with as many digits as people see: closer to 0 or 1 they say no more
LOWEST, HIGHEST = 0.25, 0.5  # between these a method's own threshold may move


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to logged predictions: model's logits (n,), columns (n,) of the run to come, present (n,) bool."""

    logits: np.ndarray
    columns: np.ndarray
    present: np.ndarray


def answered_before(db: Database, method: str, backbone: str, class_ids: list[int]) -> Answers:
    """What was answered to predictions of earlier runs of this method on this backbone.

    class_ids    ascending: what the columns are to be
    """
    found = scored.answers(db, method, backbone)
    logits, known = np.zeros(len(found)), np.isin(found[:, 1], class_ids)
    for run_id, (of_run, told) in scored.calibrations(db, np.unique(found[:, 0]).astype(int).tolist()).items():
        rows = np.flatnonzero(found[:, 0] == run_id)
        chances = np.clip(found[rows, 2], ROUNDED, 1 - ROUNDED)
        calibration = Calibration.from_dict(told)
        places = np.searchsorted(of_run, found[rows, 1])
        logits[rows] = raw_logits(chances) if calibration is None else calibration.invert(chances, places)
    columns = np.searchsorted(class_ids, found[known, 1])
    return Answers(logits[known], columns, found[known, 3] == PRESENT)


def calibration_of(answers: Answers, probabilities: np.ndarray, unknown: np.ndarray) -> Calibration | None:
    """The calibration of a new run; None with fewer than FEWEST answers.

    probabilities    (N, C) float of the model, nan where it has none
    unknown          (N, C) bool, cells that nobody has answered: those the calibration is for

    People are shown likely cells first. An answer is weighted by how many unknown cells there are for each that was
    shown, in its part of the logits. Raised to a power below 1 ("flattened", Shimodaira 2000, "Improving predictive
    inference under covariate shift by weighting the log-likelihood function"), because a single answer must not speak
    for thousands.
    """
    if len(answers.logits) < FEWEST:
        return None
    classes = probabilities.shape[1]
    weights = np.ones(len(answers.logits))
    anchors = np.full((classes, ANCHORS), np.nan)
    for column in range(classes):
        logits = raw_logits(probabilities[unknown[:, column], column])
        if len(logits) and not np.isnan(logits).any():
            anchors[column] = np.quantile(logits, (np.arange(ANCHORS) + 0.5) / ANCHORS)
            rows = np.flatnonzero(answers.columns == column)
            if len(rows):
                weights[rows] = _weights(answers.logits[rows], logits)
    return fit(KIND, answers.logits, answers.columns, answers.present, weights, classes, anchors)


def calibrated(calibration: Calibration | None, probabilities: np.ndarray) -> np.ndarray:
    """Calibrated probabilities (N, C) of the model's; the same ones without a calibration."""
    if calibration is None:
        return probabilities
    result = np.empty_like(probabilities)
    for start in range(0, probabilities.shape[1], COLUMNS):
        some = slice(start, start + COLUMNS)
        result[:, some] = calibration.apply(raw_logits(probabilities[:, some]), some)
    return result


def threshold_of(calibration: Calibration | None, threshold: float) -> float:
    """From which calibrated probability on a suggestion is worth a look: what the method's own threshold has become, on
    average over the classes, and never above 0.5."""
    if calibration is None:
        return threshold
    told = calibration.apply(np.full((1, len(calibration.slopes)), raw_logits(np.array(threshold))))
    return float(np.clip(told.mean(), LOWEST, HIGHEST))


def _weights(shown: np.ndarray, unknown: np.ndarray) -> np.ndarray:
    edges = np.unique(np.quantile(shown, np.linspace(0, 1, BINS + 1)[1:-1]))
    of_shown, of_unknown = (np.searchsorted(edges, one) for one in (shown, unknown))
    asked, every = (np.bincount(one, minlength=len(edges) + 1) for one in (of_shown, of_unknown))
    return (((every + 1) / np.maximum(asked, 1)) ** FLATTENED)[of_shown]
