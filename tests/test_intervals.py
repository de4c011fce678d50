"""Exact intervals miss the truth no oftener than they say, whatever the truth is."""

import numpy as np
import pytest
from scipy import stats

from models.statistics.intervals import at_least, binomial, hypergeometric

COUNTS = np.arange(13)


def test_intervals_of_a_share_are_those_of_the_tables():
    low, high = binomial(3, 10)
    assert (round(float(low), 4), round(float(high), 4)) == (0.0667, 0.6525)  # Clopper & Pearson 1934
    assert float(at_least(298, 298)) == pytest.approx(0.05 ** (1 / 298))
    assert [float(one) for one in binomial(0, 0)] == [0, 1]


@pytest.mark.parametrize("truth", [0.0, 0.01, 0.3, 0.5, 0.97, 1.0])
def test_a_share_is_missed_with_at_most_the_chance_that_was_promised(truth):
    chances = stats.binom.pmf(COUNTS, 12, truth)
    low, high = binomial(COUNTS, 12)
    assert chances[low > truth].sum() <= 0.025 and chances[high < truth].sum() <= 0.025
    assert chances[at_least(COUNTS, 12) > truth].sum() <= 0.05


def test_a_count_in_a_finite_population_is_missed_with_at_most_the_chance_that_was_promised():
    low, high = hypergeometric(COUNTS, 12, 40)
    for truth in range(41):
        chances = stats.hypergeom.pmf(COUNTS, 40, truth, 12)
        assert chances[low > truth].sum() <= 0.025 and chances[high < truth].sum() <= 0.025, truth


def test_nothing_drawn_says_nothing_and_everything_drawn_says_all():
    assert [one.tolist() for one in hypergeometric([0, 7], [0, 20], [20, 20])] == [[0, 7], [20, 7]]


def test_counts_that_cannot_be_are_refused_with_their_values():
    with pytest.raises(ValueError, match="5 of 4"):
        binomial(5, 4)
    with pytest.raises(ValueError, match="confidence is 95"):
        at_least(1, 2, confidence=95)
