"""Computes the 2-D layout of the Map page in a thread."""

import logging
import threading
import time
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError
from annotator.snapshot import image_map
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache
from spmll.rows import Rows

RELAYOUT_NEW_SHARE = 0.1  # images without a place, as a share of those with one, at which the layout is made again

log = logging.getLogger("annotator.worker")


class Mapmaker:
    """The worker duty of computing the map layout."""

    def __init__(self):
        self._thread: threading.Thread | None = None
        self._failed: tuple[Path, int] | None = None

    def start_if_due(self, db: Database, backbone: str, cache: FeatureCache) -> None:
        """Start a thread that computes the map, if there is none or the share RELAYOUT_NEW_SHARE of images is new."""
        features = cache.features  # a refresh of the cache replaces its arrays: these stay as they are
        ids = cache.image_ids[: len(features)]
        folder = db.paths.map(backbone)
        if self._thread is not None and self._thread.is_alive():
            return
        if (
            not len(ids)
            or self._failed == (folder, len(ids))
            or len(ids) <= (1 + RELAYOUT_NEW_SHARE) * image_map.count_images(folder)
        ):
            return
        self._thread = threading.Thread(
            target=self._make_layout, args=[db, folder, ids, features], name="map", daemon=True
        )  # a daemon, so that it does not delay the worker's end; an unfinished layout is not published
        self._thread.start()

    def _make_layout(self, db: Database, folder: Path, ids: np.ndarray, features: Rows) -> None:
        from spmll.embedding_2d import compute_layout

        started = time.monotonic()
        try:
            image_map.save_map(folder, ids, compute_layout(features))
            log.info("map: %d images, %.1f s", len(ids), time.monotonic() - started)
        except (AnnotatorError, OSError, ValueError, MemoryError) as error:
            self._failed = (folder, len(ids))
            heartbeat.record_error(db, f"The map of {len(ids):,} images could not be made: {error}")
