"""New decisions -> a new version of the current run, in a fraction of a second and without a training.

Every class that was answered since the run's training gets a correction (models/ensemble/incremental_update.py),
always worked out anew from
all of these answers, so that a version does not depend on the ones before it. Only columns with newer answers change,
in the probabilities and in the rankings. Files first, one row last: killed in between, the version before stays.
"""

import numpy as np
import torch
from torch import Tensor

from annotator.indexing import positions
from annotator.records import Run
from annotator.snapshot import rankings
from annotator.snapshot.predictions import Predictions, arrays_of, read_predictions
from annotator.snapshot.rankings import Ranker
from annotator.store import cells, decisions, runs
from annotator.store.arrays import FeatureCache, save_array
from annotator.store.database import Database
from models.ensemble.basis import GrowingCodes
from models.ensemble.incremental_update import SAMPLE, corrected, encode, fit_correction, learn_basis

ANSWERS = 2000  # of a class and state, the newest: more are a matter for a training


class Updater:
    """What a worker keeps between updates; all of it can be had again from the disk."""

    def __init__(self):
        self._codes = GrowingCodes[Tensor](SAMPLE, lambda codes, others: torch.cat([codes, others]))
        self._held: _Held | None = None

    def update(self, db: Database, cache: FeatureCache) -> Run | None:
        """Publish a version that has seen all decisions up to now; None where there is nothing new to see. What the
        next one needs is at hand afterwards.

        cache    the features of the images; None is returned when the current run was trained on others

        Raises DiskFull: the version before stays, and the next call tries again.
        """
        run = runs.current_run(db)
        if run is None or cache.folder != db.paths.features(run.backbone) or not self._hold(db, run, cache):
            return None
        if decisions.newest_decision(db) <= run.last_decision_id:
            return None
        changed, newest = cells.changed_classes(db, run.last_decision_id)
        columns = self._held.columns(changed)
        if columns:
            self._held.correct(db, run, columns, newest)
            folder = db.paths.run(run.id, run.version + 1)
            save_array(folder / "probabilities.npy", self._held.probabilities, sync=False)
            rankings.save(folder, self._held.ranker.rankings())
        runs.advance(db, run.id, run.version + bool(columns), newest)
        return runs.current_run(db)

    def _hold(self, db: Database, run: Run, cache: FeatureCache) -> bool:
        """Have this run and its images at hand; False where that cannot be."""
        if self._held is None or self._held.run_id != run.id:
            features = cache.features  # a refresh of the cache replaces its arrays: these stay as they are
            image_ids = cache.image_ids[: len(features)]
            found = read_predictions(db)
            if found is None or found.run.id != run.id:
                return False  # a newer run has just come
            if not len(image_ids) or not np.isin(found.image_ids, image_ids).all():
                return False  # a shard was damaged: its images are embedded again, and a training follows
            codes = self._codes.of(
                cache,
                len(features),
                lambda: learn_basis(features),
                lambda basis, first: encode(basis, features, first),
            )
            self._held = _Held(db, found, codes[_rows_of(found.image_ids, image_ids)])
        return True


class _Held:
    """One run as its training left it, and its probabilities as they are now, (N, C) float16."""

    def __init__(self, db: Database, found: Predictions, codes: Tensor):
        self.run_id = found.run.id
        self.probabilities = np.array(found.probabilities)
        self.ranker = Ranker(found.image_ids, found.class_ids, self.probabilities)
        self.ranker.look(db, found.run.last_decision_id, range(len(found.class_ids)))
        self._found, self._codes = found, codes
        self._trained = arrays_of(db, found.run.id)[1]

    def columns(self, class_ids: set[int] | None) -> list[int]:
        """Those of these classes; of all for None."""
        every = self._found.class_ids.tolist()
        return [column for column, class_id in enumerate(every) if class_ids is None or class_id in class_ids]

    def correct(self, db: Database, run: Run, columns: list[int], newest: int) -> None:
        """Bring some columns up to date with the decisions up to `newest`."""
        corrections = np.stack([self._correction(db, run, column, newest) for column in columns])
        self.probabilities[:, columns] = corrected(self._codes, self._trained[:, columns], corrections)
        self.ranker.look(db, newest, columns)

    def _correction(self, db: Database, run: Run, column: int, newest: int) -> np.ndarray:
        class_id = int(self._found.class_ids[column])
        ids, states = cells.sure_between(db, class_id, run.trained_decision_id, newest, ANSWERS)
        rows, known = self._found.rows(ids)
        base = self._trained[rows[known], column]
        usable = ~np.isnan(base)
        rows = rows[known][usable]
        return fit_correction(self._codes[torch.from_numpy(rows)], base[usable], states[known][usable])


def _rows_of(wanted: np.ndarray, image_ids: np.ndarray) -> Tensor:
    """Where each of some image ids stands among others, all of which are there."""
    return torch.from_numpy(positions(wanted, image_ids, np.argsort(image_ids, kind="stable"))[0])
