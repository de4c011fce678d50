"""A consistent view for one request: a model version and the answers since."""

from dataclasses import dataclass

from annotator.records import Run
from annotator.snapshot.delta import Delta, read_delta
from annotator.snapshot.rankings import Rankings
from annotator.snapshot.run_predictions import Predictions, load_rankings, read_predictions
from annotator.store.database.database import Database


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A view of the current model's probabilities, its rankings and its delta (answers since), immutable."""

    predictions: Predictions
    rankings: Rankings
    delta: Delta

    @property
    def run(self) -> Run:
        return self.predictions.run


def read_snapshot(db: Database) -> Snapshot | None:
    """Return the current snapshot, or None without a usable model."""
    with db.reading():
        predictions = read_predictions(db)
        delta = read_delta(db, predictions) if predictions else None
    rankings = load_rankings(db, predictions) if predictions else None
    return Snapshot(predictions, rankings, delta) if predictions and rankings and delta else None
