"""One adapting in progress: heartbeats, progress, requests to stop, and the expected time."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from annotator.settings import HEARTBEAT_SECONDS
from annotator.store.database.database import Database
from annotator.store.networks import adaptation as adapting

Show = Callable[[int, int, str], None]


class Paused(Exception):
    """A request to stop; finished epochs are kept."""


@dataclass(frozen=True)
class Estimate:
    """The expected seconds of each part, measured on a few images and one step.

    Attributes:
        inputs: To prepare the images.
        training: For all epochs.
        features: To compute the features of all images of the project.
        images: The number of images in the plan.
        device: In words.
    """

    inputs: float
    training: float
    features: float
    images: int
    epochs: int
    device: str

    @property
    def seconds(self) -> float:
        """Return the seconds of all steps together."""
        return self.inputs + self.training + self.features


class Work:
    """The heartbeats and progress of one adapting, and its requests to stop."""

    def __init__(self, db: Database, claim: adapting.Adapting, show: Show):
        self.db, self._state, self._show = db, claim, show
        self.stop = threading.Event()
        self._reported_at = self._looked_at = 0.0
        self._ends_at: float | None = None

    def ends_in(self, seconds: float) -> None:
        """Set the expected time until the end."""
        self._ends_at = time.monotonic() + seconds

    def say(self, doing: str, done: int = 0, of: int = 0, *, at_once: bool = False) -> None:
        """Report progress, stored at most once in HEARTBEAT_SECONDS, unless the step is new or `at_once` is set."""
        seconds = time.monotonic()
        is_new = doing != self._state.doing
        left = None if self._ends_at is None else max(self._ends_at - seconds, 0.0)
        self._state = replace(self._state, doing=doing, done=done, of=of, heartbeat_at=time.time(), seconds_left=left)
        self._show(done, of, doing[:1].upper() + doing[1:])
        if is_new or at_once or seconds - self._reported_at >= HEARTBEAT_SECONDS:
            self._reported_at = seconds
            adapting.report(self.db, self._state)

    def should_stop(self) -> bool:
        """Return whether somebody asked to stop; at most once a second, read the request and report progress."""
        if time.monotonic() - self._looked_at > 1.0:
            self._looked_at = time.monotonic()
            if adapting.wanted(self.db) == "pause":
                self.stop.set()
            self.say(self._state.doing, self._state.done, self._state.of)
        return self.stop.is_set()

    def check(self) -> bool:
        """Raise Paused if somebody asked to stop; otherwise return False."""
        if self.should_stop():
            raise Paused
        return False


def low_priority() -> None:
    """Lower the priority of this process, so that people's pages and the worker go first."""
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(15)
