"""Publishes a new version of the current run after new decisions, in a fraction of a second, without a training.

Every class that was answered since the run's training gets a correction (models/ensemble/incremental_update.py). It is
always fitted to all of these answers, so that a version does not depend on the ones before it. Only columns with newer
answers change, in the probabilities and in the rankings. Files are written first, one row last: if the worker is killed
in between, the previous version stays.
"""

import numpy as np

from annotator.indexing import positions
from annotator.records import Run
from annotator.snapshot import rankings
from annotator.snapshot.predictions import Predictions, arrays_of, stored_predictions
from annotator.snapshot.rankings import Ranker
from annotator.store import cells, decisions, runs
from annotator.store.arrays import save_array
from annotator.store.database import Database
from annotator.store.features.cache import FeatureCache
from models.ensemble.basis import GrowingCodes
from models.ensemble.incremental_update import SAMPLE, ImageCodes, corrected, encode, fit_correction, learn_basis

ANSWERS = 2000  # the newest of each class and state that an update uses; a training uses all


class Updater:
    """Publishes versions of the current run; its state in memory is a cache of what is on the disk."""

    def __init__(self):
        self._codes = GrowingCodes[ImageCodes](SAMPLE, ImageCodes.joined)
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
            loaded.correct(db, run, columns, newest)
            folder = db.paths.run(run.id, run.version + 1)
            save_array(folder / "probabilities.npy", loaded.probabilities, sync=False)
            rankings.save(folder, loaded.ranker.rankings())
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
            codes = self._codes.of(
                cache,
                len(features),
                lambda: learn_basis(features),
                lambda basis, first: encode(basis, features, first),
            )
            self._run = _LoadedRun(db, trained, codes, _rows_of(trained.image_ids, image_ids))
        return self._run


class _LoadedRun:
    """A run as its training left it, and its corrected probabilities (N, C) float16."""

    def __init__(self, db: Database, trained: Predictions, codes: ImageCodes, images: np.ndarray):
        """images: (N,) the rows of the run's images in codes."""
        self.run_id = trained.run.id
        self.probabilities = np.array(trained.probabilities)
        self.ranker = Ranker(trained.image_ids, trained.class_ids, self.probabilities)
        self.ranker.rank(db, trained.run.last_decision_id, range(len(trained.class_ids)))
        self._predictions, self._codes, self._images = trained, codes, images
        self._trained = arrays_of(db, trained.run.id)[1]

    def columns(self, class_ids: set[int] | None) -> list[int]:
        """The columns of these classes; all for None."""
        of_run = self._predictions.class_ids.tolist()
        return [column for column, class_id in enumerate(of_run) if class_ids is None or class_id in class_ids]

    def correct(self, db: Database, run: Run, columns: list[int], newest: int) -> None:
        """Bring some columns up to date with the decisions up to `newest`."""
        corrections = np.stack([self._correction(db, run, column, newest) for column in columns])
        self.probabilities[:, columns] = corrected(self._codes, self._images, self._trained[:, columns], corrections)
        self.ranker.rank(db, newest, columns)

    def _correction(self, db: Database, run: Run, column: int, newest: int) -> np.ndarray:
        class_id = int(self._predictions.class_ids[column])
        ids, states = cells.sure_between(db, class_id, run.trained_decision_id, newest, ANSWERS)
        rows, known = self._predictions.rows(ids)
        base = self._trained[rows[known], column]
        usable = ~np.isnan(base)
        rows = rows[known][usable]
        return fit_correction(self._codes[self._images[rows]], base[usable], states[known][usable])


def _rows_of(wanted: np.ndarray, image_ids: np.ndarray) -> np.ndarray:
    """Where each of some image ids stands among others, all of which are there."""
    return positions(wanted, image_ids, np.argsort(image_ids, kind="stable"))[0]
