"""What the model gains from knowing where and when images were taken (models/statistics/image_context.py).

A share of the events is answered whole, in every class, as audits and whole images are; hidden AP is that of all other
images. Both models train on the same answers and keep events on one side of every split; one is told the context.
"""

from pathlib import Path

import numpy as np

from annotator.benchmark.harness.child_processes import print_progress
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.events import membership
from annotator.store.features.feature_cache import open_features
from annotator.store.labels import audits
from annotator.store.networks import configuration
from annotator.worker.features.region_cache import RegionCache
from annotator.worker.training import capture_context
from annotator.worker.training.project_images import ProjectImages
from models.ensemble.stacking import AnsweredImages, FitSettings, fit_stacked
from models.labels import ABSENT, PRESENT, UNSEEN
from models.methods.auto import Auto
from models.statistics.image_context import ImageContext
from models.statistics.metrics import hidden_average_precision

ANSWERED_EVENT_SHARES = (0.1, 0.3)  # of the events that are answered


def measure_context(project: Path, shown: np.ndarray, seeds: int) -> dict[str, float]:
    """Return hidden AP in percent with and without the context, per ANSWERED_EVENT_SHARES: means over the seeds.

    Args:
        project: A project with features and events.
        shown: (N, C) bool, what its readable images show.
        seeds: The number of random draws of the answered events.
    """
    db = Database(project)
    cache = open_features(db, configuration.get_backbone(db))
    class_ids = [class_.id for class_ in classes.load_active_classes(db)]
    backbone = configuration.get_backbone(db)
    codes = ProjectImages(db, cache, backbone, None, RegionCache(), class_ids).region_codes(lambda *_: None)
    truth = shown[np.searchsorted(audits.load_readable_image_ids(db), cache.image_ids)]
    events = membership.load_split_groups(db, cache.image_ids)
    surroundings = capture_context.load(db, cache.image_ids, events)
    result = {}
    for share in ANSWERED_EVENT_SHARES:
        measured = []
        for seed in range(seeds):
            every = np.unique(events)
            drawn = np.random.default_rng(seed).permutation(every)[: max(1, round(share * len(every)))]
            rows = np.flatnonzero(np.isin(events, drawn))
            measured.append(
                [
                    _measure_hidden_ap(cache.features, codes, rows, truth, events, one, seed)
                    for one in (None, surroundings)
                ]
            )
        without, used = np.mean(measured, 0)
        print_progress(f"{share:.0%} of the events answered: hidden AP {without:.1f}, with context {used:.1f}")
        name = f"hidden_ap_{100 * share:.0f}_percent_answered"
        result |= {name: round(float(without), 2), f"{name}_with_context": round(float(used), 2)}
    return result


def _measure_hidden_ap(features, codes, rows, truth, events, surroundings: ImageContext | None, seed: int) -> float:
    """Return the AP in percent of all cells that are not answered."""
    known = np.where(truth[rows], PRESENT, ABSENT).astype(np.int8)
    unbiased = np.ones(known.shape, bool)
    model = fit_stacked(
        Auto(),
        AnsweredImages(features, codes, rows, known, unbiased, groups=events, context=surroundings),
        FitSettings(seed=seed),
    )
    for _ in model.epochs():
        pass
    assert model.probabilities is not None
    labels = np.full(truth.shape, UNSEEN, np.int8)
    labels[rows] = known
    return 100 * hidden_average_precision(model.probabilities, labels, truth).cells
