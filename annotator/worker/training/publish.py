"""Publishes a training as the current run: calibration, query orders, rankings, arrays."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotator.errors import AnnotatorError
from annotator.indexing import find_positions
from annotator.quality import auto_accept, guarantee
from annotator.queues import query_order
from annotator.records import Run
from annotator.settings import LEFT_OUT_SETTING
from annotator.snapshot import rankings
from annotator.snapshot.run_predictions import Probabilities, describe_damaged_runs
from annotator.store.database import invalid_rows
from annotator.store.database.arrays import open_array, release_pages, replace_file_atomically, save_array, save_rows
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.labels import audits
from annotator.store.networks import configuration
from annotator.store.runs import runs
from annotator.worker.training import calibrate
from annotator.worker.training.related_columns import ConsistentRows, load_related_columns
from annotator.worker.training.training_set import TrainingSet
from spmll.linear.training import Head
from spmll.methods.base import Method
from spmll.rows import Rows
from spmll.trainers.base import TrainingOutcome

PORTABLE_MODEL_FILE = "portable.safetensors"  # of a run's folder: the model for images outside of the project

log = logging.getLogger("annotator.worker")


@dataclass(frozen=True, eq=False)
class FinishedTraining:
    """A training that has ended and is to be published."""

    # id of its run in the database
    run_id: int
    # labels that were trained on
    known: TrainingSet
    # method with its parameters
    method: Method
    backbone: str
    # probabilities and linear head
    outcome: TrainingOutcome
    # loss per epoch
    losses: Sequence[float]
    # time.perf_counter() at the start
    started_at: float
    # one sentence per kind of unusable database rows
    left_out: Sequence[str] = ()
    # (source id, version, {class id: weight}) of external predictions
    sources: Sequence[tuple[int, int, dict[int, float]]] = ()


def publish_run(db: Database, cache: FeatureCache, training: FinishedTraining) -> Run:
    """Write the result of a training and make its run current. Raises DiskFull, which keeps the previous run."""
    run_id, known, outcome, method = training.run_id, training.known, training.outcome, training.method
    calibration, unusable = None, []
    recorded = calibrate.make_identity_calibration(len(known.class_ids), int(known.unbiased.sum()))
    if not outcome.calibrated:  # else already calibrated on unbiased answers; not recalibrated on logged ones
        answers = calibrate.load_logged_answers(db, method.name, training.backbone, known.class_ids)
        unusable = answers.left_out
        unknown = known.make_unknown_mask(len(outcome.probabilities))
        calibration = recorded = calibrate.fit_run_calibration(answers, outcome.probabilities, unknown)
    scores: Rows = calibrate.CalibratedRows(calibration, outcome.probabilities)
    if related := load_related_columns(db, known.class_ids):
        scores = ConsistentRows(scores, related)
    write_run_files(db, run_id, outcome.head, scores, cache, known)
    if outcome.portable:
        with replace_file_atomically(db.paths.run(run_id) / PORTABLE_MODEL_FILE) as part:
            outcome.portable.save(part)
    runs.publish(
        db,
        run_id,
        epochs=len(training.losses),
        seconds=time.perf_counter() - training.started_at,
        loss=training.losses,
        calibration=recorded and recorded.to_dict(),
        threshold=calibrate.compute_threshold(calibration, method.threshold),
        sources=training.sources,
    )
    runs.delete_old_runs(db)
    record_invalid_rows(db, [*cache.left_out, *training.left_out, *unusable])
    run = runs.load_current_run(db)
    if run is None:
        raise AnnotatorError(f"Run {run_id} was published and cannot be read. Is the database damaged?")
    return run


def write_run_files(
    db: Database, run_id: int, head: Head, scores: Rows, cache: FeatureCache, known: TrainingSet
) -> None:
    """Write a run's query orders, probabilities, rankings and linear head (`scores`: calibrated, in cache order)."""
    folder, class_ids = db.paths.run(run_id), np.array(known.class_ids)
    labels = _LabelRows(known, len(cache.image_ids))
    query_order.save(folder, query_order.build(db, cache.image_ids, cache.features, scores, labels, seed=run_id))
    order = np.argsort(cache.image_ids, kind="stable")
    image_ids = cache.image_ids[order]
    save_array(folder / "image_ids.npy", image_ids, sync=False)
    # float16 tells apart what a person can: 0.998 and 0.999. Half the bytes to write after every run.
    save_rows(folder / "probabilities.npy", _ReorderedRows(scores, order), np.float16, sync=False)
    probabilities = np.asarray(open_array(folder / "probabilities.npy"))
    # Before the rankings, which leave out what is auto-accepted.
    auto_accept.recheck(db, Probabilities(image_ids, class_ids, probabilities))
    ranker = rankings.build_ranker(db, known.newest_decision_id, image_ids, class_ids, probabilities)
    rankings.save(folder, ranker.build_rankings())
    rankings.cache_ranker(db, run_id, ranker)
    release_pages(probabilities)
    with replace_file_atomically(folder / "head.safetensors") as part:
        head.save(part)


class _ReorderedRows:
    """A lazy array of rows (N, ...) in another order, read when indexed."""

    def __init__(self, rows: Rows, order: np.ndarray):
        self._rows, self._order = rows, order
        self.shape, self.dtype, self.ndim = rows.shape, rows.dtype, rows.ndim

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any, /) -> np.ndarray:
        return self._rows[self._order[rows]]


class _LabelRows:
    """A lazy array of the labels (N, C) int8 of all images, 0 unanswered, built per requested rows."""

    def __init__(self, known: TrainingSet, images: int):
        self._known = known
        self.shape, self.dtype, self.ndim = (images, len(known.class_ids)), np.dtype(np.int8), 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any, /) -> np.ndarray:
        wanted = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.asarray(rows)
        places, known = find_positions(wanted, self._known.rows)
        result = np.zeros((len(wanted), self.shape[1]), np.int8)
        result[known] = self._known.labels[places[known]]
        return result


def describe_invalid_rows(db: Database, known: TrainingSet) -> list[str]:
    """Return a sentence per kind of unusable rows, which training skips."""
    sentences = [
        *invalid_rows.describe_settings(db),
        *configuration.describe_ignored_settings(db),
        *guarantee.describe_invalid_setting(db),
        invalid_rows.describe_labels(db) if known.invalid_count else "",
        invalid_rows.describe_accepted_cells(db),
        *audits.describe_damage(db),
        *describe_damaged_runs(db),
    ]
    return [sentence for sentence in sentences if sentence]


def record_invalid_rows(db: Database, left_out: list[str]) -> None:
    """Store the sentences about invalid rows for the status page, and log new ones."""
    before = db.get_setting(LEFT_OUT_SETTING, [])
    for sentence in left_out:
        if sentence not in before:
            log.warning("left out: %s", sentence)
    if left_out != before:
        db.set_setting(LEFT_OUT_SETTING, left_out)
