"""Finds near-duplicates by difference hashes, confirmed by embeddings if available."""

import logging
import time

import numpy as np

from annotator.indexing import find_positions
from annotator.store.images import near_duplicate_groups
from annotator.worker.features.worker_context import WorkerContext
from spmll.near_duplicates import group_similar_hashes, split_groups_by_features

PAUSE_FACTOR = 20  # times as long as finding them took, before they are looked for again

log = logging.getLogger("annotator.worker")


class NearDuplicateFinder:
    """The worker duty of finding near-duplicates."""

    def __init__(self, context: WorkerContext):
        self._context, self._db = context, context.db
        self._again_at = 0.0

    def find_if_due(self) -> bool:
        """Find near-duplicates if images were measured since the last search, and return whether it did."""
        newest = self._db.value("SELECT coalesce(max(id), 0) FROM appearance")
        if (
            newest == self._db.get_setting(near_duplicate_groups.GROUPED_SETTING, 0)
            or time.monotonic() < self._again_at
        ):
            return False
        self._context.report_state("finding twins")
        began = time.monotonic()
        # Signed numbers, read as the 64 bits that they are.
        measured = self._db.integer_rows("SELECT image_id, hash FROM appearance ORDER BY image_id")
        image_ids = measured[:, 0]
        groups = group_similar_hashes(np.ascontiguousarray(measured[:, 1]).view(np.uint64))
        cache = self._context.get_features()
        with_features = cache.image_ids
        rows, known = find_positions(image_ids, with_features, np.argsort(with_features))
        firsts = split_groups_by_features(groups, known, lambda places: cache.features[rows[places]])
        changed = near_duplicate_groups.save_groups(self._db, image_ids, image_ids[firsts])
        self._db.set_setting(near_duplicate_groups.GROUPED_SETTING, newest)
        seconds = time.monotonic() - began
        self._again_at = time.monotonic() + PAUSE_FACTOR * seconds
        log.info("twins: %d images, %d in another group, %.1f s", len(image_ids), changed, seconds)
        return True
