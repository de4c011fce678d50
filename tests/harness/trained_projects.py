"""Projects with a run on made-up features, and a program that is killed while it publishes an update."""

import numpy as np
import pytest
from conftest import CLASSES, draw

from annotator.exchange.project_setup import set_up_project
from annotator.quality import audit_sampling
from annotator.settings import DEFAULT_BACKBONE
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache, open_features
from annotator.store.networks import configuration
from annotator.worker.process import Worker
from harness.answers import answer_cell
from harness.feature_shards import add_features
from harness.worker_runs import train


def shown(image_id: int) -> list[int]:
    """The classes drawn on an image of the fixture (see conftest)."""
    return [bit + 1 for bit in range(3) if image_id >> bit & 1]


@pytest.fixture(scope="module")
def trained_project(tmp_path_factory):
    """A project with a run of `an` on made-up features, an audit that rests on it, and a precision guarantee."""
    folder = tmp_path_factory.mktemp("odd")
    for number in range(24):
        names = tuple(name for bit, name in enumerate(CLASSES) if (number + 1) >> bit & 1)
        draw(folder / "photos" / f"{number:02}.jpg", names, seed=number)
    (folder / "classes.txt").write_text("\n".join(CLASSES))
    set_up_project(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    db = Database(folder / "project")
    rng = np.random.default_rng(0)
    signs = rng.normal(size=(3, 40))
    features = np.stack([signs[[c - 1 for c in shown(image_id)]].sum(0) for image_id in range(1, 25)])
    features = np.maximum(features + rng.normal(scale=0.7, size=features.shape), 0).astype(np.float16)
    regions = np.repeat(features[:, None], 9, 1)
    for some in (slice(0, 12), slice(12, 24)):
        add_features(db, DEFAULT_BACKBONE, np.arange(1, 25)[some], features[some], regions[some])
    for image_id in range(1, 13):
        for class_id in shown(image_id)[:1]:
            answer_cell(db, image_id, class_id)
    configuration.set_method(db, "an", {})
    db.set_setting("acceptance", {"precision": 0.9, "present": True, "absent": False, "together": False})
    train(db)
    audit_sampling.draw_audit(db, 20, seed=1)
    return folder / "project"


@pytest.fixture
def trained(db):
    """A run of `an` on made-up features that show the classes, noisily; trained on the first twelve images."""
    rng = np.random.default_rng(0)
    ids = np.arange(1, 25)
    signs = rng.normal(size=(3, 40))
    features = np.stack([signs[[c - 1 for c in shown(image_id)]].sum(0) for image_id in ids])
    features = np.maximum(features + rng.normal(scale=0.7, size=features.shape), 0).astype(np.float16)
    order = rng.permutation(24)  # the cache's order is not that of the ids
    add_features(db, DEFAULT_BACKBONE, ids[order], features[order], np.zeros((24, 9, 40)))
    for image_id in range(1, 13):
        for class_id in shown(image_id)[:1]:
            answer_cell(db, image_id, class_id)
    configuration.set_method(db, "an", {})
    worker = Worker(db.paths.project)
    worker.train()
    worker.close()
    return db


def cache_of(db) -> FeatureCache:
    return open_features(db, DEFAULT_BACKBONE)


KILLED = """
import os, signal, sys
from pathlib import Path
from annotator.worker.training.update_thread import UpdateThread
from annotator.worker.process import Worker
worker, left = Worker(Path(sys.argv[1])), int(sys.argv[2])
def kill_at_rename(event, _):
    global left
    if event == "os.rename":
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(kill_at_rename)
UpdateThread(worker.db, worker.context.get_features).publish_pending_update()
"""
