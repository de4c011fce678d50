"""Switching backbones: the next one is used once it has embedded all images."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from annotator.errors import AnnotatorError
from annotator.progress_callbacks import StepCallback
from annotator.store.database import heartbeat
from annotator.store.networks import adaptation, adapted_networks, configuration
from annotator.worker.features.backbone import fetch_weights
from annotator.worker.features.image_embedder import ImageEmbedder
from annotator.worker.features.watched_command import start_command, stop_command
from annotator.worker.features.worker_context import WorkerContext

if TYPE_CHECKING:
    from spmll.backbones.frozen_backbone import Backbone

CHECK_SECONDS = 5.0  # between two looks at what is missing, where another process or a bucket is waited for
DOWNLOADING_STATE = "downloading the network"  # megabytes
RESTART_SECONDS = 60.0  # after a process that ended with an error, until it may be started again


class NextBackboneContext(WorkerContext):
    """A worker context in which the backbone is the next one, to which the project will switch."""

    def __init__(self, context: WorkerContext):
        super().__init__(context.db)
        self.stop = context.stop
        self._context = context

    def report_state(self, state: str, done: int = 0, total: int = 0) -> None:
        """Report progress of the worker."""
        self._context.report_state(state, done, total)

    def get_backbone(self) -> "Backbone":
        """Return the next backbone, downloading it if necessary. Raises AnnotatorError."""
        name = self.get_backbone_name()
        if not self.has_backbone() and adapted_networks.find_folder(self.db, name) is None:
            fetch_weights(name, lambda done, of: self.report_state(DOWNLOADING_STATE, done >> 20, of >> 20))
        return super().get_backbone()

    def get_backbone_name(self) -> str:
        """Return the name of the next backbone, or of the present one if none is planned."""
        return adapted_networks.get_next_backbone(self.db) or configuration.get_backbone(self.db)


class BackbonePreparer:
    """The worker duty that embeds with the next backbone and switches to it."""

    def __init__(self, context: WorkerContext, on_step: StepCallback):
        """Create the duty. `on_step` is called per batch with (state, done, of)."""
        self._db = context.db
        self._next = NextBackboneContext(context)
        self._missing = ImageEmbedder(self._next, on_step)
        self._retry_at = 0.0

    def prepare(self, train: Callable[[], bool] | None = None) -> bool:
        """Compute missing embeddings, calling `train` in between. Return True after switching."""
        name = adapted_networks.get_next_backbone(self._db)
        if not name or time.monotonic() < self._retry_at:
            return False
        self._retry_at = time.monotonic() + CHECK_SECONDS
        try:
            self._missing.embed_missing(train)
            self._next.get_features().refresh()
        except AnnotatorError as error:
            adapted_networks.set_next_backbone(self._db, "")
            heartbeat.record_error(self._db, f"{name} is not used: {error}")
            return False
        if self._missing.find_missing() or adapted_networks.get_next_backbone(self._db) != name:
            return False
        configuration.set_backbone(self._db, name)
        self._next.release()
        return True


class AdaptationStarter:
    """The worker duty that starts `annotator adapt`."""

    def __init__(self, context: WorkerContext):
        self._db, self._process = context.db, None
        self._retry_at = self._check_at = 0.0

    def start_if_requested(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            if self._process.returncode:
                self._retry_at = time.monotonic() + RESTART_SECONDS
            self._process = None
        if time.monotonic() >= self._check_at:
            self._check_at = time.monotonic() + RESTART_SECONDS
            adaptation.request_if_due(self._db)
        wanted = adaptation.get_request(self._db)
        if wanted not in ("run", "estimate") or self._process is not None or time.monotonic() < self._retry_at:
            return
        if adaptation.get_running(self._db) is not None:
            return
        words = ["--estimate"] if wanted == "estimate" else []
        self._process = start_command(self._db, "adapt", *words)
        if self._process is None:
            self._retry_at = time.monotonic() + RESTART_SECONDS

    def stop_process(self) -> None:
        stop_command(self._process)
