"""From a model's probabilities to calibrated ones, by what people answered to earlier predictions.

Only answers to probabilities that were logged *before* the answer count: what a model says of cells it has learned from
proves nothing. The logged ones were calibrated ones of their runs, and are turned back into logits by the calibration
that is kept with each run. The order of the images within a class stays as the model made it.
"""

from dataclasses import dataclass, field

import numpy as np

from annotator.indexing import positions
from annotator.records import PRESENT
from annotator.store import scored
from annotator.store.database import Database
from models.statistics.calibration import Calibration, fit, raw_logits

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
    """Answers to logged predictions: model's logits (n,), columns (n,) of the run to come, present (n,) bool; and in
    words which ones cannot be used, and why."""

    logits: np.ndarray
    columns: np.ndarray
    present: np.ndarray
    left_out: list[str] = field(default_factory=list)


def answered_before(db: Database, method: str, backbone: str, class_ids: list[int]) -> Answers:
    """What was answered to predictions of earlier runs of this method on this backbone.

    class_ids    ascending: what the columns are to be
    """
    left_out = []
    found, odd = scored.answers(db, method, backbone)
    logits, known = np.zeros(len(found)), np.isin(found[:, 1], class_ids)
    for run_id, told in scored.calibrations(db, np.unique(found[:, 0]).astype(int).tolist()).items():
        rows = np.flatnonzero(found[:, 0] == run_id)
        chances = np.clip(found[rows, 2], ROUNDED, 1 - ROUNDED)
        try:
            calibration, of_run = _of_run(*told)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            left_out.append(f"{len(rows):,} answers to run {run_id}: its row cannot be read ({error})")
            known[rows] = False
            continue
        if calibration is None:
            logits[rows] = raw_logits(chances)
            continue
        columns, there = positions(found[rows, 1], of_run)
        odd += int((~there).sum())
        known[rows[~there]] = False
        logits[rows[there]] = calibration.invert(chances[there], columns[there])
    if odd:
        left_out.append(f"{odd:,} answers with a score: of a class that their run did not have, or no probability")
    columns, _ = positions(found[known, 1], np.array(class_ids, np.int64))
    return Answers(logits[known], columns, found[known, 3] == PRESENT, left_out)


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


def fitted_to_answers(classes: int, answers: int) -> Calibration | None:
    """What is kept of a run whose training has calibrated it already (models/ensemble/stacking.py): it changes
    nothing, and says
    that its probabilities mean what they say. None with fewer than FEWEST answers to whole questions."""
    return None if answers < FEWEST else Calibration("stacked", np.ones(classes), np.zeros(classes))


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


def _of_run(class_ids: object, told: dict | None) -> tuple[Calibration | None, np.ndarray]:
    """A run's calibration, checked, and its classes (C,) int64. Raises an error of Python for what is none."""
    columns = np.array(class_ids, np.int64)
    found = Calibration.from_dict(told)
    if found is not None:
        found.check(len(columns))
    return found, columns


def _weights(shown: np.ndarray, unknown: np.ndarray) -> np.ndarray:
    edges = np.unique(np.quantile(shown, np.linspace(0, 1, BINS + 1)[1:-1]))
    of_shown, of_unknown = (np.searchsorted(edges, one) for one in (shown, unknown))
    asked, every = (np.bincount(one, minlength=len(edges) + 1) for one in (of_shown, of_unknown))
    return (((every + 1) / np.maximum(asked, 1)) ** FLATTENED)[of_shown]
