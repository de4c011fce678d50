"""Prediction sources (other models) and their weights in the current model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import project_counts
from annotator.store.runs import prediction_sources, runs
from annotator.store.runs.prediction_sources import PredictionSource

MAX_WEIGHTS_SHOWN = 4  # weights that are named


@dataclass(frozen=True)
class KnownSource:
    """A prediction source and how the current model uses it."""

    source: PredictionSource
    # share of images with a prediction
    covered: float
    used: bool
    # learned weight by class name, empty with too few answers
    weights: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        return {"covered": self.covered, "weights": dict(self.weights), "used": self.used}

    def describe_weights(self) -> str:
        """Describe the largest and smallest weights, or why there is none."""
        if not self.used:
            return "not used yet: after the next training"
        if not self.weights:
            return "too few answers: a small one for all"
        ordered = sorted(self.weights.items(), key=lambda pair: -pair[1])
        shown = (
            ordered
            if len(ordered) <= MAX_WEIGHTS_SHOWN
            else [*ordered[: MAX_WEIGHTS_SHOWN // 2], *ordered[-MAX_WEIGHTS_SHOWN // 2 :]]
        )
        return ", ".join(f"{name} {weight:+.2f}" for name, weight in shown)


def load_known_sources(db: Database) -> list[KnownSource]:
    """Return all prediction sources except removed ones."""
    run, images = runs.load_current_run(db), project_counts.count_images_by_stage(db)["all"]
    names = {class_.id: class_.name for class_ in classes.load_active_classes(db)}
    weights = runs.load_source_weights(db, run.id) if run else {}
    known: list[KnownSource] = []
    for source in prediction_sources.load_sources(db):
        learned = {names[id_]: round(weight, 3) for id_, weight in weights.get(source.id, {}).items() if id_ in names}
        covered = source.images / images if images else 0.0
        known.append(KnownSource(source, covered, source.id in weights, learned))
    return known
