"""`annotator train`: choose the method and have a run, by the worker that is at work or, without one, right here."""

import time
from collections.abc import Callable
from pathlib import Path

from annotator.engine import recipe
from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.records import Run
from annotator.store import heartbeat, jobs, runs
from annotator.store.database import Database

POLL_SECONDS = 0.1


def train_now(
    project: Path, method: str | None = None, progress: Callable[[int, int], None] = lambda done, of: None
) -> Run:
    """Train on what is decided now, whether or not anything is newer than the last run.

    Raises AnnotatorError when there is nothing to learn from, or the worker says why it could not.
    """
    db = Database(project)
    if method is not None:
        recipe.choose_method(db, method)
    from annotator.engine import worker

    try:
        run = worker.main(project, once=True)
        if run is None:
            raise AnnotatorError("Stopped before the run was finished.")
        return run
    except AlreadyRunning:
        return _ask_worker(db, progress)


def _ask_worker(db: Database, progress: Callable[[int, int], None]) -> Run:
    before = runs.current_run(db)
    heartbeat.note_error(db, "")
    jobs.ask_training(db)
    while True:
        run, state = runs.current_run(db), heartbeat.worker_state(db)
        if run is not None and (before is None or run.id > before.id) and not jobs.training_asked(db):
            return run
        if state.last_error and not jobs.training_asked(db):
            raise AnnotatorError(f"The worker could not train: {state.last_error}")
        if not state.alive:
            raise AnnotatorError("The worker has ended meanwhile. Try again: annotator train works without one too.")
        progress(state.done, state.of)
        time.sleep(POLL_SECONDS)
