"""The labels that training sees: one positive per image, for all training images or a share of them.

With one seed, the labels of a larger share include those of a smaller one, for every click model (Naming).
"""

import numpy as np

from annotator.benchmark.datasets.dataset import DataSet, join_official_truth
from annotator.benchmark.first_named_class import RANDOM_NAMING, Naming, choose_first_classes, compute_log_weights
from annotator.errors import AnnotatorError
from spmll.labels import PRESENT, UNSEEN
from spmll.single_positive_sampling import PUBLISHED_SEED, sample_single_positives


def draw_observed_labels(
    dataset: DataSet, share: float = 1.0, seed: int = 0, naming: Naming = RANDOM_NAMING
) -> np.ndarray:
    """Return the labels that training sees, (n_train, C) int8: 1 present, -1 absent, 0 unseen.

    Args:
        share: In (0, 1]. round(share x n_train) images keep their label.
        seed: 0 selects the published labels of published sets, others draw new ones with 1200 + seed.
        naming: A click model that is not random draws new labels for published sets too.

    Raises:
        AnnotatorError: For an invalid share or seed.
    """
    if dataset.official_rows is None or naming.kind != "random":
        return draw_clicks(dataset.train.truth, share, seed, naming, dataset.areas)
    _check_share(share, seed)
    if seed == 0:
        labels = dataset.observed.copy()
    else:
        labels = sample_single_positives(join_official_truth(dataset), seed=PUBLISHED_SEED + seed)[
            dataset.official_rows[0]
        ]
    return labels if share == 1 else _thin_labels(labels, share, np.random.default_rng(seed))


def draw_clicks(
    truth: np.ndarray, share: float, seed: int, naming: Naming = RANDOM_NAMING, areas: np.ndarray | None = None
) -> np.ndarray:
    """Draw one true label per image for a share of images, (n, C) int8 with 0 elsewhere.

    Args:
        truth: (n, C) bool.
        share: In (0, 1], limited to images with a class.
        areas: (n, C), class sizes.

    Raises:
        AnnotatorError: For an invalid share or seed.
    """
    _check_share(share, seed)
    chance = np.random.default_rng(seed)
    labels = np.full(truth.shape, UNSEEN, np.int8)
    rows = np.flatnonzero(truth.any(1))
    weights = None if naming.kind == "random" else compute_log_weights(truth, naming, seed, areas)
    first = choose_first_classes(truth, chance.random(truth.shape), weights)
    labels[rows, first[rows]] = PRESENT
    return _thin_labels(labels, share, chance)


def _thin_labels(labels: np.ndarray, share: float, chance: np.random.Generator) -> np.ndarray:
    """Remove the labels of all but a random share of the images. Larger shares contain smaller ones."""
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


def _check_share(share: float, seed: int) -> None:
    if not 0 < share <= 1 or seed < 0:
        raise AnnotatorError(f"The share is {share} and the seed {seed}; it must be in (0, 1], and at least 0.")
