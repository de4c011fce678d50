"""Runs with given probabilities, published without a training."""

import numpy as np
import pytest

from annotator.store.database import arrays
from annotator.store.database.database import Database
from annotator.store.runs import runs


def publish(db: Database, probabilities: np.ndarray, last_decision: int = 0) -> int:
    """A run without rankings, as an older version left them: the page works them out."""
    facts = {"method": "gr", "parameters": {}, "backbone": "none", "class_ids": [1, 2, 3], "images": 24}
    run_id = runs.begin(db, **facts, last_decision_id=last_decision, threshold=0.5)
    arrays.save_array(db.paths.run(run_id) / "image_ids.npy", np.arange(1, 25))
    arrays.save_array(db.paths.run(run_id) / "probabilities.npy", probabilities.astype(np.float16))
    runs.publish(db, run_id, epochs=1, seconds=0.1, loss=[0.5])
    return run_id


@pytest.fixture
def sure(db):
    """A run that is sure of some cells, unsure of others, and has no model of the third class."""
    rising = np.linspace(0.001, 0.999, 24)
    publish(db, np.stack([rising, np.full(24, 0.999), np.full(24, np.nan)], 1))
    return db
