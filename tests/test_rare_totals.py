"""Totals of rare classes: what they are judged by, and how far they are shrunk."""

import numpy as np
import pytest
from scipy.special import expit

from models.statistics.metrics import honest_totals
from models.statistics.rare_totals import FEW, shrink_rare_totals


def probabilities(*totals: float) -> np.ndarray:
    """Return (200, C) probabilities with these totals, of images in another order in each class."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(200, len(totals))) - 3
    result = expit(logits)
    return (result * np.array(totals) / result.sum(0)).astype(np.float32)


def test_a_total_is_honest_up_to_twice_the_truth_and_only_rare_classes_are_judged():
    truth = np.zeros((40, 4), bool)
    truth[:12] = True
    labels = np.zeros((40, 4), np.int8)
    labels[0, :3] = 1
    labels[:11, 3] = 1  # not rare
    columns = np.array([24, 25, 6, 0]) / 40
    assert honest_totals(np.tile(columns, (40, 1)), labels, truth) == (3, 2)
    assert honest_totals(np.tile(columns, (40, 1)), np.zeros_like(labels), truth) == (0, 0)


def test_a_rare_class_ends_between_its_total_and_its_share_of_the_positives_in_the_same_order():
    before = probabilities(20, 20, 60)
    after = before.copy()
    shrink_rare_totals(after, np.array([1, 19, 30]))
    share = before.sum() * 2 / (2 + 20 + 31)
    assert share < after[:, 0].sum() < 20
    assert after[:, 0].sum() == pytest.approx((20 * share) ** 0.5, rel=0.01)
    np.testing.assert_array_equal(after[:, 0].argsort(kind="stable"), before[:, 0].argsort(kind="stable"))


def test_a_class_with_positives_enough_or_none_or_without_a_model_stays():
    before = probabilities(20, 20, 60)
    before[:, 2] = np.nan
    after = before.copy()
    shrink_rare_totals(after, np.array([FEW, 0, 3]))
    np.testing.assert_array_equal(after, before)


def test_more_positives_of_its_own_keep_a_class_nearer_to_its_total():
    moved = []
    for positives in (1, 4, 9):
        after = probabilities(40, 40, 40)
        shrink_rare_totals(after, np.array([positives, 300, 300]))
        share = 120 * (positives + 1) / (positives + 603)
        moved.append(np.log(after[:, 0].sum() / 40) / np.log(share / 40))
    assert moved[0] > moved[1] > moved[2] > 0
