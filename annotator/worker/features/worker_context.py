"""State shared by all duties: store, embeddings, backbone, heartbeat, stop flag."""

import threading
import time
from typing import TYPE_CHECKING

from annotator.settings import HEARTBEAT_SECONDS
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache, open_features
from annotator.store.networks import configuration
from annotator.worker.features.backbone import load_project_backbone

if TYPE_CHECKING:
    from spmll.backbones.frozen_backbone import Backbone


class Stopped(Exception):
    """The exception that ends a worker duty when the worker must stop."""


class WorkerContext:
    """The state shared by a worker's duties.

    Attributes:
        progress_at: Monotonic seconds of the main loop's last report.
        stored_at: The same of the last report that was stored.
    """

    def __init__(self, db: Database):
        self.db = db
        self.cache: FeatureCache | None = None
        self.stop = threading.Event()
        self._network: tuple[str, Backbone] | None = None  # loaded when first needed: importing torch takes seconds
        self.progress_at = self.stored_at = time.monotonic()
        self._state: tuple = ()

    def report_state(self, state: str, done: int = 0, total: int = 0) -> None:
        """Report progress of the main loop, stored at a limited rate while the state stays the same."""
        seconds = self.progress_at = time.monotonic()
        if (state, total) != self._state or seconds - self.stored_at >= HEARTBEAT_SECONDS or done == total:
            heartbeat.report_state(self.db, state, done, total)
            self.stored_at, self._state = seconds, (state, total)

    def check_stop(self) -> None:
        """Raise Stopped if the worker was asked to stop."""
        if self.stop.is_set():
            raise Stopped

    def get_backbone_name(self) -> str:
        """Return the name of the next training's backbone, which may change anytime."""
        return configuration.get_backbone(self.db)

    def has_backbone(self) -> bool:
        return self._network is not None

    def get_backbone(self) -> "Backbone":
        """Return the next training's backbone. Raises AnnotatorError."""
        name = self.get_backbone_name()
        if self._network is None or self._network[0] != name:
            self.report_state("loading the network")
            self._network = (name, load_project_backbone(self.db, name))
        return self._network[1]

    def get_features(self) -> FeatureCache:
        name = self.get_backbone_name()
        if self.cache is None or self.cache.folder != self.db.paths.features(name):
            self.cache = open_features(self.db, name)
        self.cache.refresh_if_changed()
        return self.cache

    def release(self) -> None:
        self._network, self.cache = None, None
