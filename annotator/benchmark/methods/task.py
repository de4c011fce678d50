"""The task of a method in one comparison: the labels it is given, and the figures it is judged by.

The training images have one of their labels each, or, below a share of 1, only some of them have; the rest is hidden.
Validation and test images are fully labelled, as in the papers: validation mAP chooses the epoch and the constants, the
test split is looked at once. What people get out of a method here are suggestions, so the hidden positives of the
training images are ranked too, of those without any label as well.
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
        separations: measures.compute_separation after each epoch; () where it is not measured.
    """

    probabilities: Callable[[np.ndarray], np.ndarray]
    epoch: int
    val_map: float
    seconds: float
    separations: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Task:
    """One drawing of labels; rows are images of the whole collection: training, validation, test, in this order.

    Attributes:
        truth: (N, C) bool, the complete truth of every image.
        train, val, test: The rows of the three parts.
        labels: (len(train), C) int8, the labels that the method may use: 1 present, -1 absent, 0 unseen.
        empty_as_zero: Whether a class without positives counts 0 in mAP (as in the published code) or not at all.
        with_absences: Method.known_absences -> labels, for methods that are told absences too.
        val_observed: (len(val), C) bool, the positives of validation images that would be seen in training; None where
            nothing depends on them.
        validate: As in Supervision.
        measures: Names of measures.py that are reported too.
    """

    truth: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray
    labels: np.ndarray
    empty_as_zero: bool
    with_absences: dict[int, np.ndarray] = field(default_factory=dict)
    val_observed: np.ndarray | None = None
    validate: str = "full"
    measures: tuple[str, ...] = ()

    @property
    def labeled_places(self) -> np.ndarray:
        """The (n,) places in `train` of the images that have a label, from which a method learns."""
        return np.flatnonzero((self.labels != UNSEEN).any(1))

    @property
    def validates(self) -> bool:
        """Return whether validation images choose the epoch."""
        return self.validate != "none" and len(self.val) > 0

    def get_labels(self, full: bool, negatives: int = 0) -> np.ndarray:
        """Return the labels of the `labelled` images, (n, C) int8.

        Args:
            full: Whether they are the complete truth.
            negatives: The absences of an image that a method is told besides (Method.known_absences).
        """
        if full:
            return np.where(self.truth[self.train[self.labeled_places]], PRESENT, ABSENT).astype(np.int8)
        return self.with_absences.get(negatives, self.labels)[self.labeled_places]

    def make_training_labels(self, full: bool, negatives: int = 0) -> TrainingLabels:
        """Return what a trainer is given: the labels of `get_labels`, and all training images as the pool."""
        return TrainingLabels(self.train[self.labeled_places], self.get_labels(full, negatives), pool=self.train)

    def val_map(self, probabilities: np.ndarray) -> float:
        """Return the mean average precision on the validation images; probabilities are (len(val), C)."""
        truth = self.truth[self.val]
        if self.validate == "observed" and self.val_observed is not None:
            truth = self.val_observed
        return mean_average_precision(probabilities, truth, empty_as_zero=self.empty_as_zero)

    def measure_separation(self, probabilities: np.ndarray) -> float | None:
        """Return measures.compute_separation on the validation images, (len(val), C); None if not requested."""
        if "wasserstein" not in self.measures or self.val_observed is None:
            return None
        return compute_separation(probabilities, self.truth[self.val], self.val_observed)

    def compute_chance(self) -> float:
        """Return the average precision of a random order: the share of positives of the hidden cells; 0 without any."""
        hidden = self.truth[self.train][self.labels == UNSEEN]
        return float(hidden.mean()) if len(hidden) else 0.0

    def compute_figures(self, trained: Trained) -> dict[str, float]:
        """Return all reported figures of a trained method, by the names in REPORTED_FIGURES and RARE_FIGURES.

        Those of test images are left out if there are none, those of hidden labels if nothing is hidden.
        """
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
    """Return the task with the labels of one seed.

    On a set of the papers with all labels drawn at random, every seed gets the published labels, as in the papers; the
    seed then decides about the training alone.

    Args:
        dataset: The images.
        share: The share of the training images that have a label.
        seed: The seed of the labels.
        naming: The way in which the labels are chosen.
        supervision: How much is told of an image.
        absences: The numbers of absences that single methods are told besides (Method.known_absences).
        measures: The measures that are reported besides REPORTED_FIGURES.

    Raises:
        AnnotatorError: The share amounts to no image.
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
