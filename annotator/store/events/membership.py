"""The event of each image, as the table `image_event` has it: for whoever keeps images of an event together."""

import numpy as np

from annotator.indexing import positions
from annotator.store.database.database import Database

FOUND = "events_found"  # setting: the newest edit and the stamp of the images that the stored events follow from


def stamp(db: Database) -> tuple[int, ...] | None:
    """Return a key that changes with the stored events; None in a project that never asked for events."""
    found = db.setting(FOUND)
    return None if found is None else tuple(found)


def events_of(db: Database, image_ids: np.ndarray) -> np.ndarray | None:
    """Return the event of each image by its id, (N,) int64; None in a project that never asked for events.

    An image without a row, as one that was just added, is an event of its own.

    Args:
        db: The project's database.
        image_ids: (N,) int64, in any order.
    """
    found = stamp(db)
    if found is None:
        return None
    rows = db.caches.get(
        "image events", found, lambda: db.numbers("SELECT image_id, event_id FROM image_event ORDER BY image_id"), 1
    )
    places, known = positions(image_ids, rows[:, 0])
    # Events are named after one of their images, so the id of an image that has no row is no other event.
    return np.where(known, rows[places, 1], image_ids) if len(rows) else np.array(image_ids, np.int64)


def kept_together(db: Database, image_ids: np.ndarray) -> np.ndarray:
    """Return what a split of images has to keep together, (N,) int64: the event, or the image itself without events.

    Args:
        db: The project's database.
        image_ids: (N,) int64, in any order.
    """
    events = events_of(db, image_ids)
    return np.asarray(image_ids, np.int64) if events is None else events


def numbered(events: np.ndarray) -> np.ndarray:
    """Return the events as numbers from 0 on, (N,) int64."""
    return np.unique(events, return_inverse=True)[1]
