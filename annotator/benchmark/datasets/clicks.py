"""Which labels training gets to see: one a training image, on all of the images or on a share of them.

The same seed gives a larger share the labels of the smaller one and more of them, so that shares can be compared.
"""

import numpy as np

from annotator.benchmark.datasets.dataset import DataSet, whole_truth
from annotator.errors import AnnotatorError
from models.labels import PRESENT, UNSEEN
from models.protocol import SEED, single_positive


def observed(dataset: DataSet, share: float = 1.0, seed: int = 0) -> np.ndarray:
    """(n_train, C) int8 labels of the training images: 1 present, -1 absent, 0 unseen.

    share    in (0, 1]: round(share x n_train) images keep their label, or as many as have one; the rest none at all
    seed     0 gives the published labels of a paper's set (dataset.observed); others draw new ones in the same way,
             on the whole official training set with seed 1200 + seed. For a folder, the seed of `clicks`

    Raises AnnotatorError for a share outside (0, 1] or one that is no image, or a negative seed.
    """
    if dataset.official_rows is None:
        return clicks(dataset.train.truth, share, seed)
    _check(share, seed)
    if seed == 0:
        labels = dataset.observed.copy()
    else:
        labels = single_positive(whole_truth(dataset), seed=SEED + seed)[dataset.official_rows[0]]
    return labels if share == 1 else _thinned(labels, share, np.random.default_rng(seed))


def clicks(truth: np.ndarray, share: float, seed: int) -> np.ndarray:
    """(n, C) int8: a share of the images gets one of its true labels, uniformly at random; everything else is unseen.

    truth    (n, C) bool
    share    in (0, 1]: round(share x n) images, or all those that show anything, if these are fewer

    Raises AnnotatorError for a share outside (0, 1] or one that is no image, or a negative seed.
    """
    _check(share, seed)
    chance = np.random.default_rng(seed)
    labels = np.full(truth.shape, UNSEEN, np.int8)
    rows = np.flatnonzero(truth.any(1))
    # Of equally distributed numbers each is as likely as any other to be the largest one.
    first = np.where(truth, chance.random(truth.shape), -1).argmax(1) if truth.size else []
    labels[rows, first[rows]] = PRESENT
    return _thinned(labels, share, chance)


def _thinned(labels: np.ndarray, share: float, chance: np.random.Generator) -> np.ndarray:
    """Keeps the labels of so many images, the same first ones whatever the share is."""
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
