"""Trains with the configuration of the project when a training is due or requested."""

import logging
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from annotator.errors import AnnotatorError
from annotator.records import Run
from annotator.store.database import heartbeat, jobs
from annotator.store.database.jobs import Job
from annotator.store.networks import configuration
from annotator.worker.features.context import Context, Stopped
from annotator.worker.training.schedule import Basis, Schedule

if TYPE_CHECKING:
    from models.ensemble.all_images import Scoring

log = logging.getLogger("annotator.worker")


class Training:
    """The duty of training, which also finishes the requests for it; each worker has one instance."""

    def __init__(self, context: Context, between: Callable[[str, int, int], None], scoring: "Scoring | None" = None):
        """Make the duty.

        Args:
            context: The worker's context.
            between: Called often during a training with (state, done, of).
            scoring: As in worker/training/train.py.
        """
        self._context, self._db, self._between, self._scoring = context, context.db, between, scoring
        self._regions = None  # RegionCache: importing torch takes seconds
        self.schedule = Schedule()

    def due(self) -> bool:
        """Return whether to train now."""
        return self.schedule.due(self._db, len(self._context.features().image_ids))

    def train_or_note(self) -> bool:
        """Train, and record an error for the pages to show; return True if a run was published."""
        basis = Basis.of_project(self._db, len(self._context.features().image_ids))
        try:
            self.train()
        except Stopped:
            raise
        except Exception as error:
            # Not retried before its inputs change, so the message stays readable. Any error is caught: heat maps and
            # updates of the previous run continue, and a restarted worker would only fail again.
            reason = str(error) if isinstance(error, AnnotatorError) else traceback.format_exc()
            log.warning("the training failed: %s", reason)
            heartbeat.note_error(self._db, reason)
            self.schedule.failed = basis
            return False
        return True

    def train(self) -> Run:
        """Train and publish.

        Earlier requests for a training are finished when it ends, successful or not; after a kill or a stop they wait
        for the next worker.
        """
        requests = jobs.claim(self._db, "train", limit=100)
        try:
            run = self._publish_run()
        except Stopped:
            jobs.put_back(self._db, requests)
            raise
        except Exception:
            self._finish(requests)
            raise
        self._finish(requests)
        return run

    def _finish(self, requests: Sequence[Job]) -> None:
        for job in requests:
            jobs.finish(self._db, job)

    def _publish_run(self) -> Run:
        started = time.monotonic()
        self._context.say("training")
        from annotator.worker.features.region_cache import RegionCache
        from annotator.worker.training.train import train

        self._regions = self._regions or RegionCache()
        method = configuration.method(self._db)
        try:
            run = train(
                self._db,
                self._context.features(),
                method,
                configuration.parameters(self._db),
                self._context.backbone_name(),
                between=self._between,
                load=self._context.backbone,
                regions=self._regions,
                scoring=self._scoring,
            )
        except ValueError as error:  # from models: invalid inputs, which the next run may not have
            raise AnnotatorError(f"{method} could not be trained: {error}") from error
        finally:  # a failed training also took time
            self.schedule.note_end(time.monotonic() - started)
        heartbeat.note_error(self._db, "")
        log.info("run %d: %s, %d epochs, %.2f s", run.id, run.method, run.epochs, run.seconds)
        return run
