"""Decides when to train: if updates of the run do not suffice, and at most half of the time."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from annotator.records import Run
from annotator.settings import MIN_IMAGES_FOR_FIRST_RUN
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.classes import classes
from annotator.store.database import jobs
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions, project_counts
from annotator.store.networks import configuration
from annotator.store.runs import prediction_sources, runs
from annotator.worker.training import external_predictions

MIN_NEW_DECISIONS = 20  # decisions since the last training, and
MIN_NEW_DECISION_SHARE = 0.03  # this share of all labels make the next one due; with fewer, updates are nearly as good
QUIET_SECONDS = 5.0  # without a decision, after which fewer are enough
MAX_REQUESTED_REST_SECONDS = 30.0  # seconds of rest after a training at most, while somebody waits for the next one


@dataclass(frozen=True)
class RunInputs:
    """The state of the project that a run depends on. Equal inputs give equal runs."""

    newest_decision: int
    images: int
    class_ids: tuple[int, ...]
    method: str
    backbone: str
    sources: tuple[tuple[int, int], ...] = ()  # predictions from elsewhere, and their versions

    @classmethod
    def from_project(cls, db: Database, embedded: int) -> "RunInputs":
        class_ids, method = tuple(class_.id for class_ in classes.load_active_classes(db)), configuration.get_method(db)
        sources = prediction_sources.load_versions(db) if external_predictions.are_used_by(method) else ()
        return cls(
            decisions.get_newest_decision_id(db), embedded, class_ids, method, configuration.get_backbone(db), sources
        )

    @classmethod
    def from_run(cls, db: Database, run: Run) -> "RunInputs":
        sources = runs.load_source_versions(db, run.id)
        return cls(run.trained_decision_id, run.images, tuple(run.class_ids), run.method, run.backbone, sources)

    @property
    def urgent_inputs(self) -> tuple:
        """Return the inputs whose change requires immediate training."""
        return (self.images, self.class_ids, self.method, self.backbone)


class Schedule:
    """The rules that decide when training is due.

    Attributes:
        last_end: Clock time of the last training's end.
        failed_inputs: Inputs of a failed training, not retried until they change.
    """

    def __init__(self, clock: Callable[[], float] | None = time.monotonic):
        """Create a schedule.

        Args:
            clock: Returns seconds. Without a clock there are no pauses, and only the number of new decisions counts.
        """
        self._clock = clock
        self.last_end = self.last_seconds = 0.0
        self.failed_inputs: RunInputs | None = None
        self._newest, self._quiet_since = 0, clock() if clock else 0.0
        self._sources: tuple[tuple[int, int], ...] = ()
        self._sources_since = self._quiet_since

    def is_due(self, db: Database, embedded: int) -> bool:
        """Return whether to train now: on request, or if enough changed and enough images are labeled.

        Enough changed if the images, classes, method or backbone are others, or if new decisions number
        MIN_NEW_DECISIONS and MIN_NEW_DECISION_SHARE of all labels. Fewer suffice after QUIET_SECONDS without
        another one, or with a class's first positive.
        """
        asked = jobs.is_training_requested(db)
        basis = RunInputs.from_project(db, embedded)
        if self._clock and basis.newest_decision != self._newest:
            self._newest, self._quiet_since = basis.newest_decision, self._clock()
        if self._clock and basis.sources != self._sources:
            self._sources, self._sources_since = basis.sources, self._clock()
        if self._clock and self._clock() < self.last_end + compute_rest_seconds(self.last_seconds, asked):
            return False
        if asked:
            return True
        run = runs.load_current_run(db)
        if basis == self.failed_inputs or (run is not None and not self._enough_changed(db, basis, run)):
            return False
        if embedded - images.count_unlabeled_images(db) >= min(MIN_IMAGES_FOR_FIRST_RUN, embedded):
            return True
        return (
            bool(embedded)
            and external_predictions.are_used_by(basis.method)
            and external_predictions.have_sources_changed(db, run, basis.sources)
        )

    def record_end(self, seconds: float) -> None:
        """Record the end of a training, successful or not."""
        self.last_end, self.last_seconds = self._clock() if self._clock else 0.0, seconds

    def _enough_changed(self, db: Database, basis: RunInputs, run: Run) -> bool:
        before = RunInputs.from_run(db, run)
        published = read_predictions(db)
        if published is None:  # its arrays are damaged
            return True
        if basis == before:
            return False
        if basis.urgent_inputs != before.urgent_inputs:
            return True
        # A program that sends predictions for hours is not followed at every step, but with the decisions.
        if basis.sources != before.sources and (
            not self._clock or self._clock() >= self._sources_since + QUIET_SECONDS
        ):
            return True
        if basis.newest_decision == before.newest_decision:
            return False
        counts = project_counts.count_labels_by_class(db)
        newer, labels = basis.newest_decision - before.newest_decision, sum(map(sum, counts.values()))
        if newer >= max(MIN_NEW_DECISIONS, MIN_NEW_DECISION_SHARE * labels):
            return True
        if self._clock is None:
            return False
        if self._clock() >= self._quiet_since + QUIET_SECONDS or not len(published.probabilities):
            return True
        without_model = published.class_ids[np.isnan(published.probabilities[0])].tolist()
        return any(counts[class_id][0] for class_id in without_model if class_id in counts)


def compute_rest_seconds(seconds: float, is_requested: bool) -> float:
    """Return the pause after a training: its duration, or less (MAX_REQUESTED_REST_SECONDS) on request."""
    return min(seconds, MAX_REQUESTED_REST_SECONDS) if is_requested else seconds
