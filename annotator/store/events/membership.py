"""The event of each image, as the table `image_event` has it: for whoever keeps images of an event together."""

import numpy as np

from annotator.indexing import find_positions
from annotator.store.database.database import Database

# setting: the newest edit and the stamp of the images that the stored events follow from
EVENTS_FOUND_SETTING = "events_found"


def get_change_key(db: Database) -> tuple[int, ...] | None:
    """Return a key that changes with the stored events; None in a project that never asked for events."""
    found = db.get_setting(EVENTS_FOUND_SETTING)
    return None if found is None else tuple(found)


def load_event_ids(db: Database, image_ids: np.ndarray) -> np.ndarray | None:
    """Return the event of each image by its id, (N,) int64; None in a project that never asked for events.

    An image without a row, as one that was just added, is an event of its own.

    Args:
        db: The project's database.
        image_ids: (N,) int64, in any order.
    """
    found = get_change_key(db)
    if found is None:
        return None
    rows = db.caches.get(
        "image events",
        found,
        lambda: db.integer_rows("SELECT image_id, event_id FROM image_event ORDER BY image_id"),
        1,
    )
    places, known = find_positions(image_ids, rows[:, 0])
    # Events are named after one of their images, so the id of an image that has no row is no other event.
    return np.where(known, rows[places, 1], image_ids) if len(rows) else np.array(image_ids, np.int64)


def load_split_groups(db: Database, image_ids: np.ndarray) -> np.ndarray:
    """Return what a split of images has to keep together, (N,) int64: the event, or the image itself without events.

    Args:
        db: The project's database.
        image_ids: (N,) int64, in any order.
    """
    events = load_event_ids(db, image_ids)
    return np.asarray(image_ids, np.int64) if events is None else events


def number_events(events: np.ndarray) -> np.ndarray:
    """Return the events as numbers from 0 on, (N,) int64."""
    return np.unique(events, return_inverse=True)[1]
