"""The current model's probabilities, memory-mapped, with or without archived classes."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from annotator.indexing import CellIndex
from annotator.records import Run
from annotator.snapshot import rankings
from annotator.snapshot.rankings import Rankings
from annotator.store.classes import classes
from annotator.store.database.arrays import open_array
from annotator.store.database.database import Database
from annotator.store.runs import probabilities, runs
from spmll.rows import Rows

MAX_CACHED_VERSIONS = 4  # in memory: mapped files, and what is computed from them


@dataclass(frozen=True, eq=False)
class Probabilities(CellIndex):
    """A model's probabilities by image and class."""

    # (N, C) float16, nan without a model
    probabilities: Rows


@dataclass(frozen=True, eq=False)
class Predictions(Probabilities):
    """One version of a model's probabilities, memory-mapped.

    `stored_columns` (C,) are the columns of the stored array that are used, None for all.
    """

    run: Run
    stored_columns: np.ndarray | None = None


class AlignedRows:
    """A reader of a model's probabilities for other images and classes, (N, C), by row, nan if unknown."""

    def __init__(self, predictions: Probabilities | None, image_ids: np.ndarray, class_ids: np.ndarray):
        self._predictions, self._image_ids, self._class_ids = predictions, image_ids, class_ids
        self.shape, self.dtype, self.ndim = (len(image_ids), len(class_ids)), np.dtype(np.float16), 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any, /) -> np.ndarray:
        wanted = self._image_ids[rows]
        if self._predictions is None:
            return np.full((len(wanted), self.shape[1]), np.nan, np.float16)
        return self._predictions.align(self._predictions.probabilities, wanted, self._class_ids)


def read_predictions(db: Database) -> Predictions | None:
    """Return the current predictions without archived classes, or None if missing or damaged."""
    predictions = read_stored_predictions(db)
    if predictions is None:
        return None
    archived = np.isin(predictions.class_ids, classes.load_archived_class_ids(db))
    return _select_columns(db, predictions, np.flatnonzero(~archived)) if archived.any() else predictions


def _select_columns(db: Database, predictions: Predictions, columns: np.ndarray) -> Predictions:
    run, class_ids = predictions.run, predictions.class_ids[columns]
    version = (run.id, run.version, *columns.tolist())
    chosen = db.caches.get(
        "probabilities of some classes", version, lambda: np.ascontiguousarray(predictions.probabilities[:, columns]), 1
    )
    run = replace(run, class_ids=class_ids.tolist())
    return Predictions(predictions.image_ids, class_ids, chosen, run, columns)


def read_stored_predictions(db: Database) -> Predictions | None:
    """Return the current predictions with archived classes, or None if missing or damaged."""
    # A newer version may replace the arrays between reading the row and opening the files.
    for _ in range(3):
        run = runs.load_current_run(db)
        if run is None:
            return None
        try:
            image_ids, values = open_arrays(db, run.id, run.version)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, EOFError):
            return None
        if values.shape != (len(image_ids), len(run.class_ids)):
            return None
        return Predictions(image_ids, np.asarray(run.class_ids, np.int64), values, run)
    return None


def describe_damaged_runs(db: Database) -> list[str]:
    """Return a sentence per model whose files cannot be read."""
    problems = [f"run {run_id}: its row cannot be read" for run_id in runs.find_damaged_runs(db)]
    run = runs.load_current_run(db)
    if run is not None and read_stored_predictions(db) is None:
        problems.append(f"run {run.id}: its arrays are gone, damaged, or not of its {len(run.class_ids)} classes")
    return problems


def load_rankings(db: Database, predictions: Predictions) -> Rankings | None:
    """Return a model's stored rankings. Without them, small models compute them once, large ones return None."""
    run, columns = predictions.run, predictions.stored_columns
    version = (run.id, run.version, *(() if columns is None else columns.tolist()))
    return db.caches.get("rankings", version, lambda: _load_or_build_rankings(db, predictions), MAX_CACHED_VERSIONS)


def _load_or_build_rankings(db: Database, predictions: Predictions) -> Rankings | None:
    run, values = predictions.run, predictions.probabilities
    stored = rankings.load(db.paths.run(run.id, run.version))
    if stored is not None and len(stored.by_class) != values.shape[1]:  # damaged, or of other classes
        stored = None
    if stored is not None and predictions.stored_columns is not None:
        return rankings.select_columns(
            db, stored, predictions.stored_columns, predictions.image_ids, predictions.class_ids, values
        )
    if stored is None and prod(values.shape) <= rankings.MAX_CELLS_RANKED_BY_PAGE:
        return rankings.build(db, run.last_decision_id, predictions.image_ids, predictions.class_ids, values)
    return stored


def open_arrays(db: Database, run_id: int, version: int = 0) -> tuple[np.ndarray, Rows]:
    """Return a model's image ids (N,) and memory-mapped probabilities (N, C). Raises OSError, ValueError."""
    image_ids = db.caches.get("image ids of runs", run_id, lambda: _load_image_ids(db, run_id), MAX_CACHED_VERSIONS)
    values = db.caches.get(
        "probabilities",
        (run_id, version),
        lambda: probabilities.open_probabilities(db, run_id, version),
        MAX_CACHED_VERSIONS,
    )
    return image_ids, values


def _load_image_ids(db: Database, run_id: int) -> np.ndarray:
    return np.array(open_array(db.paths.run(run_id) / "image_ids.npy", np.int64, 1))
