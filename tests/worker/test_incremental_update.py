"""Corrections learned from a few decisions: they move what looks like what was answered, and nothing else by much."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from spmll.ensemble.incremental_update import (
    BIAS_VARIANCE,
    WEIGHT_VARIANCE,
    apply_corrections,
    encode_images,
    fit_correction,
    learn_image_basis,
)
from spmll.statistics.metrics import average_precision


@pytest.fixture(scope="module")
def looks():
    """600 images of four looks: features (600, 64) float16, and which look each has."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, 600)
    features = np.maximum(rng.normal(size=(4, 64))[kind] * 2 + rng.normal(size=(600, 64)), 0)
    return features.astype(np.float16), kind


def after(features, base, rows, states):
    """(N,) probabilities of one class after these answers."""
    codes = encode_images(learn_image_basis(features), features)
    correction = fit_correction(codes[np.asarray(rows)], base[rows], np.array(states, np.int8))
    return apply_corrections(codes, np.arange(len(base)), base[:, None], correction[None])[:, 0].astype(float)


def test_model_update_changes_predictions_of_similar_images_and_barely_those_of_others(looks):
    features, kind = looks
    base = np.full(600, 0.3, np.float16)
    one, other = np.flatnonzero(kind == 1)[:5], np.flatnonzero(kind == 2)[:5]
    chances = after(features, base, np.concatenate([one, other]), [1] * 5 + [-1] * 5)
    assert chances[kind == 1].mean() > 0.45 and chances[kind == 2].mean() < 0.2
    assert abs(chances[(kind == 0) | (kind == 3)].mean() - 0.3) < 0.05


def test_model_update_changes_little_after_one_decision_and_nothing_without_decisions(looks):
    features, kind = looks
    base = np.linspace(0, 1, 600).astype(np.float16)
    again = after(features, base, np.zeros(0, np.int64), [])
    inside = (base > 0) & (base < 1)
    assert np.abs(again - base)[inside].max() < 1e-3 and np.abs(again - base).max() < 3e-3
    row = int(np.flatnonzero(kind == 1)[3])
    chances = after(features, np.full(600, 0.5, np.float16), np.array([row]), [1])
    assert 0.5 < chances[row] < 0.85
    assert np.abs(chances[kind != 1] - 0.5).max() < 0.15


@pytest.mark.parametrize("count", [7, 200])
def test_model_update_fit_minimizes_its_cost_with_few_and_with_many_decisions(looks, count):
    features, _ = looks
    rng = np.random.default_rng(count)
    codes = encode_images(learn_image_basis(features), features)[:count]
    base, states = rng.uniform(0.05, 0.95, count), rng.choice([1, -1], count)
    scale = np.append(np.full(codes.shape[1], WEIGHT_VARIANCE), BIAS_VARIANCE)
    seen = np.concatenate([codes.numpy().astype(float), np.ones((count, 1))], 1)
    offset = np.log(base / (1 - base))

    def cost(weights):
        return np.logaddexp(0, -states * (offset + seen @ weights)).sum() + (weights**2 / scale).sum() / 2

    found = fit_correction(codes, base, states)
    best = minimize(cost, found, method="L-BFGS-B", options={"maxiter": 500})
    assert cost(found) <= best.fun + 1e-6


def test_model_update_keeps_nan_for_untrained_classes_and_ignores_nan_embeddings(looks):
    features = looks[0].copy()
    features[5] = np.nan
    codes = encode_images(learn_image_basis(features), features)
    assert not codes[5:6].any() and torch.isfinite(codes[:]).all()
    base = np.stack([np.full(600, 0.5), np.full(600, np.nan)], 1).astype(np.float16)
    correction = fit_correction(codes[:3], base[:3, 0], np.array([1, 1, -1], np.int8))
    found = apply_corrections(codes, np.arange(600), base, np.stack([correction, correction]))
    assert np.isfinite(found[:, 0]).all() and np.isnan(found[:, 1]).all()


def test_model_update_follows_decisions_against_a_confident_model_without_overflow(looks):
    features, kind = looks
    base = np.where(kind == 1, 1.0, 0.0).astype(np.float16)  # wrong: the class is look 2
    rows = np.flatnonzero((kind == 1) | (kind == 2))[:60]
    chances = after(features, base, rows, np.where(kind[rows] == 2, 1, -1))
    assert np.isfinite(chances).all() and (chances >= 0).all() and (chances <= 1).all()
    assert chances[kind == 1].mean() < 0.99 and chances[kind == 2].max() > 1e-4


def test_model_update_improves_average_precision_on_unanswered_images_after_a_grid(looks):
    features, kind = looks
    rng = np.random.default_rng(3)
    truth = kind == 1
    # A model that takes two looks for the class, and is unsure of everything.
    base = (
        (0.3 + 0.3 * ((kind == 1) | (kind == 3)) + rng.normal(scale=0.1, size=600)).clip(0.02, 0.98).astype(np.float16)
    )
    rows = np.argsort(-base)[:24]
    chances = after(features, base, rows, np.where(truth[rows], 1, -1))
    hidden = np.setdiff1d(np.arange(600), rows)
    before = average_precision(base[hidden].astype(float), truth[hidden])
    assert average_precision(chances[hidden], truth[hidden]) > before + 0.1
