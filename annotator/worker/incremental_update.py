"""Publishes a new version of the current run after new decisions, in a fraction of a second, without a training.

Every class that was answered since the run's training gets a correction (models/ensemble/incremental_update.py). It is
always fitted to all of these answers, so that a version does not depend on the ones before it. Only columns with newer
answers change, in the probabilities and in the rankings. Files are written first, one row last: if the worker is killed
in between, the previous version stays. Probabilities and codes of all images lie on the disk and pass through memory in
blocks.
"""

from functools import partial
from typing import Any

import numpy as np

from annotator.indexing import positions
from annotator.records import Run
from annotator.snapshot import rankings
from annotator.snapshot.predictions import Predictions, arrays_of, stored_predictions
from annotator.snapshot.rankings import Ranker, Rankings
from annotator.store import cells, decisions, runs
from annotator.store.arrays import let_go, open_array, save_rows, scratch_array
from annotator.store.database import Database
from annotator.store.features.cache import FeatureCache
from models.ensemble.basis import GrowingCodes
from models.ensemble.incremental_update import (
    SAMPLE,
    Empty,
    ImageCodes,
    corrected,
    encode,
    fit_correction,
    learn_basis,
)

ANSWERS = 2000  # the newest of each class and state that an update uses; a training uses all


class Updater:
    """Publishes versions of the current run; its state in memory is a cache of what is on the disk."""

    def __init__(self):
        self._codes = GrowingCodes[ImageCodes](SAMPLE, self._joined)
        self._empty: Empty = np.empty
        self._run: _LoadedRun | None = None

    def update(self, db: Database, cache: FeatureCache) -> Run | None:
        """Publish a version that includes all decisions; None without new ones, or if the run has other features.

        cache    the features of the images

        Raises DiskFull: the previous version stays, and the next call tries again.
        """
        run = runs.current_run(db)
        if run is None or cache.folder != db.paths.features(run.backbone):
            return None
        loaded = self._load(db, run, cache)
        if loaded is None:
            return None
        if decisions.newest_decision(db) <= run.last_decision_id:
            return None
        changed, newest = cells.changed_classes(db, run.last_decision_id)
        columns = loaded.columns(changed)
        if columns:
            before = stored_predictions(db)
            if before is None or (before.run.id, before.run.version) != (run.id, run.version):
                return None  # a newer run has just come
            rankings.save(db.paths.run(run.id, run.version + 1), loaded.publish(db, before, columns, newest))
        runs.advance(db, run.id, run.version + bool(columns), newest)
        return runs.current_run(db)

    def _load(self, db: Database, run: Run, cache: FeatureCache) -> "_LoadedRun | None":
        """This run and the codes of its images; None if they are not available."""
        if self._run is None or self._run.run_id != run.id:
            features = cache.features  # a refresh of the cache replaces its arrays: these stay as they are
            image_ids = cache.image_ids[: len(features)]
            trained = stored_predictions(db)
            if trained is None or trained.run.id != run.id:
                return None  # a newer run has just come
            if not len(image_ids) or not np.isin(trained.image_ids, image_ids).all():
                return None  # a shard was damaged: its images are embedded again, and a training follows
            self._empty = partial(scratch_array, cache.folder)
            codes = self._codes.of(
                cache,
                len(features),
                lambda: learn_basis(features),
                lambda basis, first: encode(basis, features, first, self._empty),
            )
            self._run = _LoadedRun(db, trained, codes, _rows_of(trained.image_ids, image_ids))
        return self._run

    def _joined(self, codes: ImageCodes, others: ImageCodes) -> ImageCodes:
        return codes.joined(others, self._empty)


class _LoadedRun:
    """A run as its training left it, and the ranking of its newest version."""

    def __init__(self, db: Database, trained: Predictions, codes: ImageCodes, images: np.ndarray):
        """trained: of the newest version; images: (N,) the rows of the run's images in codes."""
        self.run_id = trained.run.id
        self._newest, self._codes, self._images = trained, codes, images
        self._trained = arrays_of(db, trained.run.id)[1]
        self._ranker = Ranker(trained.image_ids, trained.class_ids, trained.probabilities)
        if stored := rankings.load(db.paths.run(trained.run.id, trained.run.version)):
            self._ranker.go_on(db, trained.run.last_decision_id, stored)
        else:
            self._ranker.rank(db, trained.run.last_decision_id, range(len(trained.class_ids)))

    def columns(self, class_ids: set[int] | None) -> list[int]:
        """The columns of these classes; all for None."""
        of_run = self._newest.class_ids.tolist()
        return [column for column, class_id in enumerate(of_run) if class_ids is None or class_id in class_ids]

    def publish(self, db: Database, before: Predictions, columns: list[int], newest: int) -> Rankings:
        """Write the next version's probabilities: some columns brought up to date with the decisions up to `newest`,
        the others as in the version before. Returns its rankings. Raises DiskFull."""
        run = before.run
        corrections = np.stack([self._correction(db, run, column, newest) for column in columns])
        rows = _Corrected(before.probabilities, self._trained, columns, self._codes, self._images, corrections)
        file = db.paths.run(run.id, run.version + 1) / "probabilities.npy"
        save_rows(file, rows, np.float16, sync=False)
        self._ranker.probabilities = np.asarray(open_array(file))
        self._ranker.rank(db, newest, columns)
        ranked = self._ranker.rankings()
        for array in (before.probabilities, self._trained, self._ranker.probabilities):
            let_go(array)
        return ranked

    def _correction(self, db: Database, run: Run, column: int, newest: int) -> np.ndarray:
        class_id = int(self._newest.class_ids[column])
        ids, states = cells.sure_between(db, class_id, run.trained_decision_id, newest, ANSWERS)
        rows, known = self._newest.rows(ids)
        base = self._trained[rows[known], column]
        usable = ~np.isnan(base)
        rows = rows[known][usable]
        return fit_correction(self._codes[self._images[rows]], base[usable], states[known][usable])


class _Corrected:
    """Probabilities (N, C) float16 of a version, made of the one before for the rows that are asked for
    (models.rows.Rows)."""

    def __init__(
        self,
        before: np.ndarray,
        trained: np.ndarray,
        columns: list[int],
        codes: ImageCodes,
        images: np.ndarray,
        corrections: np.ndarray,
    ):
        self._before, self._trained, self._columns = before, trained, columns
        self._codes, self._images, self._corrections = codes, images, corrections
        self.shape, self.dtype, self.ndim = before.shape, before.dtype, before.ndim

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any, /) -> np.ndarray:
        block = np.array(self._before[rows])
        base = self._trained[rows][:, self._columns]
        block[:, self._columns] = corrected(self._codes, self._images[rows], base, self._corrections)
        return block


def _rows_of(wanted: np.ndarray, image_ids: np.ndarray) -> np.ndarray:
    """Where each of some image ids stands among others, all of which are there."""
    return positions(wanted, image_ids, np.argsort(image_ids, kind="stable"))[0]
