"""The queue of images to embed, whose slow order is read once."""

import time

import numpy as np

from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions


class WorkList:
    """The queue of images to embed, labeled ones first, then in display order."""

    def __init__(self, db: Database, with_features: np.ndarray):
        """Read the order in which images are embedded, without those that have an embedding (`with_features`: ids)."""
        began = time.monotonic()
        self._db = db
        self._newest = decisions.get_newest_decision_id(db)  # before the order is read
        order = images.load_ids_in_working_order(db)
        self._order = order[~np.isin(order, with_features)]
        self._next = 0
        self._is_waiting = np.zeros(int(order.max(initial=0)) + 1, bool)  # by image id
        self._is_waiting[self._order] = True
        self._left = len(self._order)
        self.seconds = time.monotonic() - began
        self.excluded_addresses: set[str] = set()

    def __len__(self) -> int:
        return self._left

    def pop(self, count: int) -> list[int]:
        """Remove and return at most `count` image ids, newly labeled ones first."""
        labeled = images.load_ids_labeled_since(self._db, self._newest)
        taken = self._mark_taken(labeled[labeled < len(self._is_waiting)], count)
        while len(taken) < count and self._next < len(self._order):
            following = self._order[self._next : self._next + count - len(taken)]
            self._next += len(following)
            taken += self._mark_taken(following)
        return taken

    def exclude_address(self, address: str) -> None:
        """Remove the images that are stored only at this URL."""
        image_ids = images.load_ids_only_at_address(self._db, address)
        self._mark_taken(image_ids[image_ids < len(self._is_waiting)])
        self.excluded_addresses.add(address)

    def _mark_taken(self, image_ids: np.ndarray, max_count: int | None = None) -> list[int]:
        """Mark at most `max_count` of these images as taken, and return the ids of those that were still waiting."""
        image_ids = image_ids[self._is_waiting[image_ids]][:max_count]
        self._is_waiting[image_ids] = False
        self._left -= len(image_ids)
        return image_ids.tolist()
