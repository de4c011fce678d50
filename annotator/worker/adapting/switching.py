"""Switching to another network: its features are computed while people go on with the old one, then it is used.

Also starts the process that the Settings page asks for: it adapts beside the worker, which trains and updates
meanwhile.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from annotator.errors import AnnotatorError
from annotator.store.database import heartbeat
from annotator.store.networks import adaptation as adapting
from annotator.store.networks import adapted, configuration
from annotator.worker.features.backbone import fetch_weights
from annotator.worker.features.context import Context
from annotator.worker.features.missing_features import MissingFeatures

if TYPE_CHECKING:
    from models.backbones.networks import Backbone

LOOK_SECONDS = 5.0  # between two looks at what is missing, where another process or a bucket is waited for
DOWNLOADING = "downloading the network"  # megabytes
AGAIN_SECONDS = 60.0  # after a process that ended with an error, until it may be started again


class NextContext(Context):
    """A worker's context for the network that is being prepared; heartbeat and stop are those of the worker."""

    def __init__(self, context: Context):
        super().__init__(context.db)
        self.stop = context.stop
        self._context = context

    def say(self, state: str, done: int = 0, of: int = 0) -> None:
        """Write the heartbeat of the worker."""
        self._context.say(state, done, of)

    def backbone(self) -> "Backbone":
        """Return the network, downloaded first where necessary. Raises AnnotatorError where that fails."""
        name = self.backbone_name()
        if not self.has_backbone() and adapted.folder(self.db, name) is None:
            fetch_weights(name, lambda done, of: self.say(DOWNLOADING, done >> 20, of >> 20))
        return super().backbone()

    def backbone_name(self) -> str:
        """Return the network that is being prepared; without one, that of the next run."""
        return adapted.next_backbone(self.db) or configuration.backbone(self.db)


class NextBackbone:
    """The duty of preparing the next network; each worker has one instance."""

    def __init__(self, context: Context, between: Callable[[str, int, int], None]):
        """Make the duty.

        Args:
            context: The worker's context.
            between: Called after every batch with (state, done, of).
        """
        self._db = context.db
        self._next = NextContext(context)
        self._missing = MissingFeatures(self._next, between)
        self._again_at = 0.0

    def prepare(self, train: Callable[[], bool] | None = None) -> bool:
        """Compute missing features of the next network, and use it when all images have them; return True then.

        Args:
            train: As in MissingFeatures.embed.
        """
        name = adapted.next_backbone(self._db)
        if not name or time.monotonic() < self._again_at:
            return False
        self._again_at = time.monotonic() + LOOK_SECONDS
        try:
            self._missing.embed(train)
            self._next.features().refresh()
        except AnnotatorError as error:
            adapted.prepare(self._db, "")
            heartbeat.note_error(self._db, f"{name} is not used: {error}")
            return False
        if self._missing.missing() or adapted.next_backbone(self._db) != name:
            return False
        configuration.choose_backbone(self._db, name)
        self._next.forget()
        return True


class Starter:
    """The duty of starting `annotator adapt` when Settings ask for it, or answers have doubled; one for each worker."""

    def __init__(self, context: Context):
        self._db, self._process = context.db, None
        self._again_at = self._look_at = 0.0

    def start_if_wanted(self) -> None:
        """Start `annotator adapt` where it was asked for or is due again, unless it is running."""
        if self._process is not None and self._process.poll() is not None:
            if self._process.returncode:
                self._again_at = time.monotonic() + AGAIN_SECONDS
            self._process = None
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + AGAIN_SECONDS
            adapting.start_if_due(self._db)
        wanted = adapting.wanted(self._db)
        if wanted not in ("run", "estimate") or self._process is not None or time.monotonic() < self._again_at:
            return
        if adapting.running(self._db) is not None:
            return
        words = ["--estimate"] if wanted == "estimate" else []
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "annotator", "adapt", str(self._db.paths.project), *words, "--watched"],
            stdin=subprocess.PIPE,  # its end is the end of this process
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def close(self) -> None:
        """End the process that was started; the next worker's process goes on from its last epoch."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(OSError):
                self._process.terminate()
