"""The task that a comparison sets a method: its labels and the figures that judge it.

All or a share of the training images have one label each. Others are fully labeled: validation mAP chooses epoch and
constants, the test set is used once. Withheld positives of training images are ranked too, as suggestions.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from annotator.benchmark.datasets.dataset import DataSet
from annotator.benchmark.first_named_class import RANDOM_NAMING, Naming
from annotator.benchmark.methods.measures import compute_at_k, compute_separation
from annotator.benchmark.methods.supervision import (
    SINGLE_POSITIVE,
    Supervision,
    add_true_labels,
    draw_training_labels,
    draw_validation_positives,
)
from spmll.labels import ABSENT, PRESENT, UNSEEN
from spmll.statistics.metrics import (
    count_honest_totals,
    expected_calibration_error,
    hidden_average_precision,
    mean_average_precision,
    precision_at,
)
from spmll.trainers.base import TrainingLabels

SUGGESTIONS_PER_SITTING = 100  # suggestions that a person would look at in one sitting
HIDDEN_FIGURES = ("hidden_ap", "hidden_map")  # what people get out of a method
RARE_FIGURES = ("rare", "rare_honest")  # classes with fewer than ten marks; of these, with a total within a factor of 2
REPORTED_FIGURES = ("test_map", "hidden_ap", "hidden_map", f"precision_{SUGGESTIONS_PER_SITTING}", "ece", "seconds")


@dataclass(frozen=True)
class Choice:
    """The training settings chosen by tuning, by default the method's own."""

    # lr, epochs: multiples of the values of the method or paper
    lr: float = 1.0
    epochs: float = 1.0
    batch: int | None = None
    # changed method constants by name
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trained:
    """A trained method at its best validation epoch."""

    # function from rows (n,) to (n, C) float32, nan for classes without a model
    probabilities: Callable[[np.ndarray], np.ndarray]
    epoch: int
    # in [0, 1], nan without validation images
    val_map: float
    # mean per epoch
    seconds: float
    # `compute_separation` per epoch, empty if not measured
    separations: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Task:
    """One draw of training labels, with the data that judges methods. Rows are all images of the three splits."""

    # (N, C) bool, complete
    truth: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray
    # (len(train), C) int8: 1 present, -1 absent, 0 unseen
    labels: np.ndarray
    # classes without positives count 0 in mAP, as in published code
    empty_as_zero: bool
    # training labels with added absences, by their number per image (Method.known_absences)
    with_absences: dict[int, np.ndarray] = field(default_factory=dict)
    # (len(val), C) bool, positives drawn as in training, None if unused
    val_observed: np.ndarray | None = None
    validate: str = "full"
    measures: tuple[str, ...] = ()

    @property
    def labeled_places(self) -> np.ndarray:
        """Return the indices (n,) in `train` of labeled images."""
        return np.flatnonzero((self.labels != UNSEEN).any(1))

    @property
    def validates(self) -> bool:
        """Return whether validation images choose the epoch."""
        return self.validate != "none" and len(self.val) > 0

    def get_labels(self, full: bool, negatives: int = 0) -> np.ndarray:
        """Return labels of labeled images, (n, C) int8: all true ones if `full`, else with `negatives` absences."""
        if full:
            return np.where(self.truth[self.train[self.labeled_places]], PRESENT, ABSENT).astype(np.int8)
        return self.with_absences.get(negatives, self.labels)[self.labeled_places]

    def make_training_labels(self, full: bool, negatives: int = 0) -> TrainingLabels:
        """Return the labels for a trainer, with all training images as its pool of images."""
        return TrainingLabels(self.train[self.labeled_places], self.get_labels(full, negatives), pool=self.train)

    def val_map(self, probabilities: np.ndarray) -> float:
        """Return the validation mAP of probabilities (len(val), C)."""
        truth = self.truth[self.val]
        if self.validate == "observed" and self.val_observed is not None:
            truth = self.val_observed
        return mean_average_precision(probabilities, truth, empty_as_zero=self.empty_as_zero)

    def measure_separation(self, probabilities: np.ndarray) -> float | None:
        """Return `compute_separation` of validation probabilities (len(val), C), or None if not requested."""
        if "wasserstein" not in self.measures or self.val_observed is None:
            return None
        return compute_separation(probabilities, self.truth[self.val], self.val_observed)

    def compute_chance(self) -> float:
        """Return the share of positives among unlabeled training cells, the average precision of a random order."""
        hidden = self.truth[self.train][self.labels == UNSEEN]
        return float(hidden.mean()) if len(hidden) else 0.0

    def compute_figures(self, trained: Trained) -> dict[str, float]:
        """Return all available REPORTED_FIGURES and RARE_FIGURES of a trained method."""
        of_train, truth = trained.probabilities(self.train), self.truth[self.train]
        unseen = self.labels == UNSEEN
        on_test, on_hidden, measured = {}, {}, {}
        if unseen.any():
            hidden = hidden_average_precision(of_train, self.labels, truth)
            on_hidden = dict(zip(RARE_FIGURES, count_honest_totals(of_train, self.labels, truth), strict=True)) | {
                "hidden_ap": hidden.cells,
                "hidden_map": hidden.classes,
                f"precision_{SUGGESTIONS_PER_SITTING}": precision_at(
                    of_train[unseen], truth[unseen], SUGGESTIONS_PER_SITTING
                ),
            }
        if "train_map" in self.measures:
            measured["train_map"] = mean_average_precision(of_train, truth, empty_as_zero=self.empty_as_zero)
        if "wasserstein" in self.measures:
            measured["wasserstein"] = self.measure_separation(trained.probabilities(self.val))
        if len(self.test):
            of_test, test_truth = trained.probabilities(self.test), self.truth[self.test]
            test_map = mean_average_precision(of_test, test_truth, empty_as_zero=self.empty_as_zero)
            on_test = {"test_map": test_map, "ece": expected_calibration_error(of_test, test_truth)}
            measured |= compute_at_k(self.measures, of_test, test_truth)
        return on_test | on_hidden | measured | {"seconds": trained.seconds}


def make_task(
    dataset: DataSet,
    share: float,
    seed: int,
    naming: Naming = RANDOM_NAMING,
    supervision: Supervision = SINGLE_POSITIVE,
    *,
    absences: Collection[int] = (),
    measures: tuple[str, ...] = (),
) -> Task:
    """Draw the training labels of one seed, and return them as a task.

    Published sets with all labels drawn at random keep the published labels for every seed.

    Args:
        absences: Absences per image that some methods receive in addition.

    Raises:
        AnnotatorError: If the share has no image.
    """
    parts = (dataset.train, dataset.val, dataset.test)
    ends = np.cumsum([len(part) for part in parts])
    train, val, test = np.split(np.arange(ends[-1]), ends[:-1])
    official = dataset.official_rows is not None
    published = official and share == 1 and naming.kind == "random"
    seed = 0 if published else seed
    labels = draw_training_labels(dataset, share, seed, naming, supervision)
    with_absences = {
        count: add_true_labels(dataset, labels, seed, naming, supervision.positives, count)
        for count in absences
        if count
    }
    observes = len(val) > 0 and (supervision.validate == "observed" or "wasserstein" in measures)
    positives = supervision.positives
    return Task(
        truth=np.concatenate([part.truth for part in parts]),
        train=train,
        val=val,
        test=test,
        labels=labels,
        empty_as_zero=official,
        with_absences=with_absences,
        val_observed=draw_validation_positives(dataset, seed, positives) if observes else None,
        validate=supervision.validate,
        measures=measures,
    )
