"""The images that each annotator has decided on, cached and updated incrementally."""

import threading

import numpy as np

from annotator.store.database.database import Database
from annotator.store.database.versions import get_class_version
from annotator.store.labels import label_cells

MAX_CACHED_PEOPLE = 16


class _DecidedImages:
    """A cache entry: which images one annotator has decided on, (n,) bool by image id, up to decision `newest`."""

    def __init__(self):
        self.lock = threading.Lock()
        self.newest = 0
        self.images = np.zeros(0, bool)


def get_decided_mask(db: Database, annotator: str) -> np.ndarray:
    """Return (n,) bool by image id: True if this annotator decided on it, even if undone."""
    key = annotator, get_class_version(db)  # which also changes when a person is renamed
    decided = db.caches.get("images of people", key, _DecidedImages, MAX_CACHED_PEOPLE)
    with decided.lock:
        image_ids, decided.newest = label_cells.load_decided_image_ids(db, annotator, decided.newest)
        largest = int(image_ids.max(initial=-1))
        if largest >= len(decided.images):
            decided.images = np.concatenate([decided.images, np.zeros(largest + 1 - len(decided.images), bool)])
        decided.images[image_ids] = True
        return decided.images
