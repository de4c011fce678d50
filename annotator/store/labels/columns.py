"""Values of one column for thousands of images at once: the colours of the map."""

import json

import numpy as np

from annotator.indexing import positions
from annotator.store.database.database import Database


def stages(db: Database, image_ids: np.ndarray) -> np.ndarray:
    """Return the stage of each image, (n,) uint8 in the order of the ids; 0 for an unknown image.

    Stages: 0 untouched, 1 skipped, 2 has labels, 3 complete.
    """
    statement = (
        "SELECT i.id, i.stage FROM json_each(?) wanted CROSS JOIN image i ON i.id = wanted.value WHERE i.stage > 0"
    )
    return _values(db, image_ids, statement, default=0).astype(np.uint8)


def states(db: Database, class_id: int, image_ids: np.ndarray, unknown: int) -> np.ndarray:
    """Return the label of one class on each image, (n,) int8 in the order of the ids.

    1 is present, -1 absent, 0 unsure; open cells are `unknown`.
    """
    statement = """SELECT l.image_id, l.state FROM json_each(?) wanted
        CROSS JOIN label l ON l.image_id = wanted.value AND l.class_id = ?"""
    return _values(db, image_ids, statement, class_id, default=unknown).astype(np.int8)


def decided_since(db: Database, decision_id: int, most: int) -> np.ndarray | None:
    """Return the images of decisions newer than `decision_id`, (n,) int64; None for more than `most` decisions."""
    ids = db.tuples(
        "SELECT image_id FROM decision WHERE id > ? AND image_id IS NOT NULL LIMIT ?", [decision_id, most + 1]
    )
    return np.unique(np.array(ids, np.int64)) if len(ids) <= most else None


def _values(db: Database, image_ids: np.ndarray, statement: str, *parameters: int, default: int) -> np.ndarray:
    # Millions of images may have an answer, but only thousands are requested: CROSS JOIN makes SQLite look up each of
    # these by its key.
    pairs = db.tuples(statement, [json.dumps(image_ids.tolist()), *parameters])
    result = np.full(len(image_ids), default, np.int64)
    if pairs:
        ids, values = np.array(pairs, np.int64).T
        rows, _ = positions(ids, image_ids, np.argsort(image_ids))
        result[rows] = values
    return result
