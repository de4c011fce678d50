"""What the current run says, as the page's process reads it: mapped from the disk, never all of it at once."""

from dataclasses import dataclass

import numpy as np

from annotator.indexing import CellIndex
from annotator.records import Run
from annotator.snapshot import rankings
from annotator.snapshot.rankings import Rankings
from annotator.store import runs
from annotator.store.arrays import open_array
from annotator.store.database import Database

VERSIONS_KEPT = 4  # in memory: mapped files, and what is worked out from them


@dataclass(frozen=True, eq=False)
class Probabilities(CellIndex):
    """A model's probabilities by image and class.

    probabilities    (N, C) float16 in [0, 1], nan where the class has no model
    """

    probabilities: np.ndarray


@dataclass(frozen=True, eq=False)
class Predictions(Probabilities):
    """One version of a run's probabilities, mapped from disk."""

    run: Run


def read_predictions(db: Database) -> Predictions | None:
    """The current run's predictions; None before the first run, and where its arrays are damaged (`damaged`)."""
    # The run's arrays may be replaced between reading its row and opening its files: then there is a newer one.
    for _ in range(3):
        run = runs.current_run(db)
        if run is None:
            return None
        try:
            image_ids, probabilities = arrays_of(db, run.id, run.version)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, EOFError):
            return None
        if probabilities.shape != (len(image_ids), len(run.class_ids)):
            return None
        return Predictions(image_ids, np.asarray(run.class_ids, np.int64), probabilities, run)
    return None


def damaged(db: Database) -> list[str]:
    """Runs that cannot be read, in a sentence each: nothing is suggested from them, and the next training replaces
    them."""
    told = [f"run {run_id}: its row cannot be read" for run_id in runs.damaged(db)]
    run = runs.current_run(db)
    if run is not None and read_predictions(db) is None:
        told.append(f"run {run.id}: its arrays are gone, damaged, or not of its {len(run.class_ids)} classes")
    return told


def rankings_of(db: Database, found: Predictions) -> Rankings | None:
    """The run's rankings. A run of an older version has none: of a small one they are worked out here, once.

    None for a large one: the next run brings them.
    """
    return db.caches.get("rankings", (found.run.id, found.run.version), lambda: _rankings(db, found), VERSIONS_KEPT)


def _rankings(db: Database, found: Predictions) -> Rankings | None:
    kept = rankings.load(db.paths.run(found.run.id, found.run.version))
    if kept is None and found.probabilities.size <= rankings.SMALL:
        newest = found.run.last_decision_id
        return rankings.build(db, newest, found.image_ids, found.class_ids, found.probabilities)
    return kept


def arrays_of(db: Database, run_id: int, version: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The image ids of a run (N,), and a version's probabilities (N, C), mapped. Raises FileNotFoundError."""
    image_ids, probabilities = (
        db.paths.run(run_id) / "image_ids.npy",
        db.paths.run(run_id, version) / "probabilities.npy",
    )
    get = db.caches.get
    return (
        get("image ids of runs", run_id, lambda: np.array(open_array(image_ids)), VERSIONS_KEPT),
        get("probabilities", (run_id, version), lambda: np.asarray(open_array(probabilities)), VERSIONS_KEPT),
    )
