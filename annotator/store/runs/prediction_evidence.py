"""Scores and boxes of prediction sources for single cells (image, class), for display."""

import numpy as np

from annotator.indexing import Ids
from annotator.store.database.database import Database
from annotator.store.runs import prediction_boxes
from annotator.store.runs.prediction_sources import (
    MAX_CACHED_VERSIONS,
    load_cell_scores,
    load_merged_classes,
    load_sources,
)

MAX_DRAWN_BOXES = 8  # boxes of one source in one cell
MIN_DRAWN_SCORE_SHARE = 0.25  # of the score of the surest box of the cell: boxes below are clutter, and not drawn

ModelBox = tuple[str, float, float, float, float, float]
"""The name of a source, its score of the box, and left, top, width and height as fractions of the image."""


def load_score_texts(db: Database, image_ids: Ids, class_ids: Ids) -> list[tuple[tuple[str, float], ...]]:
    """Return (external model, score) pairs per cell, for display."""
    result: list[tuple[tuple[str, float], ...]] = [()] * len(image_ids)
    for source, values in load_cell_scores(db, image_ids, class_ids):
        for place in np.flatnonzero(~np.isnan(values)).tolist():
            result[place] = (*result[place], (source.name, round(float(values[place]), 4)))
    return result


def load_cell_boxes(db: Database, image_ids: Ids, class_ids: Ids) -> list[tuple[ModelBox, ...]]:
    """Return the boxes of cells for display, without those far below the cell's best score.

    Args:
        image_ids, class_ids: (n,), one pair per cell.

    Returns:
        Per cell, up to MAX_DRAWN_BOXES boxes of each source.
    """
    result: list[tuple[ModelBox, ...]] = [()] * len(image_ids)
    merged = None
    for source in load_sources(db):
        every = _open_boxes(db, (source.id, source.version))
        if not len(every):
            continue
        merged = load_merged_classes(db) if merged is None else merged
        of_images = {
            image_id: prediction_boxes.find_image_boxes(every, image_id) for image_id in set(map(int, image_ids))
        }
        for place, (image_id, class_id) in enumerate(zip(image_ids, class_ids, strict=True)):
            of_image = of_images[int(image_id)]
            wanted = [int(class_id), *merged.get(int(class_id), ())]
            drawn = of_image[np.isin(of_image["class_id"], wanted)] if len(of_image) else of_image
            if len(drawn):
                drawn = drawn[np.argsort(-drawn["score"], kind="stable")][:MAX_DRAWN_BOXES]
                best = float(drawn["score"][0])
                result[place] += tuple(
                    _to_model_box(source.name, box)
                    for box in drawn
                    if best <= 0 or box["score"] >= MIN_DRAWN_SCORE_SHARE * best
                )
    return result


def _open_boxes(db: Database, key: tuple[int, int]) -> np.ndarray:
    folder = db.paths.predictions(*key)
    return db.caches.get("boxes of predictions", key, lambda: prediction_boxes.open_boxes(folder), MAX_CACHED_VERSIONS)


def _to_model_box(name: str, box: np.void) -> ModelBox:
    left, top, width, height = (round(step / prediction_boxes.STEPS_PER_SIDE, 4) for step in box["place"].tolist())
    return name, round(float(box["score"]), 4), left, top, width, height
