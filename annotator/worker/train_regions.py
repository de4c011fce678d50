"""A training of a method that reads regions (`auto`): on features and region codes of all images, labelled or not."""

from collections.abc import Callable

import numpy as np

from annotator.store.arrays import FeatureCache
from annotator.worker.region_cache import RegionCache
from annotator.worker.training_set import TrainingSet
from models.ensemble.stacking import fit_stacked
from models.linear.stand_in import linear_stand_in
from models.linear.training import Head
from models.methods.auto import Auto

STAND_IN_IMAGES = 3000  # from which the head for heat maps is fitted


def train_on_regions(
    cache: FeatureCache,
    known: TrainingSet,
    method: Auto,
    memory: RegionCache,
    seed: int,
    between: Callable[[str, int, int], None],
) -> tuple[Head, np.ndarray, list[float], bool]:
    """Train, and score all images.

    memory      where the region codes of the images are kept between trainings
    between     called often, with (state, done, of)
    returns     a linear head that nearly gives the same probabilities, for heat maps; (N, C) float32
                probabilities in the order of the cache; the loss of each epoch; whether they are calibrated
    """
    done, loss = 0, []

    def tell() -> None:
        between("training", done, method.epochs)

    region_codes = memory.of(cache, lambda: between("looking at regions of images", 0, 0))
    training = fit_stacked(
        method, cache.features, region_codes, known.rows, known.labels, known.fair, mask=known.mask,
        warm_start=memory.warm_start, seed=seed, tell=tell,
    )  # fmt: skip
    for epoch in training.epochs():
        loss.append(epoch.loss)
        done = epoch.number
        tell()
    probabilities = training.probabilities
    some = np.sort(np.random.default_rng(seed).permutation(len(probabilities))[:STAND_IN_IMAGES])
    head = linear_stand_in(cache.features[some], probabilities[some], tell)
    return head, probabilities, loss, training.calibrated
