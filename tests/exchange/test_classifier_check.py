"""What audits say of a classifier: each answer stands for the pairs of its stratum, and intervals hold the truth."""

import numpy as np
import pytest

from annotator.quality.classifier_evaluation import MIN_ANSWERS, AuditedPairs, evaluate_pairs

STRATA = ((0.02, 4000, 40), (0.4, 800, 40), (0.85, 200, 40))  # share present, pairs, answered


def drawn(rng: np.random.Generator, bias: float = 0.0) -> tuple[AuditedPairs, tuple[float, float, float]]:
    """Pairs with the answers of an audit, and the true recall, precision and calibration error."""
    parts = []
    for stratum, (share, size, some) in enumerate(STRATA):
        true = np.clip(rng.normal(share, 0.05, size), 0, 1)
        answered = np.zeros(size, bool)
        answered[rng.choice(size, some, replace=False)] = True
        chances = np.clip(true + bias, 0, 1)
        parts.append(np.column_stack([chances, rng.random(size) < true, np.full(size, stratum), answered, true]))
    chances, present, strata, answered, true = np.concatenate(parts).T
    called, shown, places = chances >= 0.45, present > 0, np.flatnonzero(answered)
    pairs = AuditedPairs(chances, strata.astype(int) * 2 + called, called, places, shown[places])
    off = float(np.abs(chances - true).mean())
    return pairs, (shown[called].sum() / shown.sum(), shown[called].mean(), off)


def test_classifier_recall_and_precision_intervals_cover_the_true_values():
    rng, rounds, held = np.random.default_rng(1), 100, np.zeros(3)
    for _ in range(rounds):
        pairs, truth = drawn(rng)
        check = evaluate_pairs(pairs, learned_from=False)
        for place, found in enumerate((check.recall, check.precision)):
            held[place] += found.low <= truth[place] <= found.high
        held[2] += truth[2] <= check.calibration_error
    assert (held >= 0.93 * rounds).all(), held


def test_classifier_recall_and_precision_intervals_are_reasonably_narrow():
    check = evaluate_pairs(drawn(np.random.default_rng(3))[0], learned_from=False)
    assert check.recall.high - check.recall.low < 0.6 and check.precision.high - check.precision.low < 0.5


def test_overconfident_classifier_has_a_large_calibration_error():
    rng = np.random.default_rng(2)
    errors = [evaluate_pairs(drawn(rng, bias)[0], learned_from=True).calibration_error for bias in (0.0, 0.2)]
    assert errors[1] > 0.15 and errors[1] > errors[0] + 0.03


@pytest.mark.parametrize("answers", [0, MIN_ANSWERS - 1])
def test_classifier_check_with_too_few_answers_reports_nan(answers):
    pairs, _ = drawn(np.random.default_rng(0))
    few = AuditedPairs(pairs.chances, pairs.parts, pairs.called, pairs.answered[:answers], pairs.present[:answers])
    check = evaluate_pairs(few, learned_from=False)
    assert check.answers == answers and np.isnan([check.recall.value, check.calibration_error]).all()
