"""What `auto` learns from whole answers: nothing without them, honest numbers with them."""

import pickle
import threading

import numpy as np
import pytest
import torch

from spmll.ensemble import stacking
from spmll.ensemble.collection_scoring import score_locally
from spmll.ensemble.fit_ensemble import Ensemble, LabeledImages, fit_ensemble
from spmll.ensemble.regions import RegionCodes, encode_regions, learn_region_basis
from spmll.ensemble.stacking import MIN_UNBIASED_ANSWERS, AnsweredImages, fit_stacked
from spmll.ensemble.training_subset import select_training_rows
from spmll.ensemble.warm_start import WarmStart
from spmll.methods.auto import Auto
from spmll.statistics.outside_scores import OutsideScores
from spmll.statistics.stacker import PRIOR_MEAN, Scores, Stacker, count_other_classes, fit_stacker

pytestmark = pytest.mark.training

IMAGES, DIMENSIONS, CLASSES = 400, 48, 4


@pytest.fixture(scope="module")
def world() -> tuple[np.ndarray, np.ndarray]:
    """Features (N, D) in which every class has a direction, half of it noise; and what is there (N, C)."""
    chance = np.random.default_rng(3)
    truth = chance.random((IMAGES, CLASSES)) < np.array([0.4, 0.25, 0.15, 0.1])
    truth[~truth.any(1), 0] = True
    directions = chance.normal(size=(CLASSES, DIMENSIONS))
    features = np.maximum(truth @ directions + chance.normal(scale=1.6, size=(IMAGES, DIMENSIONS)), 0)
    return features.astype(np.float32), truth


def trained(features, labels, unbiased, mask=None, warm_start=None):
    rows = np.flatnonzero((labels != 0).any(1))
    some = None if mask is None else mask[rows]
    training = fit_stacked(
        Auto(), AnsweredImages(features, None, rows, labels[rows], some, unbiased=unbiased[rows]), warm_start=warm_start
    )
    for _ in training.epochs():
        pass
    return training


def scored(features, labels, unbiased, mask=None, warm_start=None) -> np.ndarray:
    """The probabilities of what was trained."""
    probabilities = trained(features, labels, unbiased, mask, warm_start).probabilities
    assert probabilities is not None
    return probabilities


def answered(truth: np.ndarray, images: int) -> tuple[np.ndarray, np.ndarray]:
    """The first images answered whole, and a click on each of the next forty."""
    labels = np.zeros(truth.shape, np.int8)
    labels[:images] = np.where(truth[:images], 1, -1)
    unbiased = labels != 0
    for row in np.flatnonzero(truth.any(1) & (np.arange(len(truth)) >= images))[:40]:
        labels[row, np.flatnonzero(truth[row])[0]] = 1
    return labels, unbiased


def test_auto_without_randomly_selected_answers_equals_the_plain_ensemble(world):
    features, truth = world
    labels, unbiased = answered(truth, 0)
    rows = np.flatnonzero((labels != 0).any(1))
    alone = Ensemble(Auto(), DIMENSIONS, CLASSES)
    for _ in fit_ensemble(alone, LabeledImages(features, None, rows, labels[rows])):
        pass
    ours = trained(features, labels, unbiased)
    assert not ours.calibrated
    np.testing.assert_array_equal(ours.probabilities, alone.probabilities(features, None))


def test_auto_with_unbiased_answers_estimates_the_number_of_positives(world):
    features, truth = world
    labels, unbiased = answered(truth, 80)
    ours, open_ = trained(features, labels, unbiased), labels == 0
    assert ours.probabilities is not None
    expected, there = ours.probabilities[open_].sum(), truth[open_].sum()
    assert ours.calibrated and 0.75 < expected / there < 1.35
    alone = scored(features, labels, np.zeros_like(unbiased))
    assert abs(np.log(expected / there)) < abs(np.log(alone[open_].sum() / there))


@pytest.mark.parametrize("answers", [0, 80])
def test_stacked_model_serialized_for_a_cluster_scores_images_as_locally(world, monkeypatch, answers):
    monkeypatch.setattr(stacking, "MAX_STACKED_CELLS", 200)  # else few images keep the scores that they were stacked by
    features, truth = world
    labels, unbiased = answered(truth, answers)
    rows = np.flatnonzero((labels != 0).any(1))
    region_codes = encode_regions(basis := learn_region_basis(features, regions_of(features)), regions_of(features))
    sent = []

    def elsewhere(model, features, codes, known, classes, tell):
        packed = pickle.dumps((model, basis))
        sent.append(len(packed))
        model, there = pickle.loads(packed)  # what a cluster does: the images come by blocks, the model once
        result = np.empty((len(features), classes), np.float32)
        for start in range(0, len(features), 256):
            part = slice(start, min(start + 256, len(features)))
            few = known(part)
            for first in range(0, part.stop - start, 100):
                some = slice(first, min(first + 100, part.stop - start))
                of_images = slice(start + some.start, start + some.stop)
                of_regions = RegionCodes(there, codes.codes[of_images], codes.lengths[of_images])
                result[of_images] = model.probabilities(features[of_images], of_regions, few[some])
        return result

    def train(scoring):
        training = fit_stacked(
            Auto(),
            AnsweredImages(
                features,
                region_codes,
                rows,
                labels[rows],
                unbiased=unbiased[rows],
                outside=[OutsideScores("other", truth * 0.5 + 0.2, "probability")],
            ),
            scoring=scoring,
        )
        for _ in training.epochs():
            pass
        assert training.probabilities is not None
        return training.probabilities

    np.testing.assert_allclose(train(elsewhere), train(score_locally), atol=1e-6)
    assert sent and sent[0] < 400_000, "no images travel with a model"


def regions_of(features: np.ndarray) -> np.ndarray:
    """(N, 3, D): two regions beside the whole."""
    return np.stack([features, features * 0.5, np.roll(features, 1, 1)], 1).astype(np.float16)


def test_wrong_absent_answer_is_among_those_with_the_highest_predicted_probability(world):
    features, truth = world
    labels, unbiased = answered(truth, 120)
    surest = scored(features, labels, unbiased)[:120, 0]
    wrong = int(np.argmax(np.where(truth[:120, 0], surest, -1)))
    labels[wrong, 0] = -1
    doubted = scored(features, labels, unbiased)[:120, 0]
    said_absent = np.flatnonzero(labels[:120, 0] == -1)
    assert doubted[wrong] >= np.sort(doubted[said_absent])[-3]


def test_class_without_a_positive_has_no_probabilities(world):
    features, truth = world
    labels, unbiased = answered(truth & np.array([True, True, True, False]), 60)
    mask = np.ones(labels.shape, bool)
    mask[:10, 0] = False
    found = scored(features, labels, unbiased, mask)
    assert np.isnan(found[:, 3]).all() and np.isfinite(found[:, :3]).all()


def test_training_with_only_present_unbiased_answers_gives_no_calibration(world):
    features, truth = world
    labels, unbiased = answered(truth, 0)
    unbiased[:] = labels == 1
    assert int(unbiased.sum()) >= MIN_UNBIASED_ANSWERS and not trained(features, labels, unbiased).calibrated


def test_warm_start_from_stored_cross_fitted_weights_changes_predictions_little(world):
    features, truth = world
    labels, unbiased = answered(truth, 80)
    warm_start = WarmStart()
    first = scored(features, labels, unbiased, warm_start=warm_start)
    kept = {half: weight.clone() for half, (weight, _) in warm_start.weights.items()}
    again = scored(features, labels, unbiased, warm_start=warm_start)
    assert set(kept) == {-1, 0, 1} and np.abs(first - again).mean() < 0.02


def test_expected_count_of_other_classes_uses_labels_and_otherwise_probabilities():
    labels = np.array([[1, 0, -1]], np.int8)
    chances = np.array([[0.9, 0.4, 0.8]])
    np.testing.assert_allclose(count_other_classes(labels, chances), [[0.4, 1.0, 1.4]], atol=1e-6)


@pytest.mark.parametrize("seed", [11, 21, 24, 29, 46])
def test_fitted_stacker_has_a_lower_log_loss_than_its_prior(seed):
    # Models that are quite sure, and some rare answers that count ten times: where a whole step of Newton's method
    # throws the line past all of them.
    chance = np.random.default_rng(seed)
    scale = np.exp(chance.normal(0, 0.7, 4))
    present = chance.random(4000) < chance.choice([0.02, 0.1, 0.3])
    auto = np.where(
        present, chance.normal(3 * scale[0], 3 * scale[1], 4000), chance.normal(-5 * scale[2], 2 * scale[3], 4000)
    )
    known = auto * np.exp(chance.normal(0, 0.5)) + chance.normal(0, 1 + abs(auto) * 0.3, 4000)
    others = chance.choice([0.0, 1.0, 2.0], 4000)
    weights = np.clip(np.exp(-auto * chance.choice([0.1, 0.3, 0.6])), 0.1, 10)
    weights *= weights.sum() / (weights @ weights)
    scores, columns, around = Scores(auto[:, None], known[:, None]), np.zeros(4000, np.int64), others[:, None]

    def surprise(line):
        logits = Stacker(line, np.ones(1), np.zeros(1)).cell_logits(scores, around, columns)
        return weights @ (np.logaddexp(0, logits) - present * logits)

    assert surprise(fit_stacker(scores, around, columns, present, weights, 1).line) < surprise(PRIOR_MEAN)


def test_cross_fitting_in_a_separate_thread_gives_the_same_probabilities(world, monkeypatch):
    features, truth = world
    labels, unbiased = answered(truth, 80)
    at_once, threads = scored(features, labels, unbiased), torch.get_num_threads()
    monkeypatch.setattr("spmll.ensemble.stacking.MIN_IMAGES_FOR_THREAD", 1)
    try:
        torch.set_num_threads(2)
        beside = scored(features, labels, unbiased)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_allclose(beside, at_once, atol=1e-4)


def test_closing_a_training_stops_its_cross_fitting_thread(world, monkeypatch):
    features, truth = world
    labels, unbiased = answered(truth, 80)
    rows = np.flatnonzero((labels != 0).any(1))
    monkeypatch.setattr("spmll.ensemble.stacking.MIN_IMAGES_FOR_THREAD", 1)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        images = AnsweredImages(features, None, rows, labels[rows], unbiased=unbiased[rows])
        epochs = fit_stacked(Auto(), images).epochs()
        next(epochs)
        epochs.close()  # pyright: ignore[reportAttributeAccessIssue] - it is a generator
    finally:
        torch.set_num_threads(threads)
    assert not any(thread.name.startswith("halves") for thread in threading.enumerate())


def test_stacker_fitted_on_sampled_cells_nearly_matches_one_fitted_on_all(world, monkeypatch):
    features, truth = world
    labels, unbiased = answered(truth, 120)
    of_all = scored(features, labels, unbiased)
    monkeypatch.setattr("spmll.ensemble.stacking.MAX_STACKED_CELLS", 400)
    sampled = scored(features, labels, unbiased)
    open_ = labels == 0
    assert 0.8 < sampled[open_].sum() / of_all[open_].sum() < 1.25
    assert np.corrcoef(sampled[~open_], of_all[~open_])[0, 1] > 0.97  # held out here as there


def test_training_row_selection_keeps_rare_classes_and_prioritized_images():
    chance = np.random.default_rng(0)
    labels = np.zeros((5000, 6), np.int8)
    labels[np.arange(5000), chance.integers(0, 5, 5000)] = 1
    labels[[17, 4000], 5] = 1
    first = np.zeros(5000, bool)
    first[3000:3100] = True
    order = chance.random(5000)
    rows = select_training_rows(labels, 600, first, order)
    assert len(rows) == 600 and (np.diff(rows) > 0).all()
    assert {17, 4000} <= set(rows) and np.isin(np.arange(3000, 3100), rows).all()
    assert (labels[rows] == 1).sum(0)[:5].min() > 80
    assert len(select_training_rows(labels, 5000, first, order)) == 5000

    labels[30, 2], first[4990:] = 1, True  # what is answered later changes the rows by as much
    assert len(np.setxor1d(rows, select_training_rows(labels, 600, first, order))) <= 24


def test_auto_with_unbiased_answers_changes_default_parameters_but_not_chosen_ones(world):
    features, truth = world
    clicked, answered_too = (answered(truth, images) for images in (0, 80))
    assert trained(features, *clicked).ensemble.head_share == Auto().head
    beside = trained(features, *answered_too).method
    assert {name: getattr(beside, name) for name in Auto.PARAMETERS_WITH_ANSWERS} == Auto.PARAMETERS_WITH_ANSWERS
    assert beside.ridge == Auto().ridge
    assert Auto(head=0.7).with_answer_parameters().parameters == beside.parameters | {"head": 0.7}
