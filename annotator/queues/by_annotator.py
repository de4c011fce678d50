"""Which images somebody decided on: all are read once, then only what is new, so that a filter by person is quick."""

import threading

import numpy as np

from annotator.store import cells
from annotator.store.database import Database

PEOPLE_HELD = 16

_HELD: dict[tuple[str, str], "_Decided"] = {}
_HELD_LOCK = threading.Lock()


class _Decided:
    def __init__(self):
        self.lock = threading.Lock()
        self.seen = 0
        self.images = np.zeros(0, bool)  # by image id


def decided_on(db: Database, annotator: str) -> np.ndarray:
    """Of every image id from 0 up to the largest of this person's: whether they decided on it, up to now; (n,) bool.

    A decision that was taken back counts: they have seen the image.
    """
    key = (str(db.paths.project), annotator)
    with _HELD_LOCK:
        if key not in _HELD:
            while len(_HELD) >= PEOPLE_HELD:
                _HELD.pop(next(iter(_HELD)))
            _HELD[key] = _Decided()
        held = _HELD[key]
    with held.lock:
        ids, held.seen = cells.images_of(db, annotator, held.seen)
        largest = int(ids.max(initial=-1))
        if largest >= len(held.images):
            held.images = np.concatenate([held.images, np.zeros(largest + 1 - len(held.images), bool)])
        held.images[ids] = True
        return held.images
