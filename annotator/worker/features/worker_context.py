"""State shared by the worker's duties: the store, the features, the network, the heartbeat and the request to stop."""

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
    """The request to end, raised inside of a worker's duties."""


class WorkerContext:
    """The state that all duties of a worker share.

    Attributes:
        cache: Features of the current backbone, None until `features` is called.
        stop: Set when the worker was asked to end.
    """

    def __init__(self, db: Database):
        self.db = db
        self.cache: FeatureCache | None = None
        self.stop = threading.Event()
        self._network: tuple[str, Backbone] | None = None  # loaded when first needed: importing torch takes seconds
        self._beaten_at = 0.0
        self._state: tuple = ()

    def report_state(self, state: str, done: int = 0, total: int = 0) -> None:
        """Write the heartbeat: at once when the state is new, otherwise once in HEARTBEAT_SECONDS."""
        seconds = time.monotonic()
        if (state, total) != self._state or seconds - self._beaten_at >= HEARTBEAT_SECONDS or done == total:
            heartbeat.beat(self.db, state, done, total)
            self._beaten_at, self._state = seconds, (state, total)

    def check_stop(self) -> None:
        """Raise Stopped when the worker was asked to end."""
        if self.stop.is_set():
            raise Stopped

    def get_backbone_name(self) -> str:
        """Return the network of the next run; it can change at any time."""
        return configuration.get_backbone(self.db)

    def has_backbone(self) -> bool:
        """Return whether a network is loaded already."""
        return self._network is not None

    def get_backbone(self) -> "Backbone":
        """Return the network of the next run. Raises AnnotatorError when its weights cannot be had."""
        name = self.get_backbone_name()
        if self._network is None or self._network[0] != name:
            self.report_state("loading the network")
            self._network = (name, load_project_backbone(self.db, name))
        return self._network[1]

    def get_features(self) -> FeatureCache:
        """Return the features of the current backbone that exist so far."""
        name = self.get_backbone_name()
        if self.cache is None or self.cache.folder != self.db.paths.features(name):
            self.cache = open_features(self.db, name)
        self.cache.refresh_if_changed()
        return self.cache

    def release(self) -> None:
        """Free the network and the features."""
        self._network, self.cache = None, None
