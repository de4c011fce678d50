"""Calibration of runs: only answers to logged predictions count, and a run says how it was calibrated."""

import uuid

import numpy as np
import pytest
from harness.adaptable import pretend_adapted
from harness.answers import answer_cell
from harness.feature_shards import add_features
from harness.in_events import in_events

from annotator.records import Batch
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.features.feature_cache import FeatureCache, open_features
from annotator.store.labels import decisions
from annotator.worker.training import calibrate
from annotator.worker.training.train import train
from spmll.statistics.calibration import Calibration, to_logits


@pytest.fixture
def cache(db) -> FeatureCache:
    """Features in which each class has a direction of its own."""
    rng = np.random.default_rng(0)
    features = rng.random((24, 6))
    for image_id in range(1, 25):
        for bit in range(3):
            features[image_id - 1, bit] += 2 * (image_id >> bit & 1)
    add_features(db, "x", np.arange(1, 25), features, np.zeros((24, 9, 6)))
    return open_features(db, "x")


def answer_grid(db, class_id: int, images: range, wrong: bool = False) -> None:
    """Answers to what the current run says of some images; `wrong` says the opposite of what they show."""
    found = read_predictions(db)
    states = [1 if (image_id >> (class_id - 1) & 1) != wrong else -1 for image_id in images]
    chances = [float(found.probabilities[image_id - 1, class_id - 1]) for image_id in images]
    cells = list(zip(images, [class_id] * len(images), states, chances, strict=True))
    assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Ann", "grid", cells, run_id=found.run.id)]).refused


def trained(db, cache):
    return train(db, cache, "gr", {}, "x")


def test_training_is_calibrated_once_enough_logged_predictions_are_answered(db, cache):
    for image_id in range(1, 8):
        answer_cell(db, image_id, 1 + image_id % 3, 1 if image_id >> (image_id % 3) & 1 else -1)
    run = trained(db, cache)
    assert run.calibration is None
    assert run.threshold == 0.5
    for class_id in (1, 2):
        answer_grid(db, class_id, range(5, 25), wrong=True)
    run = trained(db, cache)
    assert len(run.calibration["slopes"]) == 3
    assert calibrate.MIN_THRESHOLD <= run.threshold <= calibrate.MAX_THRESHOLD
    answers = calibrate.load_logged_answers(db, "gr", "x", [1, 2, 3])
    assert len(answers.logits) == 40, "labels that were not answers to a prediction are not counted"
    assert calibrate.load_logged_answers(db, "an", "x", [1, 2, 3]).logits.size == 0, "of another method, nothing"
    pretend_adapted(db, "x", "y", np.arange(5, 15))
    assert len(calibrate.load_logged_answers(db, "gr", "x", [1, 2, 3]).logits) == 20, (
        "of images it was fitted to, nothing"
    )


def test_calibration_ignores_answers_to_images_of_events_with_training_images(db, cache):
    for image_id in range(1, 8):
        answer_cell(db, image_id, 1 + image_id % 3, 1 if image_id >> (image_id % 3) & 1 else -1)
    trained(db, cache)
    answer_grid(db, 1, range(5, 25))
    in_events(db, 10)  # images 1 to 10, 11 to 20, 21 to 24
    assert len(calibrate.load_logged_answers(db, "gr", "x", [1, 2, 3]).logits) == 14
    trained(db, cache)
    answer_grid(db, 2, range(11, 25))
    assert len(calibrate.load_logged_answers(db, "gr", "x", [1, 2, 3]).logits) == 14, "of the second run, none"


def test_calibration_shrinks_probabilities_when_answers_contradict_the_model(db, cache):
    for image_id in range(1, 8):
        answer_cell(db, image_id, 1 + image_id % 3, 1 if image_id >> (image_id % 3) & 1 else -1)
    trained(db, cache)
    rng = np.random.default_rng(1)
    given = rng.normal(0, 3, (400, 2)).astype(np.float32)
    answers = calibrate.LoggedAnswers(given.ravel(), np.tile([0, 1], 400), rng.random(800) < 0.5)
    chances = 1 / (1 + np.exp(-given))
    found = calibrate.fit_run_calibration(answers, chances, np.ones(chances.shape, bool))
    told = calibrate.apply_calibration(found, chances)
    assert told.std() < chances.std() / 2
    for column in (0, 1):
        assert (np.diff(told[np.argsort(chances[:, column]), column]) >= 0).all()


def test_logged_answers_to_a_calibrated_model_are_mapped_back_to_raw_logits(db, cache):
    for image_id in range(1, 8):
        answer_cell(db, image_id, 1 + image_id % 3, 1 if image_id >> (image_id % 3) & 1 else -1)
    trained(db, cache)
    for class_id in (1, 2):
        answer_grid(db, class_id, range(5, 25))
    run = trained(db, cache)
    answer_grid(db, 3, range(5, 25))
    answers = calibrate.load_logged_answers(db, "gr", "x", [1, 2, 3])
    told = read_predictions(db).probabilities[4:24, 2].astype(np.float32)
    back = Calibration.from_dict(run.calibration).invert(np.clip(told, 5e-4, 1 - 5e-4), np.full(20, 2))
    np.testing.assert_allclose(np.sort(answers.logits[answers.columns == 2]), np.sort(back), atol=1e-3)
    assert not np.allclose(back, to_logits(told), atol=1e-2), "it was calibrated"


def test_calibration_ignores_undone_answers(db, cache):
    for image_id in range(1, 8):
        answer_cell(db, image_id, 1 + image_id % 3, 1 if image_id >> (image_id % 3) & 1 else -1)
    trained(db, cache)
    answer_grid(db, 1, range(5, 25))
    decisions.undo(db)
    assert not len(calibrate.load_logged_answers(db, "gr", "x", [1, 2, 3]).logits)
