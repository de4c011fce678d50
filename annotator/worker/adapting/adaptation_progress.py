"""Heartbeats, pause requests and remaining time of a running adaptation."""

import threading
import time
from dataclasses import dataclass, replace

from annotator.progress_callbacks import StepCallback
from annotator.settings import HEARTBEAT_SECONDS
from annotator.store.database.database import Database
from annotator.store.networks import adaptation


class Paused(Exception):
    """The exception that ends an adaptation when a pause is requested."""


@dataclass(frozen=True)
class AdaptationEstimate:
    """The estimated seconds of each step of an adaptation, measured on a few of its planned `images`."""

    inputs_seconds: float
    training_seconds: float
    features_seconds: float
    images: int
    epochs: int
    device: str

    @property
    def total_seconds(self) -> float:
        return self.inputs_seconds + self.training_seconds + self.features_seconds


class AdaptationProgress:
    """The progress reporter of one adaptation, which also checks for pause requests."""

    def __init__(self, db: Database, claim: adaptation.AdaptationState, on_step: StepCallback):
        self.db, self._state, self._show = db, claim, on_step
        self.stop = threading.Event()
        self._reported_at = self._looked_at = 0.0
        self._ends_at: float | None = None

    def set_remaining_seconds(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds

    def report(self, doing: str, done: int = 0, total: int = 0, *, immediately: bool = False) -> None:
        """Report progress, stored at most once per HEARTBEAT_SECONDS within a step."""
        seconds = time.monotonic()
        is_new = doing != self._state.doing
        left = None if self._ends_at is None else max(self._ends_at - seconds, 0.0)
        self._state = replace(
            self._state, doing=doing, done=done, of=total, heartbeat_at=time.time(), seconds_left=left
        )
        self._show(doing[:1].upper() + doing[1:], done, total)
        if is_new or immediately or seconds - self._reported_at >= HEARTBEAT_SECONDS:
            self._reported_at = seconds
            adaptation.report(self.db, self._state)

    def should_stop(self) -> bool:
        """Return whether the adaptation was asked to stop (checked at most once per second)."""
        if time.monotonic() - self._looked_at > 1.0:
            self._looked_at = time.monotonic()
            if adaptation.get_request(self.db) == "pause":
                self.stop.set()
            self.report(self._state.doing, self._state.done, self._state.of)
        return self.stop.is_set()

    def raise_if_paused(self) -> bool:
        """Raise Paused if the adaptation was asked to pause, else return False."""
        if self.should_stop():
            raise Paused
        return False
