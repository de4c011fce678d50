"""Trains with the project's configuration when due or requested."""

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from annotator.errors import AnnotatorError
from annotator.progress_callbacks import StepCallback
from annotator.records import Run
from annotator.store.database import heartbeat, jobs
from annotator.store.database.jobs import Job
from annotator.store.networks import configuration
from annotator.worker.features.worker_context import Stopped, WorkerContext
from annotator.worker.training.schedule import RunInputs, Schedule

if TYPE_CHECKING:
    from spmll.ensemble.collection_scoring import ScoringFunction

log = logging.getLogger("annotator.worker")


class TrainingDuty:
    """The worker duty of training."""

    def __init__(self, context: WorkerContext, on_step: StepCallback, scoring: "ScoringFunction | None" = None):
        """Create the duty. `on_step` is called with (state, done, of)."""
        self._context, self._db, self._on_step, self._scoring = context, context.db, on_step, scoring
        self._regions = None  # RegionCache: importing torch takes seconds
        self.schedule = Schedule()

    def is_due(self) -> bool:
        return self.schedule.is_due(self._db, len(self._context.get_features().image_ids))

    def train_or_record_error(self) -> bool:
        """Train, or record the error for the pages, and return whether a run was published."""
        basis = RunInputs.from_project(self._db, len(self._context.get_features().image_ids))
        try:
            self.train()
        except Stopped:
            raise
        except Exception as error:
            # Not retried before its inputs change, so the message stays readable. Any error is caught: heat maps and
            # updates of the previous run continue, and a restarted worker would only fail again.
            reason = heartbeat.describe_exception(error)
            log.warning("the training failed: %s", reason)
            heartbeat.record_error(self._db, reason)
            self.schedule.failed_inputs = basis
            return False
        return True

    def train(self) -> Run:
        """Train with the project's configuration and publish the run.

        Failure also finishes the requests. After a kill they wait for the next worker.
        """
        requests = jobs.claim(self._db, "train", limit=100)
        try:
            run = self._train_and_publish()
        except Stopped:
            jobs.release(self._db, requests)
            raise
        except Exception:
            self._finish_requests(requests)
            raise
        self._finish_requests(requests)
        return run

    def _finish_requests(self, requests: Sequence[Job]) -> None:
        for job in requests:
            jobs.finish(self._db, job)

    def _train_and_publish(self) -> Run:
        started = time.monotonic()
        self._context.report_state("training")
        from annotator.worker.features.region_cache import RegionCache
        from annotator.worker.training.train import train

        self._regions = self._regions or RegionCache()
        method = configuration.get_method(self._db)
        try:
            run = train(
                self._db,
                self._context.get_features(),
                method,
                configuration.get_parameters(self._db),
                self._context.get_backbone_name(),
                on_step=self._on_step,
                load=self._context.get_backbone,
                regions=self._regions,
                scoring=self._scoring,
            )
        except ValueError as error:  # from models: invalid inputs, which the next run may not have
            raise AnnotatorError(f"{method} could not be trained: {error}") from error
        finally:  # a failed training also took time
            self.schedule.record_end(time.monotonic() - started)
        heartbeat.record_error(self._db, "")
        log.info("run %d: %s, %d epochs, %.2f s", run.id, run.method, run.epochs, run.seconds)
        return run
