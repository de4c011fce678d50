"""What a comparison tells a training of its images: one positive each, more, absences, or the whole truth.

The papers tell one positive an image. Their tables also have rows with every label, with all absences, and with one
absence ("1 P, 1 N"); the draws of these are those of Cole et al. (spmll/single_positive_sampling.py) for the sets of
the papers.
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
    """How much every method is told.

    Attributes:
        labels: "single": some labels of an image, as the next two say; "full": all of them, present and absent.
        positives: Present labels of an image, at least 1; -1 (ALL): all of them.
        negatives: Absent labels of an image; -1 (ALL): all of them.
        validate: The labels of validation images that choose the epoch: "full": all, as in the papers; "observed":
            the positives that a training image would have, all else counting as absent; "none": no epoch is chosen,
            the last one counts.
    """

    labels: str = "single"
    positives: int = 1
    negatives: int = 0
    validate: str = "full"

    @property
    def hides(self) -> bool:
        """Return whether labels of training images stay hidden, so that finding them can be measured."""
        return self.labels == "single" and (self.positives, self.negatives) != (ALL_LABELS, ALL_LABELS)


SINGLE_POSITIVE = Supervision()


def draw_training_labels(
    dataset: DataSet,
    share: float,
    seed: int,
    naming: Naming = RANDOM_NAMING,
    supervision: Supervision = SINGLE_POSITIVE,
) -> np.ndarray:
    """Return the (n_train, C) int8 labels that training sees: 1 present, -1 absent, 0 unseen.

    Args:
        dataset: The set that the labels are for.
        share: As in clicks.draw_observed_labels; with full labels, all images at 1, so those that show nothing too.
        seed: As in clicks.draw_observed_labels.
        naming: As in clicks.draw_observed_labels; further positives of an image are drawn at random.
        supervision: How much is told.

    Raises:
        AnnotatorError: As clicks.draw_observed_labels does.
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
    """Return the labels with further true ones of the images that have any: in all so many of each kind.

    Args:
        dataset: The set that the labels are of.
        labels: (n_train, C) int8; its positives stay.
        seed: The seed with which `labels` were drawn.
        naming: The way in which they were.
        positives: At least 1, or ALL.
        negatives: At least 0, or ALL.
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
    """Return (n_val, C) bool: the positives that validation images would have if they were training images."""
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
    """Return (n, C) bool: in each row the `count` eligible cells with the highest keys of [0, 1]; ALL: all of them."""
    if count == ALL_LABELS:
        return eligible.copy()
    ranks = (-np.where(eligible, keys, -1.0)).argsort(1, kind="stable").argsort(1, kind="stable")
    return eligible & (ranks < count)
