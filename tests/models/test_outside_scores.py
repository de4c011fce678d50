"""How far `auto` believes models from elsewhere: good ones help from the first image on, bad ones fade."""

import numpy as np
import pytest
from scipy.special import expit

from spmll.ensemble.stacking import AnsweredImages, fit_stacked
from spmll.methods.auto import Auto
from spmll.statistics.metrics import average_precision
from spmll.statistics.outside_scores import OutsideScores, add_first_guesses, estimate_class_trust, estimate_trust
from spmll.statistics.stacker import Scores, fit_stacker
from spmll.zero_shot.first_guess import guess_probabilities

IMAGES, DIMENSIONS, SHARES = 500, 40, np.array([0.4, 0.25, 0.15, 0.1])


@pytest.fixture(scope="module")
def world():
    """Features (N, D) of which half is noise, what is there (N, C), and sources of predictions by what they are."""
    chance = np.random.default_rng(5)
    truth = chance.random((IMAGES, len(SHARES))) < SHARES
    truth[~truth.any(1), 0] = True
    directions = chance.normal(size=(len(SHARES), DIMENSIONS))
    features = np.maximum(truth @ directions + chance.normal(scale=1.6, size=(IMAGES, DIMENSIONS)), 0)
    good = expit(np.where(truth, 0.5, -2.5) + chance.normal(scale=1.2, size=truth.shape))
    scores = {
        "good": (good, "probability"),
        "good, as scores": (7 * np.log(good) + 100, "score"),
        "silent on half": (np.where(chance.random(truth.shape) < 0.5, good, np.nan), "probability"),
        "random": (chance.random(truth.shape), "probability"),
        "random scores": (chance.normal(size=truth.shape), "score"),
        "random yes and no": ((chance.random(truth.shape) < 0.2).astype(float), "probability"),
        "inverted": (1 - good, "probability"),
        "constant": (np.full(truth.shape, 0.3), "probability"),
    }
    sources = {name: OutsideScores(name, values.astype(np.float16), scale) for name, (values, scale) in scores.items()}
    return features.astype(np.float32), truth, sources


def hidden_ap(world, answered: int, clicks: int, *names: str):
    """Mean average precision over the cells without an answer, and the model; the first images are answered whole."""
    features, truth, sources = world
    labels = np.zeros(truth.shape, np.int8)
    labels[:answered] = np.where(truth[:answered], 1, -1)
    unbiased = labels != 0
    for row in range(answered, answered + clicks):
        labels[row, np.flatnonzero(truth[row])[0]] = 1
    rows = np.flatnonzero((labels != 0).any(1))
    outside = [sources[name] for name in names]
    model = fit_stacked(
        Auto(), AnsweredImages(features, None, rows, labels[rows], unbiased=unbiased[rows], outside=outside)
    )
    for _ in model.epochs():
        pass
    assert model.probabilities is not None
    open_ = labels == 0
    found = [
        average_precision(model.probabilities[open_[:, column], column], truth[open_[:, column], column])
        for column in range(truth.shape[1])
    ]
    return 100 * float(np.mean(found)), model


@pytest.mark.slow
@pytest.mark.training
@pytest.mark.parametrize("answered", [0, pytest.param(150, marks=pytest.mark.slow)])
def test_imported_predictions_improve_hidden_ap_when_good_and_hardly_lower_it_when_bad(world, answered):
    alone, _ = hidden_ap(world, answered, 40)
    gains = {name: round(hidden_ap(world, answered, 40, name)[0] - alone, 2) for name in world[2]}
    good = {name: gain for name, gain in gains.items() if name in ("good", "good, as scores", "silent on half")}
    assert min(good.values()) > 2, gains
    assert min(gains.values()) > -0.5, gains


@pytest.mark.training
def test_auto_learns_a_weight_per_class_and_prediction_source_low_for_random_scores(world):
    features, truth, sources = world
    mixed = sources["good"].scores.copy()
    mixed[:, 1] = sources["random"].scores[:, 1]
    world = features, truth, sources | {"knows all but one": OutsideScores("mixed", mixed, "probability")}
    _, model = hidden_ap(world, 200, 40, "knows all but one", "random")
    weights = model.outside_weights
    assert weights.shape == (4, 2) and weights[1, 0] < 0.75 * weights[[0, 2, 3], 0].min(), weights
    assert np.abs(weights[:, 1]).max() < 0.25 * weights[[0, 2, 3], 0].min(), weights


@pytest.mark.training
def test_class_with_an_uninformative_name_gets_a_low_weight_for_its_text_scores(world):
    features, truth, sources = world
    fits = np.array(np.log(sources["good"].scores.astype(np.float64)))
    fits[:, 2] = np.random.default_rng(2).normal(size=IMAGES)  # it is called "type B"
    of_names = OutsideScores("class names", guess_probabilities(fits), "probability")
    world = features, truth, sources | {"class names": of_names}
    ap, model = hidden_ap(world, 350, 40, "class names")
    weights = model.outside_weights[:, 0]
    assert weights[2] < 0.5 * weights[[0, 1, 3]].min(), weights
    assert ap > hidden_ap(world, 350, 40)[0] + 2


def test_trust_in_imported_scores_of_a_class_falls_when_its_images_score_no_higher():
    chance = np.random.default_rng(0)
    labels, inputs = np.zeros((200, 2), np.int8), chance.normal(size=(200, 2))
    labels[:20] = 1
    inputs[:20, 0] += 2
    inputs[:, 1] -= inputs[:20, 1].mean()  # of the second class, positives are like all others
    of_source = estimate_trust(inputs, labels)
    known, unknown = (estimate_class_trust(inputs[:, column], labels[:, column], of_source) for column in (0, 1))
    assert 0 < unknown < 0.4 * known and known == of_source
    assert estimate_class_trust(inputs[:, 1], np.zeros(200), of_source) == of_source  # nothing speaks against it yet
    assert estimate_class_trust(np.full(200, np.nan), labels[:, 0], of_source) == of_source


def test_classes_without_present_labels_get_imported_probabilities_but_not_scores():
    own, labels = np.full((4, 2), np.nan), np.zeros((4, 2), np.int8)
    guess = np.array([[0.9, np.nan], [0.2, np.nan], [np.nan, np.nan], [0.4, np.nan]])
    sources = [OutsideScores("a", guess, "probability"), OutsideScores("b", np.arange(8.0).reshape(4, 2), "score")]
    first = add_first_guesses(own, labels, labels != 0, sources, stacked=False)
    np.testing.assert_allclose(first[:, 0], [0.9, 0.2, 0.2, 0.4], atol=1e-6)
    assert np.isnan(first[:, 1]).all()
    labels[1:, 0] = -1  # answers to questions that were not chosen by their answer move the guess
    told = add_first_guesses(own, labels, labels != 0, sources, stacked=False)
    assert told[0, 0] < first[0, 0]


def test_stacker_learns_the_meaning_of_a_missing_detector_score():
    chance = np.random.default_rng(1)
    speaks = np.arange(600) % 2 == 0
    present = np.where(speaks, chance.random(600) < 0.8, chance.random(600) < 0.1)  # a detector: silent where it is not
    scores = np.where(speaks, chance.random(600), np.nan)[:, None]
    inputs = OutsideScores("detector", scores, "score").compute_inputs()
    assert np.array_equal(np.isnan(inputs), np.isnan(scores)) and abs(np.nanmean(inputs)) < 1e-3
    ours = np.zeros((600, 1))
    held_out, columns = Scores(ours, ours, [inputs]), np.zeros(600, int)
    stacker = fit_stacker(held_out, np.zeros((600, 1)), columns, present, np.ones(600), 1)
    asked = Scores(ours[:2], ours[:2], [np.array([[0.0], [np.nan]])])
    spoken, silent = expit(stacker.logits(asked, np.zeros((2, 1))))[:, 0]
    assert spoken > 0.7 > 0.25 > silent
