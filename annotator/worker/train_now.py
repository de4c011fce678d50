"""`annotator train`: train in the running worker or in this process."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from annotator.cluster.connection import ClusterUse, check_cluster_option, connect_to_cluster
from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.progress_callbacks import ProgressCallback, ignore_progress
from annotator.records import Run
from annotator.store.database import heartbeat, jobs
from annotator.store.database.database import Database
from annotator.store.networks import configuration
from annotator.store.runs import runs

POLL_SECONDS = 0.1


def train_now(
    project: Path,
    method: str | None = None,
    settings: Sequence[str] = (),
    on_progress: ProgressCallback = ignore_progress,
    on: str = "local",
    notify: Callable[[str], None] = lambda sentence: None,
) -> Run:
    """Train on all decisions, even if none is new.

    Args:
        method: Method of this and later runs. None keeps the current one.
        settings: `key=value` overrides of its parameters.
        on: Where images are scored: "local", "ray" or "ray://HOST:PORT".

    Raises:
        AnnotatorError: Training failed. Invalid methods change nothing.
    """
    check_cluster_option(on)
    db = Database(project)

    def choose_first() -> None:
        if method is not None or settings:
            configure_method(db, method, settings)

    if on != "local":
        return _train_with_cluster(db, on, choose_first, notify)
    choose_first()
    from annotator.worker import process

    before = runs.load_current_run(db)
    while True:
        try:
            run = process.run_worker(project, once=True)
            if run is None:
                raise AnnotatorError("Stopped before the run was finished.")
            return run
        except AlreadyRunning:
            run = _ask_worker(db, before, on_progress)
            if run:
                return run
            time.sleep(1)  # the worker has ended, so this process can train, or it is only slow


def _train_with_cluster(db: Database, on: str, choose_first: Callable[[], None], notify: Callable[[str], None]) -> Run:
    """Train here and score on a cluster. Raises AnnotatorError."""
    again = "What is not published is trained again by the same command."
    use = ClusterUse(on, f"annotator train {db.paths.project}", again)
    with connect_to_cluster(use) as ray:
        choose_first()
        from annotator.worker import process
        from annotator.worker.training.cluster_scoring import ClusterScoring

        scoring = ClusterScoring(ray, use, db.paths.features(configuration.get_backbone(db)))
        try:
            run = process.run_worker(db.paths.project, once=True, scoring=scoring)
        except AlreadyRunning as error:
            raise AlreadyRunning(
                f"{error}\n    With --on this command trains by itself: end the app first, or leave out --on."
            ) from error
        finally:
            for sentence in scoring.problem_sentences:
                notify(sentence)
    if run is None:
        raise AnnotatorError("Stopped before the run was finished.")
    return run


def configure_method(db: Database, method: str | None, settings: Sequence[str]) -> None:
    """Set the method and parameters of later runs. Raises AnnotatorError before any change."""
    name = method or configuration.get_method(db)
    parameters = configuration.get_parameters(db) if method is None else {}
    changed = parameters | configuration.parse_parameters(name, settings)
    from spmll.methods import make_method  # loads torch; the method itself checks the values

    try:
        make_method(name, **changed)
    except ValueError as error:
        raise configuration.build_parameter_error(name, str(error)) from error
    defaults = configuration.get_method_entry(name).defaults
    configuration.set_method(db, name, {key: value for key, value in changed.items() if value != defaults[key]})


def _ask_worker(db: Database, before: Run | None, on_progress: ProgressCallback) -> Run | None:
    """Request a training from the running worker, and return its run or None if the worker ended."""
    heartbeat.record_error(db, "")
    if not jobs.is_training_requested(db):
        jobs.request_training(db)
    while True:
        run, state = runs.load_current_run(db), heartbeat.load_worker_state(db)
        if run is not None and (before is None or run.id > before.id) and not jobs.is_training_requested(db):
            return run
        if state.last_error and not jobs.is_training_requested(db):
            raise AnnotatorError(f"The worker could not train: {state.last_error}")
        if not state.alive:
            return None
        on_progress(state.done, state.of)
        time.sleep(POLL_SECONDS)
