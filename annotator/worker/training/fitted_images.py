"""Labels of images that an adapted backbone was trained on, whose scores look too good.

Stacking and calibration exclude them. The mistake search scores them with linear heads on the
original backbone, cross-fitted in two halves and calibrated (Platt 1999).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from annotator.indexing import find_positions
from annotator.store.database.database import Database
from annotator.store.events import membership
from annotator.store.features.feature_cache import FeatureCache, open_features
from annotator.store.networks import adapted_networks
from annotator.worker.training.training_set import TrainingSet
from spmll.finetune.linear_probe import fit_probe
from spmll.rows import Rows
from spmll.statistics.calibration import fit_calibration, to_logits

HALF_COUNT = 2
MAX_HEAD_IMAGES = 10_000  # images that a head is fitted to, at most
IMAGES_PER_BLOCK = 2048  # images scored at once
SEED = 0


def mark_biased(known: TrainingSet, fitted: np.ndarray) -> TrainingSet:
    """Return the training set with `unbiased` False on `fitted` images, (n,) bool: those that trained the backbone."""
    return replace(known, unbiased=known.unbiased & ~fitted[:, None]) if fitted.any() else known


def score_unseen(
    db: Database,
    cache: FeatureCache,
    backbone: str,
    known: TrainingSet,
    fitted: np.ndarray,
    probabilities: np.ndarray,
    tell: Callable[[], None] = lambda: None,
) -> None:
    """Replace the probabilities of images that trained the backbone by those of heads that have not seen them.

    Args:
        fitted: (n,) bool, the labeled images that the backbone was trained on.
        probabilities: (N, C) in cache order, changed in place.
        tell: Called regularly.
    """
    first = open_features(db, adapted_networks.find_first_parent(db, backbone))
    image_ids = cache.image_ids[known.rows]
    rows, there = find_positions(image_ids, first.image_ids, np.argsort(first.image_ids, kind="stable"))
    features: Rows = first.features
    if not there[fitted].all():
        features, rows, there = cache.features, known.rows, np.ones(len(known.rows), bool)
    together = membership.load_split_groups(db, image_ids)
    half_of = np.random.default_rng(SEED).integers(0, HALF_COUNT, int(image_ids.max()) + 1)[together]
    scores = np.full(known.labels.shape, np.nan, np.float32)
    for half in range(HALF_COUNT):
        scored = np.flatnonzero(fitted & (half_of == half))
        learned = _sample_images(np.flatnonzero(there & (half_of != half)))
        if not len(scored) or not (known.labels[learned] > 0).any():
            continue
        head = fit_probe(features[rows[learned]], known.labels[learned], known.mask[learned], known.unbiased[learned])
        for start in range(0, len(scored), IMAGES_PER_BLOCK):
            tell()
            some = scored[start : start + IMAGES_PER_BLOCK]
            scores[some] = head(features[rows[some]])
    cells = known.unbiased & fitted[:, None] & (known.labels != 0) & ~np.isnan(scores)
    at, columns = np.nonzero(cells)
    logits, present = to_logits(scores[at, columns]), known.labels[at, columns] > 0
    calibration = fit_calibration("platt", logits, columns, present, np.ones(len(at)), known.labels.shape[1])
    unseen = calibration.apply(to_logits(scores))
    for start in range(0, len(known.rows), IMAGES_PER_BLOCK):
        some = np.arange(start, min(start + IMAGES_PER_BLOCK, len(known.rows)))
        some = some[cells[some].any(1)]
        of_images = known.rows[some]
        before = probabilities[of_images]
        probabilities[of_images] = np.where(cells[some] & ~np.isnan(before), unseen[some], before)


def _sample_images(places: np.ndarray) -> np.ndarray:
    if len(places) <= MAX_HEAD_IMAGES:
        return places
    return np.sort(np.random.default_rng(SEED).choice(places, MAX_HEAD_IMAGES, replace=False))
