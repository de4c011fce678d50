"""Finds twins: images whose difference hashes are close, and whose features, where there are some, agree."""

import logging
import time

import numpy as np

from annotator.indexing import positions
from annotator.store.images import twins
from annotator.worker.features.context import Context
from models.near_duplicates import confirmed, similar

PAUSE = 20  # times as long as finding them took, before they are looked for again

log = logging.getLogger("annotator.worker")


class Twins:
    """The duty of finding twins; each worker has one instance."""

    def __init__(self, context: Context):
        self._context, self._db = context, context.db
        self._again_at = 0.0

    def find_if_due(self) -> bool:
        """Find all twins if images were measured since the last time; return whether it did."""
        newest = self._db.value("SELECT coalesce(max(id), 0) FROM appearance")
        if newest == self._db.setting(twins.GROUPED, 0) or time.monotonic() < self._again_at:
            return False
        self._context.say("finding twins")
        began = time.monotonic()
        # Signed numbers, read as the 64 bits that they are.
        measured = self._db.numbers("SELECT image_id, hash FROM appearance ORDER BY image_id")
        image_ids = measured[:, 0]
        groups = similar(np.ascontiguousarray(measured[:, 1]).view(np.uint64))
        cache = self._context.features()
        with_features = cache.image_ids
        rows, known = positions(image_ids, with_features, np.argsort(with_features))
        firsts = confirmed(groups, known, lambda places: cache.features[rows[places]])
        changed = twins.keep(self._db, image_ids, image_ids[firsts])
        self._db.set_setting(twins.GROUPED, newest)
        seconds = time.monotonic() - began
        self._again_at = time.monotonic() + PAUSE * seconds
        log.info("twins: %d images, %d in another group, %.1f s", len(image_ids), changed, seconds)
        return True
