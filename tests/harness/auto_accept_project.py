"""A project of 1,200 images whose model is sure of the first class, and answers to its audit."""

import uuid

import numpy as np
import pytest

from annotator.quality import audit_sampling, auto_accept
from annotator.records import Batch
from annotator.snapshot import rankings
from annotator.snapshot.run_predictions import Probabilities
from annotator.store.classes import classes
from annotator.store.database import arrays
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.runs import runs

IMAGES = 1200
LIKELY = 800  # of them show the first class, and the model knows


@pytest.fixture
def many(tmp_path) -> Database:
    """1,200 images without files, two classes, and a run that is sure of the first class and right."""
    db = Database(tmp_path / "many", create=True)
    rows = [(number, f"{number}.jpg", f"{number:064}", 9, 9) for number in range(1, IMAGES + 1)]
    with db.writing() as sql:
        sql.conn.executemany("INSERT INTO image (id, name, sha256, width, height) VALUES (?, ?, ?, ?, ?)", rows)
    classes.add_classes(db, [("fox", ""), ("heron", "")])
    publish(db)
    return db


def publish(db, opposite: int = 0) -> None:
    """A new run; of the first `opposite` images it says that they do not show the first class after all."""
    chances = np.full((IMAGES, 2), 0.02, np.float16)
    chances[opposite:LIKELY, 0] = 0.998
    chances[:, 1] = np.linspace(0.1, 0.6, IMAGES)
    publish_chances(db, chances)


def publish_chances(db, chances: np.ndarray) -> None:
    """Publish these probabilities, (images, classes), as the worker does: what was accepted is held against them."""
    ids, class_ids = np.arange(1, chances.shape[0] + 1), np.arange(1, chances.shape[1] + 1)
    facts = {"method": "gr", "parameters": {}, "backbone": "none", "class_ids": class_ids.tolist(), "images": len(ids)}
    newest = decisions.get_newest_decision_id(db)
    run_id = runs.begin(db, **facts, last_decision_id=newest, threshold=0.5)
    auto_accept.recheck(db, Probabilities(ids, class_ids, chances))
    arrays.save_array(db.paths.run(run_id) / "image_ids.npy", ids)
    arrays.save_array(db.paths.run(run_id) / "probabilities.npy", chances)
    rankings.save(db.paths.run(run_id), rankings.build(db, newest, ids, class_ids, chances))
    runs.publish(db, run_id, epochs=1, seconds=0.1, loss=[0.5])


def answer_audit(db, wrong: int = 0, stop: int | None = None) -> None:
    """Answer the drawn cells in their order: as the model says, but for every so many that are the opposite."""
    for number, cell in enumerate(audit_sampling.load_open_cells(db)[:stop]):
        state = 1 if cell.image_id <= LIKELY and cell.class_id == 1 else -1
        state = -state if wrong and number % wrong == 0 else state
        cells = [(cell.image_id, cell.class_id, state, cell.score)]
        assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Ann", "audit", cells, run_id=cell.run_id)]).refused
