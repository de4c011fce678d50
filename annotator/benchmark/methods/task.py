"""What a method is given in one comparison, and what is asked of it afterwards.

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
    mean_average_precision,
    precision_at,
)
from models.trainers.base import TrainingLabels

FIRST = 100  # suggestions that a person would look at in one sitting
HIDDEN = ("hidden_ap", "hidden_map")  # what people get out of a method
FIGURES = ("test_map", "hidden_ap", "hidden_map", f"precision_{FIRST}", "ece", "seconds")


@dataclass(frozen=True)
class Choice:
    """The settings of a training that tuning chooses; the defaults are the method's own.

    Attributes:
        lr, epochs: Times those of the method (cached features) or of its paper (whole networks).
        batch: None: the method's own.
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
        epoch: Which one it was, from 1.
        val_map: What it scored on the validation images, in [0, 1]; nan where there are none.
        seconds: Of one epoch, on average.
    """

    probabilities: Callable[[np.ndarray], np.ndarray]
    epoch: int
    val_map: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Task:
    """One drawing of labels. Rows are images of the whole collection: training, validation, test, in this order.

    Attributes:
        truth: (N, C) bool, everything that is there, in every image.
        train, val, test: Rows of the three parts.
        labels: (len(train), C) int8, what the method may know: 1 present, -1 absent, 0 unseen.
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
        """(n,) places in `train` of the images that have a label: those a method learns from."""
        return np.flatnonzero((self.labels != UNSEEN).any(1))

    def labels_for(self, full: bool) -> np.ndarray:
        """(n, C) int8, the labels of the `labelled` images; all of the truth for a method that is given it."""
        if full:
            return np.where(self.truth[self.train[self.labelled]], PRESENT, ABSENT).astype(np.int8)
        return self.labels[self.labelled]

    def training_labels(self, full: bool) -> TrainingLabels:
        """Return what a trainer is given: the labels of `labels_for`, and all training images as the pool."""
        return TrainingLabels(self.train[self.labelled], self.labels_for(full), pool=self.train)

    def val_map(self, probabilities: np.ndarray) -> float:
        """Mean average precision on the validation images, probabilities (len(val), C)."""
        return mean_average_precision(probabilities, self.truth[self.val], empty_as_zero=self.empty_as_zero)

    def chance(self) -> float:
        """The average precision of a random order of the hidden cells: how many of them are positive; 0 without any."""
        hidden = self.truth[self.train][self.labels == UNSEEN]
        return float(hidden.mean()) if len(hidden) else 0.0

    def figures(self, trained: Trained) -> dict[str, float]:
        """Everything that is reported of a trained method, by the names in FIGURES; those of test images if there are
        any."""
        of_train, truth = trained.probabilities(self.train), self.truth[self.train]
        unseen = self.labels == UNSEEN
        hidden = hidden_average_precision(of_train, self.labels, truth)
        on_test = {}
        if len(self.test):
            of_test, test_truth = trained.probabilities(self.test), self.truth[self.test]
            test_map = mean_average_precision(of_test, test_truth, empty_as_zero=self.empty_as_zero)
            on_test = {"test_map": test_map, "ece": expected_calibration_error(of_test, test_truth)}
        return on_test | {
            "hidden_ap": hidden.cells,
            "hidden_map": hidden.classes,
            f"precision_{FIRST}": precision_at(of_train[unseen], truth[unseen], FIRST),
            "seconds": trained.seconds,
        }


def task_of(dataset: DataSet, share: float, seed: int, naming: Naming = RANDOM) -> Task:
    """The labels of one seed. Raises AnnotatorError for a share that is no image.

    On a set of the papers with all labels drawn at random, every seed gets the published ones, as in the papers: there,
    a seed decides about the training alone.
    """
    parts = (dataset.train, dataset.val, dataset.test)
    ends = np.cumsum([len(part) for part in parts])
    train, val, test = np.split(np.arange(ends[-1]), ends[:-1])
    official = dataset.official_rows is not None
    published = official and share == 1 and naming.kind == "random"
    labels = observed(dataset, share, 0 if published else seed, naming)
    return Task(np.concatenate([part.truth for part in parts]), train, val, test, labels, official)
