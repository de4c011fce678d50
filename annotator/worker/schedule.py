"""When the worker trains: as soon as enough has changed for a training to say more than updates do, and never more than
half of the time."""

import time
from dataclasses import dataclass

import numpy as np

from annotator.records import Run
from annotator.settings import FIRST_RUN_AT
from annotator.snapshot.predictions import read_predictions
from annotator.store import classes, configuration, decisions, images, jobs, overview, runs
from annotator.store.database import Database

ENOUGH = 20  # decisions since the last training, and
ENOUGH_OF_ALL = 0.03  # this share of all labels, for the next one; until then updates (update.py) say nearly as much
QUIET = 5.0  # seconds without a decision, after which fewer are enough
ASKED_REST = 30.0  # somebody who asks for a run waits no longer than this for the rest after the one before


@dataclass(frozen=True)
class Basis:
    """What a run depends on: while this stays the same, another run would be the same."""

    newest_decision: int
    images: int
    class_ids: tuple[int, ...]
    method: str
    backbone: str

    @classmethod
    def of_now(cls, db: Database, embedded: int) -> "Basis":
        """What a run would have now; embedded: images with features."""
        class_ids = tuple(one.id for one in classes.all_classes(db))
        return cls(
            decisions.newest_decision(db), embedded, class_ids, configuration.method(db), configuration.backbone(db)
        )

    @classmethod
    def of_run(cls, run: Run) -> "Basis":
        """What this run had."""
        return cls(run.trained_decision_id, run.images, tuple(run.class_ids), run.method, run.backbone)

    @property
    def but_decisions(self) -> tuple:
        return (self.images, self.class_ids, self.method, self.backbone)


class Pace:
    """What is remembered between two trainings; one for a worker.

    ended     when the last training ended, in monotonic seconds
    took      seconds that it took
    failed    what the last one could not be made from: not tried again before something has changed
    """

    def __init__(self):
        self.ended = self.took = 0.0
        self.failed: Basis | None = None
        self._newest, self._quiet_since = 0, time.monotonic()

    def due(self, db: Database, embedded: int) -> bool:
        """Whether to train now: somebody has asked, or enough has changed and enough is known.

        embedded    images with features

        Enough has changed when there are other images, classes, or another method; ENOUGH decisions and ENOUGH_OF_ALL
        of the labels; a first positive of a class; or fewer, and then nothing for QUIET seconds.
        """
        asked = jobs.training_asked(db)
        basis = Basis.of_now(db, embedded)
        if basis.newest_decision != self._newest:
            self._newest, self._quiet_since = basis.newest_decision, time.monotonic()
        if time.monotonic() < self.ended + rest_after(self.took, asked):
            return False
        if asked:
            return True
        run = runs.current_run(db)
        if basis == self.failed or (run is not None and not self._enough(db, basis, run)):
            return False
        return embedded - images.without_label(db) >= min(FIRST_RUN_AT, embedded)

    def _enough(self, db: Database, basis: Basis, run: Run) -> bool:
        before = Basis.of_run(run)
        found = read_predictions(db)
        if found is None:  # its arrays are damaged
            return True
        if basis == before:
            return False
        if basis.but_decisions != before.but_decisions:
            return True
        counts = overview.class_counts(db)
        newer, labels = basis.newest_decision - before.newest_decision, sum(map(sum, counts.values()))
        if newer >= max(ENOUGH, ENOUGH_OF_ALL * labels) or time.monotonic() >= self._quiet_since + QUIET:
            return True
        if not len(found.probabilities):
            return True
        without_model = found.class_ids[np.isnan(found.probabilities[0])].tolist()
        return any(counts[class_id][0] for class_id in without_model if class_id in counts)


def rest_after(seconds: float, asked: bool) -> float:
    """How long the worker leaves the machine to others after a training that took `seconds`: as long, however long that
    is, but not with somebody waiting for the next one."""
    return min(seconds, ASKED_REST) if asked else seconds
