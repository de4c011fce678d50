"""The figures by which methods are judged, against numbers worked out by hand and by scikit-learn."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from models.statistics.metrics import (
    asl_average_precision,
    average_precision,
    best_threshold,
    expected_calibration_error,
    hidden_average_precision,
    mean_average_precision,
    precision_at,
)

# Made with scikit-learn 1.9.1 by the evaluation code of Cole et al.; scores have one decimal, so many are equal.
GOLDEN = json.loads(Path(__file__).with_name("golden_losses.json").read_text())["metric"]


def test_average_precision_by_hand():
    # Hits at ranks 1 and 3: (1/1 + 2/3) / 2.
    assert average_precision([0.9, 0.8, 0.7, 0.1], [1, 0, 1, 0]) == pytest.approx((1 + 2 / 3) / 2)


def test_average_precision_of_equal_scores_does_not_depend_on_their_order():
    # All four tie: one step, precision 1/4 at recall 1.
    for place in range(4):
        truth = np.arange(4) == place
        assert average_precision(np.full(4, 0.5), truth) == pytest.approx(0.25)


def test_average_precision_is_that_of_scikit_learn_class_by_class():
    scores, truth = np.array(GOLDEN["y_score"]), np.array(GOLDEN["y_true"])
    for column, expected in enumerate(GOLDEN["ap"]):
        ours = average_precision(scores[:, column], truth[:, column])
        if truth[:, column].any():
            assert ours == pytest.approx(expected, rel=1e-12)
        else:
            assert math.isnan(ours)


def test_the_average_precision_of_asl_takes_equal_scores_one_by_one_the_last_first():
    scores = np.full(3, 0.5)
    assert asl_average_precision(scores, [0, 0, 1]) == pytest.approx(1, abs=1e-7)
    assert asl_average_precision(scores, [1, 0, 0]) == pytest.approx(1 / 3, abs=1e-7)
    assert average_precision(scores, [1, 0, 0]) == pytest.approx(1 / 3, abs=1e-12)
    assert average_precision(scores, [0, 0, 1]) == pytest.approx(1 / 3, abs=1e-12)


def test_the_average_precision_of_asl_lacks_a_hundred_millionth_where_no_scores_are_equal():
    generator = np.random.default_rng(0)
    scores, truth = generator.permutation(40) / 40, generator.random(40) < 0.2
    hits = truth.sum()
    expected = average_precision(scores, truth) * hits / (hits + 1e-8)
    assert asl_average_precision(scores, truth) == pytest.approx(expected, rel=1e-14)
    # By hand: hits at ranks 1 and 3.
    assert asl_average_precision([0.9, 0.8, 0.7], [1, 0, 1]) == pytest.approx((1 + 2 / 3) / (2 + 1e-8), rel=1e-14)


def test_the_average_precision_of_asl_is_zero_where_nothing_is_true_and_ranks_nan_last():
    assert asl_average_precision([0.3, 0.2], [0, 0]) == 0
    assert math.isnan(asl_average_precision([], []))
    assert asl_average_precision([np.nan, 0.1], [1, 0]) == pytest.approx(0.5, abs=1e-7)


def test_class_without_positives_is_left_out_or_counted_as_zero():
    scores, truth = np.array(GOLDEN["y_score"]), np.array(GOLDEN["y_true"])
    assert mean_average_precision(scores, truth, empty_as_zero=True) == pytest.approx(GOLDEN["map"] / 100, rel=1e-12)
    with_positives = [ap for ap, any_true in zip(GOLDEN["ap"], truth.any(0), strict=True) if any_true]
    assert mean_average_precision(scores, truth) == pytest.approx(np.mean(with_positives), rel=1e-12)


def test_nothing_true_gives_nan_and_not_a_warning():
    with np.errstate(all="raise"):
        assert math.isnan(average_precision([0.5, 0.2], [0, 0]))
        assert math.isnan(mean_average_precision(np.ones((2, 2)), np.zeros((2, 2))))
        assert math.isnan(average_precision([], []))
        assert mean_average_precision(np.ones((2, 2)), np.zeros((2, 2)), empty_as_zero=True) == 0


def test_a_positive_without_a_score_ranks_last():
    assert average_precision([np.nan, 0.1, 0.2], [1, 0, 0]) == pytest.approx(1 / 3)


def test_cells_without_a_score_are_one_step_whatever_their_order(recwarn):
    for place in range(4):
        truth = np.concatenate([[1, 0], np.arange(4) == place])
        scores = np.array([0.9, 0.8, *[np.nan] * 4])
        assert average_precision(scores, truth) == pytest.approx((1 + 2 / 6) / 2)
        assert average_precision(scores[::-1], truth[::-1]) == pytest.approx((1 + 2 / 6) / 2)
    assert not recwarn.list


def test_hidden_average_precision_ranks_unseen_cells_only():
    truth = np.array([[1, 1], [0, 1]])
    labels = np.array([[1, 0], [0, 0]], np.int8)
    probabilities = np.array([[0.01, 0.9], [0.8, 0.7]])
    found = hidden_average_precision(probabilities, labels, truth)
    # Unseen: 0.9 hidden, 0.8 absent, 0.7 hidden. The first class hides nothing, the second hides all that is unseen.
    assert found.cells == pytest.approx((1 + 2 / 3) / 2)
    assert found.classes == pytest.approx(1.0)


def test_confirmed_absent_cells_do_not_count_as_hidden_or_as_mistakes():
    truth = np.array([[1, 0, 1]])
    probabilities = np.array([[0.2, 0.9, 0.3]])
    assert hidden_average_precision(probabilities, np.array([[0, -1, 1]]), truth).cells == 1.0


def test_hidden_average_precision_of_complete_labels_is_nan():
    found = hidden_average_precision(np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2)))
    assert math.isnan(found.cells)
    assert math.isnan(found.classes)


@pytest.mark.parametrize(("k", "expected"), [(1, 1.0), (2, 0.5), (3, 2 / 3), (99, 0.5)])
def test_precision_at_k_by_hand(k, expected):
    assert precision_at([0.9, 0.8, 0.7, 0.1], [1, 0, 1, 0], k) == pytest.approx(expected)


def test_precision_at_zero_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        precision_at([0.5], [1], 0)


def test_calibration_error_by_hand():
    # Two bins. Lower: 0.1, 0.3 with one of two true: gap 0.3. Upper: 0.8, 1.0, both true: gap 0.1. Equal weights.
    assert expected_calibration_error([0.1, 0.3, 0.8, 1.0], [0, 1, 1, 1], bins=2) == pytest.approx(0.2)


def test_probabilities_that_come_true_as_often_as_they_say_have_no_calibration_error():
    assert expected_calibration_error(np.full(4, 0.25), [1, 0, 0, 0]) == pytest.approx(0.0)


def test_calibration_ignores_cells_without_a_probability_and_refuses_logits():
    assert expected_calibration_error([np.nan, 1.0], [1, 1]) == 0
    assert math.isnan(expected_calibration_error([np.nan], [1]))
    with pytest.raises(ValueError, match="Are these logits"):
        expected_calibration_error([-3.0, 2.0], [0, 1])


@pytest.mark.parametrize("metric", [average_precision, mean_average_precision, expected_calibration_error])
def test_shapes_that_differ_are_named(metric):
    with pytest.raises(ValueError, match=r"\(3, 2\) beside \(2, 2\)"):
        metric(np.ones((3, 2)), np.ones((2, 2)))


def test_the_best_threshold_is_half_of_the_f1_it_reaches_and_nothing_is_filled_in_where_that_would_cost():
    chances = np.random.default_rng(0).beta(0.3, 1.2, 20_000)
    threshold = best_threshold(500, chances)
    filled = chances >= threshold
    reached = 2 * (500 + chances[filled].sum()) / (500 + filled.sum() + 500 + chances.sum())
    assert threshold == pytest.approx(reached / 2, abs=0.01)
    assert best_threshold(1000, np.full(10, 0.1)) == 1.0
    assert best_threshold(0, np.array([np.nan, 0.3])) == pytest.approx(0.3)
