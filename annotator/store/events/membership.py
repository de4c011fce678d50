"""The stored event of each image, so that random splits of the data do not divide events."""

import numpy as np

from annotator.indexing import find_positions
from annotator.store.database.database import Database

# setting: the newest edit and the stamp of the images that the stored events follow from
EVENTS_FOUND_SETTING = "events_found"


def get_change_key(db: Database) -> tuple[int, ...] | None:
    """Return a key that changes with the stored events, or None if events are unused."""
    found = db.get_setting(EVENTS_FOUND_SETTING)
    return None if found is None else tuple(found)


def load_event_ids(db: Database, image_ids: np.ndarray) -> np.ndarray | None:
    """Return the event of each image (its own if none is stored), (N,) int64, or None if events are unused."""
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
    """Return the group of each image that a data split must not divide (its event or itself), (N,) int64."""
    events = load_event_ids(db, image_ids)
    return np.asarray(image_ids, np.int64) if events is None else events


def number_events(events: np.ndarray) -> np.ndarray:
    """Return the events renumbered from 0, (N,) int64."""
    return np.unique(events, return_inverse=True)[1]
