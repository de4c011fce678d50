"""How often people err, against the exact posterior of a tiny case and in simulations with known error rates."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.special import betaln

from annotator.quality.disagreement_resolution import MIN_SURE_PROBABILITY
from spmll.statistics.error_rates import (
    PRIOR_STRENGTH,
    estimate_error_rates,
    estimate_probabilities,
    sample_error_rates,
)

# Three people, five cells of one class; Cid did not see two of them.
CELLS = [
    ((0, True), (1, True), (2, False)),
    ((0, True), (1, False), (2, True)),
    ((0, False), (1, False), (2, False)),
    ((0, False), (1, True)),
    ((0, True), (1, True)),
]


def test_estimated_error_rates_equal_the_exact_posterior_of_a_small_case():
    # With conjugate priors the rates integrate out: the weight of a truth is a product of Beta functions.
    means = {"sensitivity": np.array([0.9, 0.8, 0.7]), "specificity": np.array([0.95, 0.85, 0.9])}
    weights, present, sensitivity = [], [], []
    for truth in product([True, False], repeat=len(CELLS)):
        log = betaln(1 + sum(truth), 1 + len(truth) - sum(truth))
        mean_of = []
        for person in range(3):
            said = [(is_, dict(cell)[person]) for is_, cell in zip(truth, CELLS, strict=True) if person in dict(cell)]
            for state, name in ((True, "sensitivity"), (False, "specificity")):
                of = [answer == state for is_, answer in said if is_ == state]
                a, b = PRIOR_STRENGTH * means[name][person], PRIOR_STRENGTH * (1 - means[name][person])
                log += betaln(a + sum(of), b + len(of) - sum(of)) - betaln(a, b)
                if state:
                    mean_of.append((a + sum(of)) / (a + b + len(of)))
        weights.append(np.exp(log))
        present.append(truth)
        sensitivity.append(mean_of)
    exact = np.average(present, axis=0, weights=weights)
    patterns = Counter((0, cell) for cell in CELLS)
    found = sample_error_rates(patterns, means["sensitivity"][:, None], means["specificity"][:, None])
    assert [found.probability[0, cell] for cell in CELLS] == pytest.approx(exact, abs=0.02)
    assert found.sensitivity[:, 0, 0] == pytest.approx(np.average(sensitivity, axis=0, weights=weights), abs=0.01)


def answered(seed, people=4, classes=3, cells=400):
    """Rates, and what people with these rates said."""
    rng = np.random.default_rng(seed)
    sensitivity = rng.beta(16, 4, (people, 1)) * rng.uniform(0.9, 1, (people, classes))
    specificity = rng.beta(38, 2, (people, classes))
    patterns = Counter()
    for class_ in range(classes):
        for _ in range(cells):
            is_ = rng.random() < 0.3
            who = np.sort(rng.choice(people, rng.integers(2, 4), replace=False))
            says = [rng.random() < (sensitivity[j, class_] if is_ else 1 - specificity[j, class_]) for j in who]
            patterns[class_, tuple((int(j), bool(said)) for j, said in zip(who, says, strict=True))] += 1
    return sensitivity, specificity, patterns


def simulated(seed):
    sensitivity, specificity, patterns = answered(seed)
    return sensitivity, specificity, estimate_error_rates(patterns, *sensitivity.shape)


@pytest.mark.slow
def test_credible_intervals_cover_the_true_error_rates():
    held = [
        (found[..., 1] <= true) & (true <= found[..., 2])
        for seed in range(8)
        for sensitivity, specificity, rates in [simulated(seed)]
        for true, found in ((sensitivity, rates.sensitivity), (specificity, rates.specificity))
    ]
    assert np.mean(held) > 0.93  # of 192 rates


@pytest.mark.slow
def test_error_rate_estimates_from_few_samples_resolve_disagreements_as_many_samples_do():
    apart, opposite, of = 0, 0, 0
    for seed in range(4):
        *_, patterns = answered(seed)
        many, few = estimate_error_rates(patterns, 4, 3).probability, estimate_probabilities(patterns, 4, 3)
        for pattern, cells in patterns.items():
            if len({said for _, said in pattern[1]}) == 2:
                first, second = (
                    (at[pattern] >= MIN_SURE_PROBABILITY) - (at[pattern] <= 1 - MIN_SURE_PROBABILITY)
                    for at in (many, few)
                )
                apart, opposite, of = apart + cells * (first != second), opposite + (first * second < 0), of + cells
    assert of > 1000 and opposite == 0 and apart < 0.04 * of


def test_disagreement_is_decided_for_the_more_reliable_annotator():
    careful = {(0, ((0, True), (1, True), (2, True))): 100, (0, ((0, False), (1, False), (2, False))): 100}
    errors = {(0, ((0, True), (1, True), (2, False))): 60, (0, ((0, False), (1, False), (2, True))): 60}
    differ = {(0, ((0, True), (2, False))): 1, (0, ((0, False), (2, True))): 1}
    rates = estimate_error_rates({**careful, **errors, **differ}, 3, 1)
    assert rates.probability[0, ((0, True), (2, False))] > 0.9 > 0.1 > rates.probability[0, ((0, False), (2, True))]
    assert rates.sensitivity[2, 0, 2] < rates.sensitivity[0, 0, 1]


def test_error_rates_refuse_labels_with_a_single_answer():
    with pytest.raises(ValueError, match="two people or more"):
        estimate_error_rates({(0, ((0, True),)): 5}, 1, 1)
