"""Publishes the order in which to label images before the first run, from embeddings alone."""

import numpy as np

from annotator.errors import AnnotatorError
from annotator.queues import query_order
from annotator.store.database import heartbeat
from annotator.store.runs import runs
from annotator.worker.features.worker_context import WorkerContext

# times as many images, after which orders are made again while images are still being embedded
REMAKE_GROWTH_FACTOR = 2.0


class FirstOrderPublisher:
    """The worker duty that orders images for labeling before the first run."""

    def __init__(self, context: WorkerContext):
        self._context, self._db = context, context.db
        self._images = 0  # in the orders
        self._is_over = False

    def publish_if_due(self, all_embedded: bool) -> bool:
        """Publish orders if no run exists and enough images were added (one suffices if `all_embedded`).

        Returns whether it did.
        """
        if self._is_over:
            return False
        cache = self._context.get_features()
        count = len(cache.image_ids)
        if count < max(1.0, REMAKE_GROWTH_FACTOR * self._images) and not (all_embedded and count > self._images):
            return False
        if runs.load_current_run(self._db) is not None:
            self._is_over = True
            return False
        self._images = count
        try:
            query_order.publish_first(self._db, np.array(cache.image_ids), cache.features, seed=count)
        except AnnotatorError as error:  # a full disk: images come in random order until there is a run
            heartbeat.record_error(self._db, f"The order of the first images could not be stored: {error}")
        return True
