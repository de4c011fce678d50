"""The logistic solver: it reaches the minimum, whatever the start, the prior, and however many groups there are."""

import numpy as np
import pytest
from harness.short_forms import mark_slow_after
from scipy.optimize import minimize
from scipy.special import expit

from spmll.statistics.logistic import fit_logistic


def problem(seed: int, answers: int, inputs: int, scale: float = 1.0) -> dict:
    """Inputs, answers in [0, 1], weights and offset of one group, and a prior with a full precision matrix."""
    rng = np.random.default_rng(seed)
    predictor = rng.normal(scale=scale, size=(answers, inputs))
    root = rng.normal(size=(inputs, inputs))
    return {
        "predictor": predictor,
        "answers": rng.integers(0, 5, answers) / 4,
        "mean": rng.normal(size=inputs),
        "precision": root @ root.T + np.eye(inputs),
        "offset": rng.normal(scale=2, size=answers),
        "weights": rng.exponential(size=answers),
    }


def cost(coefficients, predictor, answers, mean, precision, offset, weights) -> float:
    logits, apart = predictor @ coefficients + offset, coefficients - mean
    return weights @ (np.logaddexp(0, logits) - answers * logits) + apart @ precision @ apart / 2


@pytest.mark.parametrize("scale", mark_slow_after(4, [0.1, 1.0, 30.0]))
@pytest.mark.parametrize(("answers", "inputs"), [(0, 2), (1, 4), (30, 3), (60, 60)])
def test_logistic_fit_reaches_the_minimum_from_the_mean_and_from_a_distant_start(answers, inputs, scale):
    for seed in range(3):
        of_one = problem(seed, answers, inputs, scale)
        best = minimize(cost, of_one["mean"], tuple(of_one.values()), method="BFGS", options={"gtol": 1e-8}).fun
        for start in (None, np.full((1, inputs), 8.0)):
            fitted = fit_logistic(**of_one, start=start).coefficients[0]
            assert cost(fitted, **of_one) <= best + 1e-8 * (1 + best), (seed, start)


def test_logistic_fit_of_groups_equals_separate_fits_and_keeps_the_prior_without_answers():
    apart = [problem(seed, answers, 3) for seed, answers in enumerate((40, 5, 0, 200))]
    shared = {"precision": apart[0]["precision"]}
    joined = {
        name: np.concatenate([one[name] for one in apart]) for name in ("predictor", "answers", "offset", "weights")
    }
    mean = np.stack([one["mean"] for one in apart])
    together = fit_logistic(**joined, **shared, mean=mean, groups=np.repeat(np.arange(4), (40, 5, 0, 200)))
    for group, one in enumerate(apart):
        alone = fit_logistic(**one | shared)
        np.testing.assert_allclose(together.coefficients[group], alone.coefficients[0], atol=1e-6, err_msg=str(group))
        np.testing.assert_allclose(together.information[group], alone.information[0], rtol=1e-5, err_msg=str(group))
    np.testing.assert_array_equal(together.coefficients[2], mean[2])
    np.testing.assert_allclose(together.information[2], shared["precision"])


def test_information_matrix_of_a_logistic_fit_equals_the_second_derivative_of_the_cost():
    of_one = problem(0, 50, 3)
    fitted = fit_logistic(**of_one)
    step = 1e-4 * np.eye(3)
    at = fitted.coefficients[0]
    numeric = [
        [
            (
                cost(at + a + b, **of_one)
                - cost(at + a - b, **of_one)
                - cost(at - a + b, **of_one)
                + cost(at - a - b, **of_one)
            )
            / 4e-8
            for a in step
        ]
        for b in step
    ]
    np.testing.assert_allclose(fitted.information[0], numeric, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("highest", [0.3, 1.0, 9.0])
def test_logistic_fit_reaches_the_minimum_with_one_coefficient_at_its_bound(highest):
    of_one = problem(3, 80, 3)
    low, high = np.full(3, -np.inf), np.array([highest, np.inf, np.inf])
    of_one["mean"] = np.array([4.0, 0.5, -0.5])
    fitted = fit_logistic(**of_one, bounds=(low, high)).coefficients[0]
    best = minimize(cost, np.zeros(3), tuple(of_one.values()), bounds=list(zip(low, high, strict=True)), tol=1e-12)
    assert fitted[0] <= highest and cost(fitted, **of_one) <= best.fun + 1e-8


def test_logistic_fit_of_a_nonlinear_predictor_converges_where_full_steps_do_not():
    rng = np.random.default_rng(0)
    scores, answers = rng.normal(0, 2.5, 200), rng.integers(0, 2, 200).astype(float)

    def predict(coefficients):
        logits = np.exp(coefficients[0, 0]) * scores
        return logits, logits[:, None]

    def gradient(slope):
        logits = np.exp(slope) * scores
        return (expit(logits) - answers) @ logits + slope

    fitted = fit_logistic(predict, answers, np.zeros(1), np.ones(1))
    slope = fitted.coefficients[0, 0]
    assert abs(gradient(slope)) < 1e-5 and slope < -1
    stepped, information = slope + 0.5, fitted.information[0, 0, 0]
    assert abs(stepped - gradient(stepped) / information - slope) > 0.5, "a full step leads farther away"
