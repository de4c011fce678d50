"""Figures of agreement against published and independent values, and their intervals against simulations."""

import math

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from spmll.statistics.agreement_coefficients import (
    cohen_kappa,
    krippendorff_alpha,
    pooled_krippendorff_alpha,
    raw_agreement,
)

# Krippendorff 2011, section A: two observers, ten units, binary.
MEG, OWEN = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]


def patterns_of(*people) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for answers in zip(*people, strict=True):
        given = [answer for answer in answers if answer is not None]
        pattern = (sum(given), len(given) - sum(given))
        found[pattern] = found.get(pattern, 0) + 1
    return found


def test_krippendorff_alpha_matches_the_published_example_of_two_observers():
    assert krippendorff_alpha(patterns_of(MEG, OWEN)).value == pytest.approx(0.095, abs=0.0005)
    assert raw_agreement(patterns_of(MEG, OWEN)).value == pytest.approx(0.6)


def test_krippendorff_alpha_with_missing_answers_matches_a_pairwise_count():
    rng = np.random.default_rng(0)
    people = [[None if rng.random() < 0.3 else int(rng.random() < 0.4) for _ in range(60)] for _ in range(4)]
    units = [[answer for answer in unit if answer is not None] for unit in zip(*people, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    pooled = [answer for unit in units for answer in unit]
    observed = sum(
        sum(one != other for i, one in enumerate(unit) for j, other in enumerate(unit) if i != j) / (len(unit) - 1)
        for unit in units
    ) / len(pooled)
    different = sum(one != other for i, one in enumerate(pooled) for j, other in enumerate(pooled) if i != j)
    expected = different / (len(pooled) * (len(pooled) - 1))
    assert krippendorff_alpha(patterns_of(*people)).value == pytest.approx(1 - observed / expected)


def test_pooled_alpha_equals_alpha_of_one_class_and_ignores_differences_between_classes():
    one = patterns_of(MEG, OWEN)
    assert pooled_krippendorff_alpha([one]).value == pytest.approx(krippendorff_alpha(one).value)
    # Who answers by chance in a rare and in a common class agrees by chance in both, but not in the two pooled.
    rare, common = {(0, 2): 81, (1, 1): 18, (2, 0): 1}, {(2, 0): 81, (1, 1): 18, (0, 2): 1}
    pooled = {pattern: rare[pattern] + common[pattern] for pattern in rare}
    within = pooled_krippendorff_alpha([rare, common])
    assert abs(within.value) < 0.01 < 0.6 < krippendorff_alpha(pooled).value
    assert within.low < 0 < within.high < 0.4
    many = pooled_krippendorff_alpha([{(2, 0): 1, (0, 2): 1} for _ in range(100)])
    assert many.value == 1.0 and many.low > 0.95
    assert math.isnan(pooled_krippendorff_alpha([]).value) and math.isnan(
        pooled_krippendorff_alpha([{(2, 0): 9}]).value
    )


def test_krippendorff_alpha_without_missing_answers_matches_fleiss_kappa():
    """Fleiss 1971, "Measuring nominal scale agreement among many raters": the mean share of pairs that agree, and
    chance from the pooled shares; alpha differs from it by (1 - kappa) / answers alone."""
    rng = np.random.default_rng(0)
    present = rng.binomial(4, rng.choice([0.1, 0.8], 500))
    agree = (present * (present - 1) + (4 - present) * (3 - present)).mean() / 12
    share = present.mean() / 4
    chance = share**2 + (1 - share) ** 2
    kappa = (agree - chance) / (1 - chance)
    patterns = {(k, 4 - k): int((present == k).sum()) for k in range(5)}
    assert krippendorff_alpha(patterns).value == pytest.approx(kappa + (1 - kappa) / (4 * 500))


def test_cohen_kappa_matches_scikit_learn():
    rng = np.random.default_rng(1)
    first = rng.random(80) < 0.3
    second = np.where(rng.random(80) < 0.15, ~first, first)
    table = [[int(((first == one) & (second == other)).sum()) for other in (True, False)] for one in (True, False)]
    assert cohen_kappa(np.array(table)).value == pytest.approx(cohen_kappa_score(first, second))


def test_agreement_figures_are_nan_when_answers_do_not_determine_them():
    assert math.isnan(raw_agreement({}).value) and math.isnan(raw_agreement({(1, 0): 9}).value)
    assert math.isnan(krippendorff_alpha({(2, 0): 9}).value)  # nobody ever said "absent": chance would agree, too
    assert math.isnan(cohen_kappa(np.array([[9, 0], [0, 0]])).value)
    with pytest.raises(ValueError, match=r"\(2, 2\) table, not \(3, 3\)"):
        cohen_kappa(np.ones((3, 3)))


def test_agreement_interval_is_wide_for_few_labels_without_disagreement():
    few, many = raw_agreement({(2, 0): 2, (0, 2): 1}), raw_agreement({(2, 0): 200, (0, 2): 100})
    assert few.value == many.value == 1.0 == few.high
    assert few.low < 0.7 and many.low > 0.97


@pytest.mark.parametrize(("prevalence", "errs", "cells"), [(0.3, 0.05, 60), (0.1, 0.1, 200), (0.5, 0.02, 100)])
def test_agreement_intervals_cover_the_true_value_at_nearly_the_nominal_rate(prevalence, errs, cells):
    """300 projects of two people who err independently: 95 % expected, at least 91 % asked for (2.5 sigma of 300)."""
    rng = np.random.default_rng(2)
    same = (1 - errs) ** 2 + errs**2
    marginal = prevalence * (1 - errs) + (1 - prevalence) * errs
    chance = marginal**2 + (1 - marginal) ** 2
    truth = {"raw": same, "kappa": (same - chance) / (1 - chance)}
    held = dict.fromkeys(truth, 0)
    for _ in range(300):
        shown = rng.random(cells) < prevalence
        first, second = (np.where(rng.random(cells) < errs, ~shown, shown) for _ in range(2))
        table = np.array([[((first == one) & (second == other)).sum() for other in (1, 0)] for one in (1, 0)])
        found = {
            "raw": raw_agreement({(2, 0): table[0, 0], (1, 1): table[0, 1] + table[1, 0], (0, 2): table[1, 1]}),
            "kappa": cohen_kappa(table),
        }
        for name, estimate in found.items():
            held[name] += estimate.low <= truth[name] <= estimate.high
    assert min(held.values()) >= 273, held
