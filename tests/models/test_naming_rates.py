"""How rarely classes are marked where they are there, estimated from the marks alone."""

import numpy as np
import pytest
import torch

from annotator.benchmark.datasets import draw_clicks
from annotator.benchmark.first_named_class import Naming, compute_naming_rates
from spmll.ensemble.fit_ensemble import Ensemble, LabeledImages, fit_ensemble
from spmll.ensemble.moments import Moments
from spmll.ensemble.naming_rates import (
    EPSILON,
    HALFWAY_MARKS,
    MAX_RATE,
    MIN_RATE,
    estimate_log_naming_rates,
    predict_leave_one_out,
)
from spmll.methods import make_method
from spmll.statistics.metrics import hidden_average_precision

CLASSES, DIMENSIONS = 6, 32


def things(images: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features (N, D) in which each class that an image shows (N, C) lights up a few dimensions of its own."""
    rng = np.random.default_rng(seed)
    truth = rng.random((images, CLASSES)) < 0.35
    truth[np.arange(images), rng.integers(0, CLASSES, images)] = True
    looks = np.abs(rng.normal(size=(CLASSES, DIMENSIONS))) * (rng.random((CLASSES, DIMENSIONS)) < 0.3)
    return (np.abs(rng.normal(size=(images, DIMENSIONS))) + 3 * truth @ looks).astype(np.float32), truth


def trained(features: np.ndarray, labels: np.ndarray, overlooked: float) -> tuple[Ensemble, np.ndarray]:
    rows = np.flatnonzero(labels.any(1))
    model = Ensemble(make_method("auto", overlooked=overlooked), DIMENSIONS, CLASSES)
    for _ in fit_ensemble(model, LabeledImages(features, None, rows, labels[rows])):
        pass
    return model, model.probabilities(features, None)


def test_leave_one_out_predictions_and_estimated_naming_rates_equal_explicit_refits():
    rng = np.random.default_rng(0)
    units = torch.from_numpy(rng.normal(size=(40, 5)) / 3)
    marked = torch.from_numpy(rng.random((40, 3)) < 0.4)
    answers, ridge = marked.double(), 0.7
    level = answers.mean(0)
    moments = Moments.build(units, answers - level)
    left_out = torch.zeros(40, 3, dtype=torch.double)
    for row in range(40):
        others = torch.arange(40) != row
        rest = Moments.build(units[others], answers[others] - level)
        intercept = (answers[others] - level).mean(0)
        # The centre of all rows stays: only the intercept and the answer of the row itself are gone.
        left_out[row] = (units[row] - rest.mean) @ rest.solve(ridge) + intercept + level
    predicted = predict_leave_one_out(moments, moments.solve(ridge), level, ridge, units, marked)
    assert predicted.numpy() == pytest.approx(left_out.numpy(), abs=1e-9)
    logs = estimate_log_naming_rates(predicted, level, marked)
    rates = [left_out[marked[:, column], column].clamp(EPSILON, 1).mean() for column in range(3)]
    by_hand, marks = torch.stack(rates).clamp(MIN_RATE, MAX_RATE), marked.sum(0)
    stands_out = (1 - level / by_hand).clamp(0, 1)
    usual = (by_hand.log() * marks * stands_out).sum() / (marks * stands_out).sum().clamp(min=EPSILON)
    expected = (by_hand.log() - usual) * stands_out * marks / (marks + HALFWAY_MARKS)
    assert (expected != 0).any() and logs.numpy() == pytest.approx(expected.numpy(), abs=1e-9)


def test_estimated_naming_rates_follow_the_true_ones_and_improve_hidden_ap():
    gains, right = [], []
    for seed in range(4):
        features, truth = things(600, seed)
        labels = draw_clicks(truth, 1.0, seed, Naming("salient", 2))
        model, probabilities = trained(features, labels, 0.5)
        gains.append(
            hidden_average_precision(probabilities, labels, truth).cells
            - hidden_average_precision(trained(features, labels, 0.0)[1], labels, truth).cells
        )
        right.append(np.corrcoef(model.raised.numpy(), -np.log(compute_naming_rates(truth, labels)))[0, 1])
    assert min(right) > 0.8 and np.mean(gains) > 0.01, (right, gains)


def test_correction_for_unnamed_classes_barely_changes_hidden_ap_with_random_clicks():
    changes = []
    for seed in range(4):
        features, truth = things(600, seed)
        labels = draw_clicks(truth, 1.0, seed)
        found = [hidden_average_precision(trained(features, labels, much)[1], labels, truth).cells for much in (0, 0.5)]
        changes.append(found[1] - found[0])
    assert abs(np.mean(changes)) < 0.005, changes


def test_logits_of_a_class_with_few_present_labels_are_raised_little():
    features, truth = things(300, 0)
    labels = draw_clicks(truth, 1.0, 0)
    labels[:, 4] = 0
    rare = np.flatnonzero(labels[:, 5] == 1)
    labels[rare[1:], 5] = 0
    raised = trained(features, labels, 0.5)[0].raised
    assert raised[4] == 0 and abs(raised[5]) < 0.5 * abs(np.log(MIN_RATE)) / (1 + HALFWAY_MARKS) + 1e-6


def test_logits_of_a_class_that_the_model_cannot_predict_are_barely_raised():
    features, truth = things(600, 0)
    truth[:, 5] = np.random.default_rng(1).random(600) < 0.05  # nothing in the features says where it is
    truth[~truth.any(1), 0] = True
    labels = draw_clicks(truth, 1.0, 0)
    raised = trained(features, labels, 1.0)[0].raised
    assert (labels[:, 5] == 1).sum() >= 10 and abs(raised[5]) < 0.3, raised


def test_auto_method_refuses_an_overlooked_share_above_one():
    with pytest.raises(ValueError, match=r"overlooked = 1\.5"):
        make_method("auto", overlooked=1.5)
