"""One consistent view for one request: a version of the current run and what people answered since, at one moment."""

from dataclasses import dataclass

from annotator.records import Run
from annotator.snapshot.delta import Delta, read_delta
from annotator.snapshot.rankings import Rankings
from annotator.snapshot.run_predictions import Predictions, load_rankings, read_predictions
from annotator.store.database.database import Database


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The current run's probabilities, their rankings, and the delta since; none of them changes any more."""

    predictions: Predictions
    rankings: Rankings
    delta: Delta

    @property
    def run(self) -> Run:
        """Return the run whose predictions these are."""
        return self.predictions.run


def read_snapshot(db: Database) -> Snapshot | None:
    """Return the project's snapshot as of now.

    None before the first run, and where the run has no rankings or damaged arrays.
    """
    with db.reading():
        predictions = read_predictions(db)
        delta = read_delta(db, predictions) if predictions else None
    rankings = load_rankings(db, predictions) if predictions else None
    return Snapshot(predictions, rankings, delta) if predictions and rankings and delta else None
