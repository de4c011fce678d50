"""External predictions as training input, and their versions and weights per run."""

from dataclasses import dataclass

import numpy as np

from annotator.errors import AnnotatorError
from annotator.records import Run
from annotator.snapshot.suggestions import list_guess_sources
from annotator.store.classes import name_texts
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.runs import prediction_sources, runs
from spmll.catalog import METHOD_NEEDS, get_default_method_name
from spmll.statistics.outside_scores import OutsideScores

SourceVersions = tuple[tuple[int, int], ...]
"""(source, version) of each."""


@dataclass(frozen=True, eq=False)
class ExternalPredictions:
    """The predictions of external sources, loaded for one training."""

    # versions of all sources, even unreadable ones
    versions: SourceVersions
    # (source id, scores in embedding order) of usable sources
    scores: list[tuple[int, OutsideScores]]

    @property
    def can_guess(self) -> bool:
        """Return whether a source gives probabilities, so that training needs no labels."""
        return any(scores.is_probability for _, scores in self.scores)

    def build_source_weights(
        self, class_ids: list[int], weights: np.ndarray | None
    ) -> list[tuple[int, int, dict[int, float]]]:
        """Return (source id, version, weight by class) per source. The weights are {} if none were learned.

        Args:
            weights: (C, K), weights of the K sources in `scores`, or None.
        """
        place = {source_id: at for at, (source_id, _) in enumerate(self.scores)}
        return [
            (
                source_id,
                version,
                {}
                if weights is None or source_id not in place
                else dict(zip(class_ids, np.round(weights[:, place[source_id]], 4).tolist(), strict=True)),
            )
            for source_id, version in self.versions
        ]


NO_PREDICTIONS = ExternalPredictions((), [])


def are_used_by(method: str) -> bool:
    """Return whether a training method uses external predictions: only `auto` does."""
    return method == get_default_method_name()


def load(db: Database, cache: FeatureCache, class_ids: list[int]) -> ExternalPredictions:
    """Return the scores of all external sources for embedded images."""
    versions = prediction_sources.load_versions(db)
    scores: list[tuple[int, OutsideScores]] = []
    for opened in prediction_sources.open_scores(db, versions):
        source, values = opened.source, prediction_sources.load_aligned_scores(db, opened, cache.image_ids, class_ids)
        if not np.isnan(values).all():
            scores.append((source.id, OutsideScores(source.name, values, source.scale)))
    return ExternalPredictions(versions, scores)


def load_name_scores(db: Database, cache: FeatureCache, class_ids: list[int]) -> np.ndarray:
    """Return probabilities from class names (N, C) float16, nan if missing. Raises AnnotatorError without any."""
    for opened in prediction_sources.open_scores(db):
        if opened.source.name == prediction_sources.CLASS_NAMES_SOURCE:
            return prediction_sources.load_aligned_scores(db, opened, cache.image_ids, class_ids)
    raise AnnotatorError(
        f"The method of this project needs {METHOD_NEEDS['text']}, and there are none. "
        f"{name_texts.describe_state(db)}\n"
        "    annotator names PROJECT says more; annotator backbones lists networks that know texts. Or choose another "
        "method: annotator train PROJECT --method auto"
    )


def have_sources_changed(db: Database, run: Run | None, versions: SourceVersions) -> bool:
    """Return whether external sources changed since the run, so that a training may start without enough labels."""
    before = runs.load_source_versions(db, run.id) if run else ()
    if before == versions:
        return False
    return bool(before or list_guess_sources(db))
