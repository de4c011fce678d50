"""The labels that a comparison gives to training: one positive per image, more of them, absent labels, or all.

Draws for published sets follow Cole et al. (spmll/single_positive_sampling.py).
"""

from dataclasses import dataclass

import numpy as np

from annotator.benchmark.datasets.clicks import draw_clicks, draw_observed_labels
from annotator.benchmark.datasets.dataset import DataSet, join_official_truth
from annotator.benchmark.first_named_class import RANDOM_NAMING, Naming
from spmll.labels import ABSENT, PRESENT, UNSEEN
from spmll.single_positive_sampling import ALL_LABELS, PUBLISHED_SEED, sample_single_positives

LABEL_KINDS = ("single", "full")
VALIDATION_KINDS = ("full", "observed", "none")


@dataclass(frozen=True)
class Supervision:
    """The labels that every method receives."""

    # "single" for a few per image, or "full" for the complete truth
    labels: str = "single"
    # positives, negatives: labels per image, -1 (ALL_LABELS) for all
    positives: int = 1
    negatives: int = 0
    # validation labels: "full", "observed" (positives drawn as in training, others absent) or "none" (last epoch)
    validate: str = "full"

    @property
    def hides(self) -> bool:
        """Return whether some training labels are withheld, so that finding them can be measured."""
        return self.labels == "single" and (self.positives, self.negatives) != (ALL_LABELS, ALL_LABELS)


SINGLE_POSITIVE = Supervision()


def draw_training_labels(
    dataset: DataSet,
    share: float,
    seed: int,
    naming: Naming = RANDOM_NAMING,
    supervision: Supervision = SINGLE_POSITIVE,
) -> np.ndarray:
    """Return the training labels, (n_train, C) int8: 1 present, -1 absent, 0 unseen.

    Full labels at share 1 cover all images, even without a class. See `draw_observed_labels` for other arguments and
    errors.
    """
    labels, truth = draw_observed_labels(dataset, share, seed, naming), dataset.train.truth
    if supervision.labels == "full":
        told = np.ones(len(truth), bool) if share == 1 else (labels != UNSEEN).any(1)
        return np.where(told[:, None], np.where(truth, PRESENT, ABSENT), UNSEEN).astype(np.int8)
    if (supervision.positives, supervision.negatives) == (1, 0):
        return labels
    return add_true_labels(dataset, labels, seed, naming, supervision.positives, supervision.negatives)


def add_true_labels(
    dataset: DataSet, labels: np.ndarray, seed: int, naming: Naming, positives: int, negatives: int
) -> np.ndarray:
    """Return the labels with further true ones, up to the given counts per labeled image.

    Args:
        labels: (n_train, C) int8, its positives stay.
        positives, negatives: Totals, or ALL_LABELS.
    """
    truth, told = dataset.train.truth, (labels != UNSEEN).any(1)[:, None]
    if dataset.official_rows is not None and naming.kind == "random":
        drawn = sample_single_positives(join_official_truth(dataset), positives, negatives, PUBLISHED_SEED + seed)[
            dataset.official_rows[0]
        ]
        present, absent = drawn == PRESENT, drawn == ABSENT
    else:
        chance = np.random.default_rng([seed, 5])  # a stream of its own: the first positive stays the one named
        first = labels == PRESENT
        present = _choose_highest(np.where(first, 1.0, chance.random(truth.shape)), truth, positives)
        absent = _choose_highest(chance.random(truth.shape), ~truth, negatives)
    if positives == 1:
        present = labels == PRESENT  # those of a file, where the set brings them
    more = np.where(present, PRESENT, np.where(absent, ABSENT, UNSEEN))
    return np.where(told, np.where(labels == UNSEEN, more, labels), UNSEEN).astype(np.int8)


def draw_validation_positives(dataset: DataSet, seed: int, positives: int = 1) -> np.ndarray:
    """Draw the positives of validation images in the same way as for training images, (n_val, C) bool."""
    if dataset.official_rows is not None:
        drawn = sample_single_positives(join_official_truth(dataset), positives, 0, PUBLISHED_SEED + seed)
        return drawn[dataset.official_rows[1]] == PRESENT
    truth = dataset.val.truth
    labels = draw_clicks(truth, 1.0, seed) if truth.any() else np.zeros(truth.shape, np.int8)
    if positives == 1:
        return labels == PRESENT
    chance = np.random.default_rng([seed, 6])
    return _choose_highest(np.where(labels == PRESENT, 1.0, chance.random(truth.shape)), truth, positives)


def _choose_highest(keys: np.ndarray, eligible: np.ndarray, count: int) -> np.ndarray:
    """Return which cells, (n, C) bool, are the `count` eligible ones with the highest keys in their row."""
    if count == ALL_LABELS:
        return eligible.copy()
    ranks = (-np.where(eligible, keys, -1.0)).argsort(1, kind="stable").argsort(1, kind="stable")
    return eligible & (ranks < count)
