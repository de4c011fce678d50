"""The labels that training sees: one for each training image, on all of the images or on a share of them.

The same seed gives a larger share the labels of the smaller one and more of them, so that shares can be compared; and
it clicks the same images whichever class is named on them (naming.py).
"""

import numpy as np

from annotator.benchmark.datasets.dataset import DataSet, whole_truth
from annotator.benchmark.naming import RANDOM, Naming, first_named, log_weights
from annotator.errors import AnnotatorError
from models.labels import PRESENT, UNSEEN
from models.protocol import SEED, single_positive


def observed(dataset: DataSet, share: float = 1.0, seed: int = 0, naming: Naming = RANDOM) -> np.ndarray:
    """Return the (n_train, C) int8 labels of the training images: 1 present, -1 absent, 0 unseen.

    Args:
        dataset: The set that the labels are for.
        share: In (0, 1]: round(share x n_train) images keep their label, or as many as have a label; the rest keep
            none.
        seed: 0 gives the published labels of a paper's set (dataset.observed); other seeds draw new labels in the same
            way, on the whole official training set with seed 1200 + seed. For a folder, the seed of `clicks`.
        naming: Which class is named; except with random clicks, sets of the papers get labels as folders do.

    Raises:
        AnnotatorError: The share lies outside (0, 1] or amounts to no image, or the seed is negative.
    """
    if dataset.official_rows is None or naming.kind != "random":
        return clicks(dataset.train.truth, share, seed, naming, dataset.areas)
    _check(share, seed)
    if seed == 0:
        labels = dataset.observed.copy()
    else:
        labels = single_positive(whole_truth(dataset), seed=SEED + seed)[dataset.official_rows[0]]
    return labels if share == 1 else _thinned(labels, share, np.random.default_rng(seed))


def clicks(
    truth: np.ndarray, share: float, seed: int, naming: Naming = RANDOM, areas: np.ndarray | None = None
) -> np.ndarray:
    """Draw one true label for each of a share of the images; return (n, C) int8 in which all other cells are unseen.

    Args:
        truth: (n, C) bool.
        share: In (0, 1]: round(share x n) images, or all those that show anything, if these are fewer.
        seed: Decides all that is random.
        naming: The way in which the class is chosen; by default uniformly at random.
        areas: (n, C), the size of each class on each image; None: not known.

    Raises:
        AnnotatorError: The share lies outside (0, 1] or amounts to no image, or the seed is negative.
    """
    _check(share, seed)
    chance = np.random.default_rng(seed)
    labels = np.full(truth.shape, UNSEEN, np.int8)
    rows = np.flatnonzero(truth.any(1))
    weights = None if naming.kind == "random" else log_weights(truth, naming, seed, areas)
    first = first_named(truth, chance.random(truth.shape), weights)
    labels[rows, first[rows]] = PRESENT
    return _thinned(labels, share, chance)


def _thinned(labels: np.ndarray, share: float, chance: np.random.Generator) -> np.ndarray:
    """Keep the labels of a share of the images; a larger share includes the images of a smaller one."""
    marked = np.flatnonzero((labels == PRESENT).any(1))
    count = min(round(share * len(labels)), len(marked))
    if count < 1:
        raise AnnotatorError(
            f"A share of {share} of {len(labels)} training images, {len(marked)} of which show anything, is no image."
        )
    rows = chance.permutation(marked)[:count]
    thinned = np.full_like(labels, UNSEEN)
    thinned[rows] = labels[rows]
    return thinned


def _check(share: float, seed: int) -> None:
    if not 0 < share <= 1 or seed < 0:
        raise AnnotatorError(f"The share is {share} and the seed {seed}; it must be in (0, 1], and at least 0.")
