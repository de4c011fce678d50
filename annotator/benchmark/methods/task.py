"""The task of a method in one comparison: the labels it is given, and the figures it is judged by.

The training images have one of their labels each, or, below a share of 1, only some of them have; the rest is hidden.
Validation and test images are fully labelled, as in the papers: validation mAP chooses the epoch and the constants, the
test split is looked at once. What people get out of a method here are suggestions, so the hidden positives of the
training images are ranked too, of those without any label as well.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from annotator.benchmark.datasets.clicks import observed
from annotator.benchmark.datasets.dataset import DataSet
from annotator.benchmark.naming import RANDOM, Naming
from models.labels import ABSENT, PRESENT, UNSEEN
from models.statistics.metrics import (
    expected_calibration_error,
    hidden_average_precision,
    honest_totals,
    mean_average_precision,
    precision_at,
)
from models.trainers.base import TrainingLabels

FIRST = 100  # suggestions that a person would look at in one sitting
HIDDEN = ("hidden_ap", "hidden_map")  # what people get out of a method
RARE = ("rare", "rare_honest")  # classes with fewer than ten marks; of these, with a total within a factor of 2
FIGURES = ("test_map", "hidden_ap", "hidden_map", f"precision_{FIRST}", "ece", "seconds")


@dataclass(frozen=True)
class Choice:
    """The settings of a training that tuning chooses; the defaults are the method's own.

    Attributes:
        lr, epochs: Factors on those of the method (cached features) or of its paper (whole networks).
        batch: The batch size; None: the method's own.
        parameters: The method's constants that differ from their defaults.
    """

    lr: float = 1.0
    epochs: float = 1.0
    batch: int | None = None
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trained:
    """A trained method, at the epoch that was best on the validation images.

    Attributes:
        probabilities: Rows of the collection (n,) -> (n, C) float32, nan for a class without a model.
        epoch: The number of that epoch, from 1.
        val_map: Its mAP on the validation images, in [0, 1]; nan if there are none.
        seconds: The mean seconds of an epoch.
    """

    probabilities: Callable[[np.ndarray], np.ndarray]
    epoch: int
    val_map: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Task:
    """One drawing of labels; rows are images of the whole collection: training, validation, test, in this order.

    Attributes:
        truth: (N, C) bool, the complete truth of every image.
        train, val, test: The rows of the three parts.
        labels: (len(train), C) int8, the labels that the method may use: 1 present, -1 absent, 0 unseen.
        empty_as_zero: Whether a class without positives counts 0 in mAP (as in the published code) or not at all.
    """

    truth: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray
    labels: np.ndarray
    empty_as_zero: bool

    @property
    def labelled(self) -> np.ndarray:
        """The (n,) places in `train` of the images that have a label, from which a method learns."""
        return np.flatnonzero((self.labels != UNSEEN).any(1))

    def labels_for(self, full: bool) -> np.ndarray:
        """Return the labels of the `labelled` images, (n, C) int8; the complete truth if `full`."""
        if full:
            return np.where(self.truth[self.train[self.labelled]], PRESENT, ABSENT).astype(np.int8)
        return self.labels[self.labelled]

    def training_labels(self, full: bool) -> TrainingLabels:
        """Return what a trainer is given: the labels of `labels_for`, and all training images as the pool."""
        return TrainingLabels(self.train[self.labelled], self.labels_for(full), pool=self.train)

    def val_map(self, probabilities: np.ndarray) -> float:
        """Return the mean average precision on the validation images; probabilities are (len(val), C)."""
        return mean_average_precision(probabilities, self.truth[self.val], empty_as_zero=self.empty_as_zero)

    def chance(self) -> float:
        """Return the average precision of a random order: the share of positives of the hidden cells; 0 without any."""
        hidden = self.truth[self.train][self.labels == UNSEEN]
        return float(hidden.mean()) if len(hidden) else 0.0

    def figures(self, trained: Trained) -> dict[str, float]:
        """Return all reported figures of a trained method, by the names in FIGURES and RARE.

        Those of test images are left out if there are none.
        """
        of_train, truth = trained.probabilities(self.train), self.truth[self.train]
        unseen = self.labels == UNSEEN
        hidden = hidden_average_precision(of_train, self.labels, truth)
        on_test = {}
        if len(self.test):
            of_test, test_truth = trained.probabilities(self.test), self.truth[self.test]
            test_map = mean_average_precision(of_test, test_truth, empty_as_zero=self.empty_as_zero)
            on_test = {"test_map": test_map, "ece": expected_calibration_error(of_test, test_truth)}
        return (
            on_test
            | dict(zip(RARE, honest_totals(of_train, self.labels, truth), strict=True))
            | {
                "hidden_ap": hidden.cells,
                "hidden_map": hidden.classes,
                f"precision_{FIRST}": precision_at(of_train[unseen], truth[unseen], FIRST),
                "seconds": trained.seconds,
            }
        )


def task_of(dataset: DataSet, share: float, seed: int, naming: Naming = RANDOM) -> Task:
    """Return the task with the labels of one seed.

    On a set of the papers with all labels drawn at random, every seed gets the published labels, as in the papers; the
    seed then decides about the training alone.

    Raises:
        AnnotatorError: The share amounts to no image.
    """
    parts = (dataset.train, dataset.val, dataset.test)
    ends = np.cumsum([len(part) for part in parts])
    train, val, test = np.split(np.arange(ends[-1]), ends[:-1])
    official = dataset.official_rows is not None
    published = official and share == 1 and naming.kind == "random"
    labels = observed(dataset, share, 0 if published else seed, naming)
    return Task(np.concatenate([part.truth for part in parts]), train, val, test, labels, official)
