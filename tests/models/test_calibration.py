"""Calibration: probabilities come to mean what they say, rare classes lean on all others, the order stays."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from spmll.statistics.calibration import (
    CALIBRATIONS,
    CLASS_PRIOR_STD,
    CLASS_PRIOR_WEIGHT,
    EM_ROUNDS,
    LINE_BOUNDS,
    POOLED_PRIOR_STD,
    Calibration,
    fit_calibration,
)
from spmll.statistics.metrics import expected_calibration_error

KINDS = sorted(CALIBRATIONS)


def answers(rng, n: int, classes: int, slope: float = 1.0, shift: float = 0.0):
    """Logits of a model whose true logits are slope * logit + shift, and what people find: (n,) each."""
    logits = rng.normal(-1, 2.5, n)
    return logits, rng.integers(0, classes, n), rng.random(n) < expit(slope * logits + shift)


def fitted(kind: str, found, n_classes: int, weights: np.ndarray | None = None) -> Calibration:
    logits, classes, present = found
    return fit_calibration(
        kind, logits, classes, present, np.ones(len(logits)) if weights is None else weights, n_classes
    )


@pytest.mark.parametrize("kind", KINDS)
def test_calibration_corrects_overconfident_probabilities(kind):
    rng = np.random.default_rng(0)
    found = fitted(kind, answers(rng, 3000, 5, slope=0.4), 5)
    logits, classes, present = answers(rng, 20_000, 5, slope=0.4)
    before = expected_calibration_error(expit(logits), present)
    after = expected_calibration_error(np.take_along_axis(_every(found, logits), classes[:, None], 1)[:, 0], present)
    assert before > 0.1 and after < 0.03, (before, after)


@pytest.mark.parametrize("kind", KINDS)
def test_calibration_hardly_changes_calibrated_probabilities(kind):
    rng = np.random.default_rng(1)
    found = fitted(kind, answers(rng, 2000, 5), 5)
    logits, classes, present = answers(rng, 20_000, 5)
    after = np.take_along_axis(_every(found, logits), classes[:, None], 1)[:, 0]
    assert expected_calibration_error(after, present) < 0.03
    assert np.abs(after - expit(logits)).max() < 0.2


def test_class_with_few_answers_gets_a_calibration_close_to_that_of_all_classes():
    rng = np.random.default_rng(2)
    logits, classes, present = answers(rng, 4000, 8, slope=0.6, shift=1.0)
    own = rng.normal(-1, 2.5, 1000)
    logits = np.concatenate([logits, [0.0, 1.0], own])
    classes = np.concatenate([classes, [8, 8], np.full(1000, 9)])
    present = np.concatenate([present, [True, False], rng.random(1000) < expit(0.6 * own - 0.5)])
    found = fitted("platt", (logits, classes, present), 11)
    assert abs(found.shifts[8] - 0.9) < 0.5
    assert abs(found.shifts[9] + 0.5) < 0.2
    assert found.shifts[10] == pytest.approx(found.shifts[:8].mean(), abs=0.4), "no answers: the map of all classes"


@pytest.mark.parametrize("kind", KINDS)
def test_calibration_without_answers_changes_nothing(kind):
    found = fitted(kind, (np.zeros(0), np.zeros(0, int), np.zeros(0, bool)), 3)
    given = np.array([[-3.0, np.nan, 2.0]])
    np.testing.assert_allclose(found.apply(given), expit(given))


@pytest.mark.parametrize("state", [True, False])
@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_calibration_with_identical_answers_keeps_probabilities_between_zero_and_one(kind, state):
    found = fitted(kind, (np.linspace(-2, 2, 60), np.zeros(60, int), np.full(60, state)), 2)
    told = found.apply(np.linspace(-4, 4, 50)[:, None].repeat(2, 1))
    assert np.isfinite(told).all() and (told > 0).all() and (told < 1).all()
    assert (told[25] > 0.8).all() if state else (told[25] < 0.2).all()


@pytest.mark.parametrize("kind", KINDS)
def test_calibration_flattens_a_model_worse_than_chance_without_reversing_its_ranking(kind):
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 2, 4000)
    found = fitted(kind, (logits, np.zeros(4000, int), rng.random(4000) < expit(-logits)), 1)
    told = found.apply(np.linspace(-3, 3, 30)[:, None])[:, 0]
    assert (np.diff(told) > 0).all()
    if kind != "temperature":
        assert told.min() > 0.35 and told.max() < 0.65


@pytest.mark.parametrize("seed", [0, 1, 5, 10])
def test_platt_calibration_of_uninformative_scores_reaches_the_minimum(seed):
    rng = np.random.default_rng(seed)
    logits, present = rng.normal(0, 2.5, 200), rng.random(200) < 0.5
    found = fitted("platt", (logits, np.zeros(200, int), present), 1)
    slope, shift = _line_by_scipy(logits, present)
    assert found.slopes[0] == pytest.approx(slope, rel=1e-3) and found.shifts[0] == pytest.approx(shift, abs=1e-3)


def _line_by_scipy(logits: np.ndarray, present: np.ndarray) -> tuple[float, float]:
    """The slope and shift of a single class by general minimisation, in the steps of `calibration._lines`."""
    middle = logits.mean()

    def least(centre: np.ndarray, deviation: np.ndarray) -> np.ndarray:
        def cost(line):
            values = np.exp(line[0]) * (logits - middle) + line[1] + middle
            return np.sum(np.logaddexp(0, values) - present * values) + np.sum(((line - centre) / deviation) ** 2) / 2

        bounds = list(zip(*LINE_BOUNDS, strict=True))
        tries = [minimize(cost, [start, 0.0], bounds=bounds, tol=1e-14) for start in (-3.0, -1.0, 0.5)]
        return min(tries, key=lambda tried: tried.fun).x

    pooled = each = centre = least(np.zeros(2), np.array(POOLED_PRIOR_STD))
    spread = np.square(CLASS_PRIOR_STD)
    for _ in range(EM_ROUNDS):
        each = least(centre, np.sqrt(spread))
        turned = np.exp(each[0]) * (logits - middle)
        chances = expit(turned + each[1] + middle)
        derivatives = np.stack([turned, np.ones(len(turned))])
        covariance = np.linalg.inv((derivatives * chances * (1 - chances)) @ derivatives.T + np.diag(1 / spread))
        centre = (CLASS_PRIOR_WEIGHT * pooled + each) / (CLASS_PRIOR_WEIGHT + 1)
        spread = (CLASS_PRIOR_WEIGHT * np.square(CLASS_PRIOR_STD) + (each - centre) ** 2 + covariance.diagonal()) / (
            CLASS_PRIOR_WEIGHT + 1
        )
    slope = np.exp(each[0])
    return slope, each[1] + middle * (1 - slope)


@pytest.mark.parametrize("kind", KINDS)
def test_calibration_keeps_the_ranking_within_a_class_and_is_invertible(kind):
    rng = np.random.default_rng(4)
    found = fitted(kind, answers(rng, 3000, 3, slope=0.5, shift=1), 3)
    given = np.sort(rng.normal(-2, 3, (500, 3)), 0)
    told = found.apply(given)
    assert (np.diff(told, axis=0) > 0).all()
    flat = np.tile(np.arange(3), 500)
    np.testing.assert_allclose(found.invert(told.ravel(), flat), given.ravel(), atol=1e-4)
    np.testing.assert_array_equal(found.apply(given[:, [2]], [2])[:, 0], told[:, 2])
    again = Calibration.from_dict(json.loads(json.dumps(found.to_dict())))
    np.testing.assert_allclose(again.apply(given), told, atol=1e-3)


def test_sample_weights_correct_calibration_for_answers_mostly_about_likely_labels():
    """No line fits both halves of these logits: without weights the fit would follow those that were shown most."""
    rng = np.random.default_rng(5)
    logits = rng.normal(-2, 2.5, 60_000)
    truth = expit(np.where(logits > 0, 0.3 * logits, 1.5 * logits) - 1)
    present = rng.random(len(logits)) < truth
    chance = np.where(logits > 0, 0.3, 0.02)
    shown = rng.random(len(logits)) < chance
    data = (logits[shown], np.zeros(shown.sum(), int), present[shown])
    error = {}
    for name, weights in {"weighted": 1 / chance[shown], "plain": np.ones(shown.sum())}.items():
        told = fitted("platt", data, 1, weights).apply(logits[:, None])[:, 0]
        error[name] = expected_calibration_error(told, present)
    assert error["weighted"] < 0.8 * error["plain"], error


def test_isotonic_calibration_keeps_unlikely_labels_when_only_likely_ones_are_answered():
    rng = np.random.default_rng(7)
    logits = rng.normal(-3, 2, 5000)
    shown = np.argsort(-logits)[:100]
    answered = (logits[shown], np.zeros(100, int), rng.random(100) < 0.5)
    anchors = np.quantile(logits, np.linspace(0.01, 0.99, 20))[None]
    found = fit_calibration("isotonic", *answered, np.ones(100), 1, anchors)
    told = found.apply(logits[:, None])[:, 0]
    assert abs(told[shown].mean() - 0.5) < 0.1
    assert abs(np.delete(told - expit(logits), shown).mean()) < 0.06


def test_calibration_refuses_unknown_kinds_and_invalid_inputs():
    ones = np.ones(2)
    with pytest.raises(ValueError, match=r"No calibration is called 'beta'. There is: platt, temperature, isotonic"):
        fit_calibration("beta", ones, ones, ones, ones, 2)
    with pytest.raises(ValueError, match="must be finite"):
        fit_calibration("platt", ones * np.nan, ones, ones, ones, 2)
    with pytest.raises(ValueError, match="Classes run from 1 to 1; there are 1"):
        fit_calibration("platt", ones, ones, ones, ones, 1)


def test_saturated_probability_has_a_finite_logit():
    given = logit(np.array([[0.0, 1.0]], np.float32))
    found = fitted("platt", answers(np.random.default_rng(6), 50, 2), 2)
    assert np.isfinite(found.invert(expit(given)[0], np.array([0, 1]))).all()


def _every(found: Calibration, logits: np.ndarray) -> np.ndarray:
    return found.apply(np.repeat(logits[:, None], len(found.slopes), 1))
