"""Capture place, time and event of images, as training input."""

import numpy as np

from annotator.indexing import find_positions
from annotator.store.database.database import Database
from annotator.store.events import project_events
from spmll.statistics.image_context import ImageContext


def load(db: Database, image_ids: np.ndarray, events: np.ndarray | None) -> ImageContext | None:
    """Return capture place, time and event of images, or None if the project has no events.

    Args:
        image_ids: (N,) int64.
        events: (N,) int64, or None.
    """
    if events is None or not len(events):
        return None
    found = project_events.derive_current(db)
    order = np.argsort(found.captures.image_ids)
    rows, known = find_positions(image_ids, found.captures.image_ids, order)
    position = found.arrangement.positions[rows]
    times = np.where(known, found.arrangement.times[position], np.nan)
    # An image that was just added is at a place of its own until the next training.
    places = np.where(known, found.captures.places[rows], -1 - np.arange(len(rows)))
    return ImageContext(events, places, times)
