"""Recall of labels, corrected for people's mistakes, which show in cells that several people answered independently.

Of the present cells that somebody else calls present, a person calls a share s present, too (sensitivity), whatever the
others find: the double-observer estimate of ecology (Lincoln 1930; Cook & Jacobson, Biometrics 35, 1979). So with q = 1
- s, for each present cell that k people answered and at least one found, q^k / (1 - q^k) are missed; their number is
negative binomial. Specificity t, and the number of cells wrongly called present, are found in the same way. A mistake
is an answer that differs from the label, which a reviewer has settled where people differ; cells that nobody has
settled count either way.

People's rates are averaged by how much each answers. The interval of such an average is the exact one (Clopper &
Pearson 1934) of the number of answers with the same variance (Korn & Graubard, Survey Methodology 24, 1998; Kish's
effective size). Rates come from a class's own cells, for all classes together from all of them: no class is assumed to
be like another.

The estimate misses what everybody overlooks because it is hard. People who overlook the same things agree more than
they are right. Coverage is checked by simulation: `annotator bench certificate`.
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
    """The answers of P people to cells of C classes that two to K of them answered without seeing each other's answers.

    Attributes:
        share: (P,) float, each person's share of all answers in this project.
        present: (COUNTING_WAYS, 2, P, C) int: present cells that somebody else called present, and the number of
            those that this
            person called present, too.
        absent: (COUNTING_WAYS, 2, P, C) int: absent cells, counted in the same way.
        found: (C, K + 1) int, cells labeled present, by the number of people who answered them.
        rejected: (C, K + 1) int, cells labeled absent, by the number of people who answered them.
    """

    share: np.ndarray
    present: np.ndarray
    absent: np.ndarray
    found: np.ndarray
    rejected: np.ndarray

    @property
    def compared_answers(self) -> np.ndarray:
        """Return the number of answers from which sensitivity is estimated, (C + 1,) int, the last for all classes."""
        return _append_total(self.present[COUNT_AS_LABELED, 0].sum(0))


@dataclass(frozen=True, eq=False)
class _Rates:
    """Average sensitivity and specificity: draws (draws, C + 1), or the estimate (C + 1,); nan: unknown."""

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
    """Return the recall of `certified` without the assumption that people's answers are right.

    Audits count as answered by one person each. Without evidence the interval reaches from 0 to 1.

    Args:
        certified: The certificate that takes people's answers as right.
        labels: The labels from which `certified` was made.
        absent: (C,) int, cells labeled absent.
        open_: (C,) int, cells that are neither labeled nor auto-accepted.
        read: Cells that several people answered, of the same classes.
        seed: Decides the draws.
    """
    rng = np.random.default_rng(seed)
    draws = len(certified.sums.most)
    disputed, denied, open_ = map(_append_total, (labels.disagreed_present, labels.disagreed_absent, open_))
    found, rejected = _count_by_people(labels.present, read.found), _count_by_people(absent, read.rejected)

    def right(rates: _Rates) -> np.ndarray:
        """Return cells rightly labeled present, by the number of people who answered them: (..., C + 1, K + 1)."""
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
    """Return cells by the number of people who answered them, (C + 1, K + 1), given those that several answered."""
    by_people = several.copy()
    by_people[:, 1] = np.maximum(labeled - several.sum(1), 0)
    return np.concatenate([by_people, by_people.sum(0, keepdims=True)])


def _expected_unnoticed(rate: np.ndarray, most: int) -> np.ndarray:
    """Return, for each cell that k people answered and one at least noticed, how many nobody noticed: (..., most)."""
    q = np.clip(1 - rate, 0, 1 - EPSILON)[..., None]
    by_people = np.zeros((*rate.shape, most))
    power = q ** np.arange(1, most)
    by_people[..., 1:] = power / (1 - power)
    return by_people


def _draw_missed(found: np.ndarray, rates: _Rates, more: int, rng: np.random.Generator) -> np.ndarray:
    """Return draws (draws, C + 1) of the number of present cells called absent by all, for those that were found.

    Args:
        found: (..., C + 1, K + 1) present cells that were found, by the number of people who answered them.
        rates: The rates at which people answer rightly.
        more: 1 for draws of an upper limit, 0 for those of a lower one.
        rng: Decides the draws.
    """
    noticed = np.clip(1 / (1 + _expected_unnoticed(rates.sensitivity, found.shape[-1])), EPSILON, 1)
    # The pseudo-count is added where its effect is largest; two of them would make the sum too wide.
    added = np.zeros(found.shape)
    added[..., 1] = more
    drawn = rng.negative_binomial(np.maximum(found + added, EPSILON), noticed)
    return np.where(found + added > 0, drawn, 0).sum(-1)


def _estimate_open_positives(missing: np.ndarray, open_: np.ndarray, usual: _Rates) -> np.ndarray:
    """Return the positives among open cells, corrected for mistakes in audits; nan if rates are mere chance.

    Source: Rogan & Gladen, American Journal of Epidemiology 107, 1978.
    """
    better_than_chance = usual.sensitivity + usual.specificity - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (missing - open_ * (1 - usual.specificity)) / better_than_chance
    return np.where(better_than_chance > 0, np.clip(found, 0, open_), np.nan)


def _draw_rates(
    read: DoubleReadings, counts: np.ndarray, more: int, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Return draws (draws, C + 1) of the lower limit of a rate (more = 0), or the upper one (more = 1)."""
    mean, size = _average_rate(read, counts)
    right = np.nan_to_num(mean) * size
    return draw_beta(rng, right + more, size - right + 1 - more, (draws, len(size)))


def _average_rate(read: DoubleReadings, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return everybody's average rate (C + 1,), nan without any answer, and its equivalent number of answers.

    Args:
        read: Cells that several people answered.
        counts: (2, P, C): answers, and how many of them were right.
    """
    asked, right = (np.concatenate([part, part.sum(1, keepdims=True)], 1) for part in counts)
    weight = read.share[:, None] * (asked > 0)
    weight = divide(weight, weight.sum(0), 0.0)
    size = divide(np.ones(asked.shape[1]), (weight**2 / np.maximum(asked, 1)).sum(0), 0.0)
    mean = (weight * divide(right, asked, 0.0)).sum(0)
    return np.where(size > 0, mean, np.nan), size


def _append_total(cells: np.ndarray) -> np.ndarray:
    return np.append(cells, cells.sum())
