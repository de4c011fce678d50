"""Recall, precision and calibration of a classifier, measured on audit answers.

Thresholds cut each stratum in two parts, each with n answered cells, x of them present. Exact limits of a
part's share are quantiles of Beta(x, n - x + 1) and Beta(x + 1, n - x) (Clopper & Pearson, Biometrika 1934).
Sums and ratios use draws from these (Fay, Proschan & Brittain, Biometrics 2015). Few answers inflate
calibration error, so it only has an upper end.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from annotator.quality.audit_sampling import load_samples
from annotator.records import PRESENT
from annotator.store.database.database import Database
from annotator.store.labels import audits
from spmll.statistics.agreement_coefficients import Estimate

MIN_ANSWERS = 30  # answers, from which on figures are stated
DRAW_COUNT = 2000
BIN_COUNT = 15  # of the expected calibration error, as in spmll.statistics.metrics
NO_ESTIMATE = Estimate(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class ClassifierEvaluation:
    """The figures of a classifier on the newest answered audit."""

    # audit answers. Below MIN_ANSWERS all figures are nan
    answers: int
    # training may have included these answers
    learned_from: bool
    recall: Estimate = NO_ESTIMATE
    precision: Estimate = NO_ESTIMATE
    # 95% upper limit of the expected calibration error (Guo et al., ICML 2017, eq. 3)
    calibration_error: float = np.nan


@dataclass(frozen=True, eq=False)
class AuditedPairs:
    """The N cells (image and class) that an audit was drawn from, with the n answered ones."""

    # (N,), the classifier's probabilities
    chances: np.ndarray
    # (N,) int64, part of a stratum
    parts: np.ndarray
    # (N,) bool, present by the classifier's threshold
    called: np.ndarray
    # (n,) int64, indexes of answered cells
    answered: np.ndarray
    # (n,) bool, their answers
    present: np.ndarray


def evaluate_classifier(
    db: Database,
    class_ids: np.ndarray,
    probabilities: Callable[[np.ndarray], np.ndarray],
    present_from: np.ndarray,
    trained_decision: int,
) -> ClassifierEvaluation:
    """Evaluate a classifier on the newest answered audit.

    Args:
        probabilities: Function from image ids (n,) to (n, C) probabilities, nan if unknown.
        present_from: (C,) thresholds, nan for none.
        trained_decision: Newest decision used in training.
    """
    for audit in audits.load_audits(db):
        found: list[AuditedPairs] = []
        for sample in load_samples(db, audit, audits.load_cells(db, audit)):
            sure = sample.states != 0
            if sample.class_id in class_ids and sure.any():
                column = int(np.flatnonzero(class_ids == sample.class_id)[0])
                chances = probabilities(sample.image_ids)[:, column]
                is_drawn_from = np.isin(sample.strata, sample.strata[sample.rows]) & ~np.isnan(chances)
                answers = sample.rows[sure], sample.states[sure] == PRESENT
                found.append(
                    _select_pairs(column, chances, sample.strata, present_from[column], is_drawn_from, *answers)
                )
        pairs = _concatenate_pairs(found)
        if len(pairs.answered):
            return evaluate_pairs(pairs, learned_from=audit.last_decision_id < trained_decision)
    return ClassifierEvaluation(0, False)


def evaluate_pairs(pairs: AuditedPairs, *, learned_from: bool) -> ClassifierEvaluation:
    """Return the figures of a classifier from audited cells. `learned_from` is stored in the result."""
    if len(pairs.answered) < MIN_ANSWERS:
        return ClassifierEvaluation(len(pairs.answered), learned_from)
    rng = np.random.default_rng(0)
    parts, places = np.unique(pairs.parts, return_inverse=True)
    sizes = np.bincount(places, minlength=len(parts))
    called = np.bincount(places, pairs.called, len(parts)) > 0
    of_answered = places[pairs.answered]
    n = np.bincount(of_answered, minlength=len(parts))
    x = np.bincount(of_answered, pairs.present, len(parts))
    low, high = (sizes[:, None] * _draw_shares(rng, n, x, end) for end in ("low", "high"))
    with np.errstate(all="ignore"):
        estimate = sizes * x / n
        estimate[n == 0] = np.nan if called[n == 0].any() else 0.0
        total, of_called = np.nansum(estimate), np.nansum(estimate[called])
        recalls = [
            low[called].sum(0) / (low[called].sum(0) + high[~called].sum(0)),
            high[called].sum(0) / (high[called].sum(0) + low[~called].sum(0)),
        ]
        precisions = [end[called].sum(0) / sizes[called].sum() for end in (low, high)]
        recall = _make_estimate(of_called / total, *recalls)
        precision = _make_estimate(of_called / sizes[called].sum(), *precisions) if called.any() else NO_ESTIMATE
    return ClassifierEvaluation(
        len(pairs.answered), learned_from, recall, precision, _bound_calibration_error(pairs, places, n, rng)
    )


def _select_pairs(column, chances, strata, threshold, is_drawn_from, rows, present) -> AuditedPairs:
    chosen = np.flatnonzero(is_drawn_from)
    place = np.full(len(chances), -1)
    place[chosen] = np.arange(len(chosen))
    kept = place[rows] >= 0
    called = chances[chosen] >= threshold
    parts = (column * 256 + strata[chosen].astype(np.int64)) * 2 + called
    return AuditedPairs(chances[chosen], parts, called, place[rows[kept]], present[kept])


def _concatenate_pairs(found: list[AuditedPairs]) -> AuditedPairs:
    if not found:
        none = np.zeros(0)
        return AuditedPairs(none, none.astype(int), none.astype(bool), none.astype(int), none.astype(bool))
    starts = np.cumsum([0, *(len(one.chances) for one in found)])
    answered = [one.answered + start for one, start in zip(found, starts, strict=False)]

    def whole(name: str) -> np.ndarray:
        return np.concatenate([getattr(one, name) for one in found])

    return AuditedPairs(whole("chances"), whole("parts"), whole("called"), np.concatenate(answered), whole("present"))


def _draw_shares(rng: np.random.Generator, n: np.ndarray, x: np.ndarray, end: str) -> np.ndarray:
    """Draw shares of positives per part, (parts, DRAW_COUNT). Their quantiles are the exact limits at `end`."""
    first, second = (x, n - x + 1) if end == "low" else (x + 1, n - x)
    draws = np.full((len(n), DRAW_COUNT), 0.0 if end == "low" else 1.0)
    for part in np.flatnonzero((first > 0) & (second > 0)):
        draws[part] = rng.beta(first[part], second[part], DRAW_COUNT)
    return draws


def _make_estimate(value: float, lows: np.ndarray, highs: np.ndarray) -> Estimate:
    if not np.isfinite(value):
        return NO_ESTIMATE
    low, high = float(np.nanpercentile(lows, 2.5)), float(np.nanpercentile(highs, 97.5))
    return Estimate(float(np.clip(value, low, high)), low, high)


def _bound_calibration_error(pairs: AuditedPairs, places: np.ndarray, n: np.ndarray, rng: np.random.Generator) -> float:
    sizes = np.bincount(places, minlength=len(n))
    of_answered = places[pairs.answered]
    weights = (sizes / np.maximum(n, 1))[of_answered]
    order = np.argsort(of_answered, kind="stable")
    starts = np.repeat(np.cumsum(n) - n, n)
    bins = np.minimum((pairs.chances[pairs.answered] * BIN_COUNT).astype(int), BIN_COUNT - 1)
    gaps = weights * (pairs.chances[pairs.answered] - pairs.present)
    errors = []
    for _ in range(DRAW_COUNT // 4):
        drawn = order[starts + rng.integers(0, np.repeat(n, n))]
        errors.append(np.abs(np.bincount(bins[drawn], gaps[drawn], BIN_COUNT)).sum() / weights[drawn].sum())
    return float(np.percentile(errors, 95))
