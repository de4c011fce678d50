"""The sources of predictions and how far the model believes each, for the command line and the Import page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import counts as overview
from annotator.store.runs import prediction_sources, runs
from annotator.store.runs.prediction_sources import Source

SHOWN = 4  # weights that are named


@dataclass(frozen=True)
class KnownSource:
    """A source as the project uses it.

    Attributes:
        covered: Share of the images of which it says anything.
        used: Whether the current run has seen it.
        weights: Class name -> weight that the run learned; {} where there were too few answers.
    """

    source: Source
    covered: float
    used: bool
    weights: Mapping[str, float]

    def facts(self) -> dict[str, Any]:
        """What the source itself does not say, as JSON."""
        return {"covered": self.covered, "weights": dict(self.weights), "used": self.used}

    def weights_in_words(self) -> str:
        """How far the model believes it: the classes of which it believes most, and least."""
        if not self.used:
            return "not used yet: after the next training"
        if not self.weights:
            return "too few answers: a small one for all"
        ordered = sorted(self.weights.items(), key=lambda pair: -pair[1])
        shown = ordered if len(ordered) <= SHOWN else [*ordered[: SHOWN // 2], *ordered[-SHOWN // 2 :]]
        return ", ".join(f"{name} {weight:+.2f}" for name, weight in shown)


def known_sources(db: Database) -> list[KnownSource]:
    """All sources that were not removed."""
    run, images = runs.current_run(db), overview.image_counts(db)["all"]
    names = {class_.id: class_.name for class_ in classes.all_classes(db)}
    weights = runs.source_weights(db, run.id) if run else {}
    known: list[KnownSource] = []
    for source in prediction_sources.sources(db):
        learned = {names[id_]: round(weight, 3) for id_, weight in weights.get(source.id, {}).items() if id_ in names}
        covered = source.images / images if images else 0.0
        known.append(KnownSource(source, covered, source.id in weights, learned))
    return known
