"""Decides when to train: when a training would add more than updates do, and for at most half of the time.

The worker and `annotator bench effort` use the same `Schedule`; a simulation has no clock and skips the rules that
depend on time.
"""

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
    """The inputs of a run: two runs with the same inputs are the same."""

    newest_decision: int
    images: int
    class_ids: tuple[int, ...]
    method: str
    backbone: str
    sources: tuple[tuple[int, int], ...] = ()  # predictions from elsewhere, and their versions

    @classmethod
    def from_project(cls, db: Database, embedded: int) -> "RunInputs":
        """Return the inputs of a run that would begin now.

        Args:
            db: The project's database.
            embedded: The number of images with features.
        """
        class_ids, method = tuple(class_.id for class_ in classes.load_active_classes(db)), configuration.get_method(db)
        sources = prediction_sources.load_versions(db) if external_predictions.are_used_by(method) else ()
        return cls(
            decisions.get_newest_decision_id(db), embedded, class_ids, method, configuration.get_backbone(db), sources
        )

    @classmethod
    def from_run(cls, db: Database, run: Run) -> "RunInputs":
        """Return the inputs of a published run."""
        sources = runs.load_source_versions(db, run.id)
        return cls(run.trained_decision_id, run.images, tuple(run.class_ids), run.method, run.backbone, sources)

    @property
    def urgent_inputs(self) -> tuple:
        """Return the inputs other than decisions and sources: a change of these calls for a training at once."""
        return (self.images, self.class_ids, self.method, self.backbone)


class Schedule:
    """The rules that decide when the next training is due; each worker has one instance.

    Attributes:
        last_end: When the last training ended, on the clock.
        last_seconds: How long it took.
        failed_inputs: The inputs of the last failed training: not retried before they change.
    """

    def __init__(self, clock: Callable[[], float] | None = time.monotonic):
        """Make a schedule.

        Args:
            clock: Returns seconds. None: no time passes, and only the number of decisions counts: no training waits for
                a rest, and none begins after a quiet moment or for the first positive of a class, because without rests
                such trainings would follow each other without a pause.
        """
        self._clock = clock
        self.last_end = self.last_seconds = 0.0
        self.failed_inputs: RunInputs | None = None
        self._newest, self._quiet_since = 0, clock() if clock else 0.0
        self._sources: tuple[tuple[int, int], ...] = ()
        self._sources_since = self._quiet_since

    def is_due(self, db: Database, embedded: int) -> bool:
        """Return whether to train now: a training is requested, or enough has changed and enough images are labeled.

        Args:
            db: The project's database.
            embedded: The number of images with features.

        Enough has changed when there are other images, classes, or another method; MIN_NEW_DECISIONS decisions and
        MIN_NEW_DECISION_SHARE
        of the labels; a first positive of a class; or fewer decisions, and then none for QUIET_SECONDS.
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
        """Record that a training of this many seconds has ended, successful or not."""
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
    """Return the seconds that the worker leaves the machine to others after a training that took `seconds`.

    The rest is as long as the training, but at most MAX_REQUESTED_REST_SECONDS while somebody waits for the next one.
    """
    return min(seconds, MAX_REQUESTED_REST_SECONDS) if is_requested else seconds
