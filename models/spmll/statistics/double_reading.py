"""Recall of labels, corrected for mistakes that show in cells with several independent answers.

Of present cells found by others, a person finds a share s (sensitivity), the double-observer estimate of
ecology (Cook & Jacobson 1979). With q = 1 - s, for each present cell found by any of its k annotators,
q^k / (1 - q^k) are missed by all (negative binomial). Specificity t and wrong presences are treated alike. A
mistake differs from the resolved label, and unresolved cells count either way.

Rates are averaged by share of answers, with exact intervals (Clopper & Pearson 1934) at the effective size
(Korn & Graubard 1998), separately per class. Cells that everybody overlooks are not estimated.
"""

from dataclasses import dataclass

import numpy as np

from spmll.statistics.bounds import Bounds, compute_lower_end, compute_upper_end, divide, draw_beta
from spmll.statistics.certified_recall import CertifiedFigures, LabelTotals

COUNT_AS_LABELED, COUNT_AS_PRESENT, COUNT_AS_ABSENT = 0, 1, 2
"""How cells are counted on which people differ and which nobody has settled."""
COUNTING_WAYS = 3
EPSILON = 1e-6


@dataclass(frozen=True, eq=False)
class DoubleReadings:
    """Counts of independent answers of P people to cells of C classes, two to K per cell.

    Attributes:
        share: (P,), each person's share of all answers.
        present: (COUNTING_WAYS, 2, P, C): present cells found by others, and those this person found, per way to
            count unresolved cells.
        absent: The same for absent cells.
        found, rejected: (C, K + 1), cells labeled present, or absent, by number of annotators.
    """

    share: np.ndarray
    present: np.ndarray
    absent: np.ndarray
    found: np.ndarray
    rejected: np.ndarray

    @property
    def compared_answers(self) -> np.ndarray:
        """Count the answers from which sensitivity is estimated, (C + 1,)."""
        return _append_total(self.present[COUNT_AS_LABELED, 0].sum(0))


@dataclass(frozen=True, eq=False)
class _Rates:
    """Average sensitivity and specificity of annotators, (draws, C + 1) or (C + 1,), or nan."""

    sensitivity: np.ndarray
    specificity: np.ndarray


def correct_recall_for_mistakes(
    certified: CertifiedFigures,
    labels: LabelTotals,
    absent: np.ndarray,
    open_: np.ndarray,
    read: DoubleReadings,
    seed: int = 0,
) -> Bounds:
    """Return the recall of `certified` without assuming that answers are right.

    Audits count as one answer each. Without cells of several answers the interval is 0 to 1.

    Args:
        labels: Labels of `certified`.
        absent: (C,), cells labeled absent.
        open_: (C,), cells neither labeled nor accepted.
        read: Cells with several answers.
    """
    rng = np.random.default_rng(seed)
    draws = len(certified.sums.most)
    disputed, denied, open_ = map(_append_total, (labels.disagreed_present, labels.disagreed_absent, open_))
    found, rejected = _count_by_people(labels.present, read.found), _count_by_people(absent, read.rejected)

    def right(rates: _Rates) -> np.ndarray:
        """Count the cells rightly labeled present, by number of annotators."""
        return np.maximum(found - rejected * _expected_unnoticed(rates.specificity, rejected.shape[1]), 0)

    usual = _Rates(
        _average_rate(read, read.present[COUNT_AS_LABELED])[0], _average_rate(read, read.absent[COUNT_AS_LABELED])[0]
    )
    worst = _Rates(
        _draw_rates(read, read.present[COUNT_AS_PRESENT], 0, draws, rng),
        _draw_rates(read, read.absent[COUNT_AS_ABSENT], 0, draws, rng),
    )
    best = _Rates(
        _draw_rates(read, read.present[COUNT_AS_ABSENT], 1, draws, rng),
        _draw_rates(read, read.absent[COUNT_AS_PRESENT], 1, draws, rng),
    )
    sums = certified.sums
    labeled, fewest, most = right(usual), right(worst), right(best)
    missing = (labeled * _expected_unnoticed(usual.sensitivity, found.shape[1])).sum(-1)
    missing = missing + _estimate_open_positives(certified.missing.estimate, open_, usual)
    at_most = _draw_missed(fewest, worst, 1, rng) + sums.most / np.maximum(worst.sensitivity, EPSILON) + denied
    # Some cells that audits call present are absent.
    at_least = _draw_missed(most, best, 0, rng) + np.maximum(sums.least - open_ * (1 - worst.specificity), 0)
    labeled = labeled.sum(-1) + certified.right
    fewest, most = np.maximum(fewest.sum(-1) - disputed, 0) + sums.worst, most.sum(-1) + sums.best
    return Bounds(
        divide(labeled, labeled + missing, np.nan),
        compute_lower_end(divide(fewest, fewest + at_most, 0.0)),
        compute_upper_end(divide(most, most + at_least, 1.0)),
    )


def _count_by_people(labeled: np.ndarray, several: np.ndarray) -> np.ndarray:
    """Count the labeled cells by number of annotators, (C + 1, K + 1)."""
    by_people = several.copy()
    by_people[:, 1] = np.maximum(labeled - several.sum(1), 0)
    return np.concatenate([by_people, by_people.sum(0, keepdims=True)])


def _expected_unnoticed(rate: np.ndarray, most: int) -> np.ndarray:
    """Return the expected number of cells that k annotators all miss per noticed cell, (..., most) for k < most."""
    q = np.clip(1 - rate, 0, 1 - EPSILON)[..., None]
    by_people = np.zeros((*rate.shape, most))
    power = q ** np.arange(1, most)
    by_people[..., 1:] = power / (1 - power)
    return by_people


def _draw_missed(found: np.ndarray, rates: _Rates, more: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the number of present cells that all annotators called absent, (draws, C + 1). `more` 1: upper limits."""
    noticed = np.clip(1 / (1 + _expected_unnoticed(rates.sensitivity, found.shape[-1])), EPSILON, 1)
    # The pseudo-count is added where its effect is largest; two of them would make the sum too wide.
    added = np.zeros(found.shape)
    added[..., 1] = more
    drawn = rng.negative_binomial(np.maximum(found + added, EPSILON), noticed)
    return np.where(found + added > 0, drawn, 0).sum(-1)


def _estimate_open_positives(missing: np.ndarray, open_: np.ndarray, usual: _Rates) -> np.ndarray:
    """Return the number of positives among open cells, corrected for mistakes (Rogan & Gladen 1978), or nan."""
    better_than_chance = usual.sensitivity + usual.specificity - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (missing - open_ * (1 - usual.specificity)) / better_than_chance
    return np.where(better_than_chance > 0, np.clip(found, 0, open_), np.nan)


def _draw_rates(
    read: DoubleReadings, counts: np.ndarray, more: int, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw lower (`more` 0) or upper (1) limits of an average rate, (draws, C + 1)."""
    mean, size = _average_rate(read, counts)
    right = np.nan_to_num(mean) * size
    return draw_beta(rng, right + more, size - right + 1 - more, (draws, len(size)))


def _average_rate(read: DoubleReadings, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the average rate over annotators (C + 1,), and its effective number of answers."""
    asked, right = (np.concatenate([part, part.sum(1, keepdims=True)], 1) for part in counts)
    weight = read.share[:, None] * (asked > 0)
    weight = divide(weight, weight.sum(0), 0.0)
    size = divide(np.ones(asked.shape[1]), (weight**2 / np.maximum(asked, 1)).sum(0), 0.0)
    mean = (weight * divide(right, asked, 0.0)).sum(0)
    return np.where(size > 0, mean, np.nan), size


def _append_total(cells: np.ndarray) -> np.ndarray:
    return np.append(cells, cells.sum())
