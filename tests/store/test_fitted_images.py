"""An adapted network has seen answers: what needs scores of unseen images does not get them from its features."""

import shutil
import uuid

import numpy as np
import pytest
from harness import adaptable
from harness.feature_shards import add_features

from annotator.records import Decision
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import open_features
from annotator.store.labels import decisions
from annotator.worker.training.train import train

IMAGES, CLASSES = adaptable.IMAGES, len(adaptable.CLASSES)
FITTED = np.arange(1, 58)
WRONG = [(3, 0), (10, 1), (17, 2), (24, 0), (31, 1), (38, 2)]  # image id, class: answered the wrong way round


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    photos = adaptable.draw_all(folder / "photos")
    return adaptable.make_project(folder / "project", photos, adaptable.make_network(folder / "network")).paths.project


@pytest.fixture
def db(project, tmp_path):
    """A network "first", and one that was adapted from it, whose features show the answers it was fitted to."""
    db = Database(shutil.copytree(project, tmp_path / "project"))
    truth = np.array([[name in adaptable.shown(image) for name in adaptable.CLASSES] for image in range(IMAGES)])
    answers = truth.copy()
    for image_id, column in WRONG:
        answers[image_id - 1, column] ^= True
        state = 1 if answers[image_id - 1, column] else -1
        change = Decision(
            str(uuid.uuid4()), "label", "Ann", "click", image_id=image_id, class_id=column + 1, state=state
        )
        assert not decisions.save(db, [change]).refused
    shown = np.where(np.isin(np.arange(1, IMAGES + 1), FITTED)[:, None], answers, truth)
    random = np.random.default_rng(0)
    for name, seen in (("first", truth), ("first.adapted1", shown)):
        rows = random.uniform(0, 0.5, (IMAGES, 16))
        rows[:, :CLASSES] += 3.0 * seen
        db.paths.features(name).mkdir(parents=True)
        regions = np.repeat(rows[:, None], 9, 1).astype(np.float16)
        add_features(db, name, np.arange(1, IMAGES + 1), rows.astype(np.float16), regions)
    adaptable.pretend_adapted(db, "first.adapted1", "first", FITTED)
    return db


def most_doubted(db: Database, backbone: str) -> list[tuple[int, int]]:
    """The answers from which a run differs most, as many as are wrong."""
    train(db, open_features(db, backbone), "auto", {}, backbone)
    predictions = read_predictions(db)
    assert predictions is not None and predictions.run.calibration is not None
    cells = np.array(decisions.load_label_cells(db)[0])
    probabilities = predictions.probabilities[cells[:, 0] - 1, cells[:, 1] - 1].astype(float)
    order = np.argsort(-np.abs(probabilities - (cells[:, 2] > 0)))[: len(WRONG)]
    return sorted((image_id, class_id - 1) for image_id, class_id in cells[order, :2].tolist())


def test_wrong_labels_used_to_adapt_a_backbone_are_still_among_the_most_doubted_labels(db):
    assert set(most_doubted(db, "first")) == set(WRONG), "by a network that has not seen them"
    found = set(WRONG) & set(most_doubted(db, "first.adapted1"))
    assert len(found) >= len(WRONG) - 1, "and by one whose features repeat them"


def test_training_works_without_embeddings_of_the_original_backbone(db):
    shutil.rmtree(db.paths.features("first"))
    assert len(most_doubted(db, "first.adapted1")) == len(WRONG)
