"""Cells on which people contradict each other, as history.py keeps them."""

from collections.abc import Sequence

import numpy as np

from annotator.store.database import Database
from annotator.store.history import disagreements


def count(db: Database) -> int:
    """How many cells people disagree on."""
    return db.value("SELECT count(*) FROM contradiction")


def newest(db: Database, limit: int) -> np.ndarray:
    """The cells that people came to disagree on most lately, newest first: (n, 2) int64, image id and class id."""
    rows = db.tuples("SELECT image_id, class_id FROM contradiction ORDER BY decision_id DESC LIMIT ?", [limit])
    return np.array(rows, np.int64).reshape(-1, 2)


def voices(db: Database, image_ids: Sequence[int]) -> dict[int, dict[int, dict[str, int]]]:
    """Who says what where people disagree: image id -> class id -> person -> state, the newest last."""
    with db.reading() as sql:
        by_image = {image_id: disagreements(sql, image_id) for image_id in image_ids}
    return {
        image_id: {class_id: states for class_id, (_, states) in by_class.items()}
        for image_id, by_class in by_image.items()
    }
