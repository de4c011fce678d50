"""Publishes a corrected version of the current run within a second of new decisions, without training.

Versions are independent. Files are written first and one row last, so a kill keeps the previous version.
"""

from typing import Any

import numpy as np

from annotator.indexing import find_positions
from annotator.records import Run
from annotator.snapshot import rankings
from annotator.snapshot.rankings import Ranker, Rankings
from annotator.snapshot.run_predictions import Predictions, open_arrays, read_stored_predictions
from annotator.store.database.arrays import CHUNK_ROWS, release_pages
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.labels import decisions, label_cells
from annotator.store.runs import probabilities, runs
from annotator.worker.features.image_codes import ImageCodesCache
from annotator.worker.training.related_columns import list_related_columns, load_related_columns
from spmll.ensemble.incremental_update import ImageCodes, apply_corrections, fit_correction
from spmll.rows import Rows
from spmll.statistics.relation_constraints import ClassRelations

MAX_ANSWERS_PER_STATE = 2000  # the newest of each class and state that an update uses; a training uses all


class Updater:
    """The publisher of corrected run versions. It keeps only cached file contents."""

    def __init__(self):
        self._codes = ImageCodesCache()
        self._run: _LoadedRun | None = None

    def update(self, db: Database, cache: FeatureCache) -> Run | None:
        """Publish a version with all decisions and return its run, or None if nothing is new. Raises DiskFull."""
        run = runs.load_current_run(db)
        if run is None or cache.folder != db.paths.features(run.backbone):
            return None
        loaded = self._load_run(db, run, cache)
        if loaded is None:
            return None
        if decisions.get_newest_decision_id(db) <= run.last_decision_id:
            return None
        changed, newest = label_cells.find_changed_classes(db, run.last_decision_id)
        columns = loaded.find_columns(changed)
        related = load_related_columns(db, loaded.class_ids)
        if not set(columns).isdisjoint(together := list_related_columns(related)):
            columns = sorted({*columns, *together})  # each may follow from the others
        if columns:
            before = read_stored_predictions(db)
            if before is None or (before.run.id, before.run.version) != (run.id, run.version):
                return None  # a newer run has just come
            rankings.save(
                db.paths.run(run.id, run.version + 1), loaded.write_next_version(db, before, columns, newest, related)
            )
        runs.publish_version(db, run.id, run.version + bool(columns), newest)
        return runs.load_current_run(db)

    def _load_run(self, db: Database, run: Run, cache: FeatureCache) -> "_LoadedRun | None":
        if self._run is None or self._run.run_id != run.id:
            features = cache.features  # a refresh of the cache replaces its arrays: these stay as they are
            image_ids = cache.image_ids[: len(features)]
            trained = read_stored_predictions(db)
            if trained is None or trained.run.id != run.id:
                return None  # a newer run has just come
            if not len(image_ids) or not np.isin(trained.image_ids, image_ids).all():
                return None  # a shard was damaged: its images are embedded again, and a training follows
            codes = self._codes.get_codes(cache, features, image_ids)
            self._run = _LoadedRun(db, trained, codes, _find_rows(trained.image_ids, image_ids))
        return self._run


class _LoadedRun:
    """A run in memory: its original predictions, image codes, and the rankings of its newest version."""

    def __init__(self, db: Database, trained: Predictions, codes: ImageCodes, images: np.ndarray):
        self.run_id = trained.run.id
        self._newest, self._codes, self._images = trained, codes, images
        self._trained = open_arrays(db, trained.run.id)[1]
        self._ranker = self._load_ranker(db, trained)

    def _load_ranker(self, db: Database, newest: Predictions) -> Ranker:
        """Return the ranker left by training, else one rebuilt from stored rankings."""
        run = newest.run
        ranker = rankings.pop_ranker(db, run.id)
        if ranker is not None and not run.version:
            return ranker
        arrays = newest.image_ids, newest.class_ids, newest.probabilities
        stored = rankings.load(db.paths.run(run.id, run.version))
        if stored is None:
            return rankings.build_ranker(db, run.last_decision_id, *arrays)
        ranker = Ranker(*arrays)
        ranker.resume(db, run.last_decision_id, stored)
        return ranker

    @property
    def class_ids(self) -> list[int]:
        return self._newest.class_ids.tolist()

    def find_columns(self, class_ids: set[int] | None) -> list[int]:
        """Return the columns of these classes in the run's arrays (None selects all)."""
        return [column for column, class_id in enumerate(self.class_ids) if class_ids is None or class_id in class_ids]

    def write_next_version(
        self, db: Database, before: Predictions, columns: list[int], newest: int, related: ClassRelations | None
    ) -> Rankings:
        """Write the next version with updated columns and return its rankings. Raises DiskFull."""
        run = before.run
        corrections = np.stack([self._fit_correction(db, run, column, newest) for column in columns])
        rows = _CorrectedRows(
            before.probabilities, self._trained, columns, self._codes, self._images, corrections, related
        )
        if probabilities.should_write_whole(db, run.id, run.version, len(columns)):
            probabilities.save_whole(db, run.id, run.version + 1, rows)
            release_pages(before.probabilities)
        else:
            probabilities.save_columns(
                db, run.id, run.version + 1, run.version, columns, rows.compute_changed_columns()
            )
        self._ranker.probabilities = probabilities.open_probabilities(db, run.id, run.version + 1)
        self._ranker.rank(db, newest, columns)
        ranked = self._ranker.build_rankings()
        release_pages(self._trained)
        release_pages(self._ranker.probabilities)
        return ranked

    def _fit_correction(self, db: Database, run: Run, column: int, newest: int) -> np.ndarray:
        class_id = int(self._newest.class_ids[column])
        ids, states = label_cells.load_sure_answers_between(
            db, class_id, run.trained_decision_id, newest, MAX_ANSWERS_PER_STATE
        )
        rows, known = self._newest.find_rows(ids)
        base = self._trained[rows[known], column]
        usable = ~np.isnan(base)
        rows = rows[known][usable]
        return fit_correction(self._codes[self._images[rows]], base[usable], states[known][usable])


class _CorrectedRows:
    """A lazy array of the next version's probabilities (N, C) float16, computed per requested rows."""

    def __init__(
        self,
        before: Rows,
        trained: Rows,
        columns: list[int],
        codes: ImageCodes,
        images: np.ndarray,
        corrections: np.ndarray,
        related: ClassRelations | None,
    ):
        self._before, self._trained, self._columns = before, trained, columns
        self._related = related if set(list_related_columns(related)) <= set(columns) else None
        self._codes, self._images, self._corrections = codes, images, corrections
        self.shape, self.dtype, self.ndim = before.shape, before.dtype, before.ndim

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any, /) -> np.ndarray:
        block = np.array(self._before[rows])
        block[:, self._columns] = self._compute_rows(rows)
        return block

    def compute_changed_columns(self) -> np.ndarray:
        """Return all probabilities of the c changed columns, (c, N) float16."""
        found = np.empty((len(self._columns), len(self)), np.float16)
        for start in range(0, len(self), CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            found[:, rows] = self._compute_rows(rows).T
        return found

    def _compute_rows(self, rows: Any) -> np.ndarray:
        base = self._trained[rows, self._columns]
        found = apply_corrections(self._codes, self._images[rows], base, self._corrections)
        if self._related is None:
            return found
        table = np.full((len(found), self.shape[1]), np.nan, np.float32)
        table[:, self._columns] = found
        return self._related.enforce(table)[:, self._columns].astype(found.dtype, copy=False)


def _find_rows(wanted: np.ndarray, image_ids: np.ndarray) -> np.ndarray:
    return find_positions(wanted, image_ids, np.argsort(image_ids, kind="stable"))[0]
