"""The base class of trainers: their inputs, their interface, and the outcome of a training.

trainer = make_trainer(method, images, labels, seed=7)
for epoch in trainer.epochs():          the caller does other work, stops, or scores the epoch in between
    trainer.predict(rows)               probabilities as of this epoch, where trainer.candidates() names any
trainer.outcome()                       probabilities of all images and a linear head, for a run
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from models.ensemble.collection_scoring import ScoringFunction, score_locally
from models.ensemble.regions import Regions
from models.finetune.best_epoch import BestEpoch
from models.linear.training import Epoch, Head
from models.methods.base import Method
from models.rows import Rows
from models.statistics.image_context import ImageContext
from models.statistics.outside_scores import OutsideScores

Progress = Callable[[str, int, int], None]  # what is being done, how much of it is done, of how much


def ignore_progress(state: str, done: int, total: int) -> None:
    """Ignore the progress, for callers that do not report it."""


class MapSource(Protocol):
    """The feature maps of a collection of images by one frozen backbone; they are made when they are asked for."""

    @property
    def channels(self) -> int:
        """Return K, the channels of a map (K, h, w)."""
        ...

    @property
    def weak(self) -> int:
        """Return how many of the views of an image are weak ones (models/finetune/views.py)."""
        ...

    @property
    def device(self) -> str | torch.device:
        """Return the device on which a network on maps is trained."""
        ...

    def views(self, rows: np.ndarray, progress: Progress) -> tuple[np.ndarray, Sequence[np.ndarray]]:
        """Return the maps of all views of some images, for a training.

        Args:
            rows: (n,) int64, rows of the collection.
            progress: Called with (state, done, of).

        Returns:
            (n,) bool, True where an image can be read; and of each of those the maps (V, K, h, w) of its V views.
        """
        ...

    def plain(self, rows: np.ndarray, progress: Progress) -> Iterator[tuple[np.ndarray, Sequence[np.ndarray]]]:
        """Return an iterator over the maps of some images, a few images at a time, for predictions.

        Args:
            rows: (n,) int64, rows of the collection.
            progress: Called with (state, done, of).

        Returns:
            Places in `rows` of images that can be read, and the maps (1 or V, K, h, w) of each.
        """
        ...


class TrainingInputs(Protocol):
    """The inputs that a collection of N images offers; everything but features is computed on request."""

    @property
    def features(self) -> Rows:
        """Return (N, D) float16, pooled; on the disk or in memory, so take slices and rows of it."""
        ...

    @property
    def memory(self) -> dict[str, Any]:
        """Return the dict in which trainers keep values from one training to the next, by names of their own."""
        ...

    def region_codes(self, progress: Progress) -> Regions:
        """Return the codes of the regions of all N images, read by rows."""
        ...

    def maps(self) -> MapSource:
        """Return the feature maps.

        Returns:
            The maps of all N images.

        Raises:
            ValueError: The backbone has no feature maps.
        """
        ...

    def name_scores(self) -> np.ndarray:
        """Return how probable a text-image network finds each class by its name.

        Returns:
            (N, C) float in [0, 1], nan where it has no score.

        Raises:
            ValueError: No such network has been asked.
        """
        ...


@dataclass(frozen=True, eq=False)
class TrainingLabels:
    """The labels of some images of the collection.

    Attributes:
        rows: (n,) int64, ascending: images with a label.
        labels: (n, C) int8 of those, 1 present, -1 absent, 0 unanswered.
        mask: (n, C) bool, True where a cell may be used; None: everywhere.
        unbiased: (n, C) bool, answers to questions that were not chosen by their answer; None: there are none.
        pool: (m,) int64, ascending: images that may be learned from, labeled or not; None: all N.
        groups: (N,) int64, not negative, of all N images: images of one group are on one side of every split that a
            training makes; None: each image is on its own.
        context: Where, when and together with what all N images were taken, with the groups as events; None: not known.
    """

    rows: np.ndarray
    labels: np.ndarray
    mask: np.ndarray | None = None
    unbiased: np.ndarray | None = None
    pool: np.ndarray | None = None
    groups: np.ndarray | None = None
    context: ImageContext | None = None


@dataclass(frozen=True)
class TrainingSettings:
    """The length and the pace of a training.

    Attributes:
        epochs: The number of epochs; None: the method's own.
        lr: The learning rate; None: the method's own.
        batch: Images a step; None: chosen by the number of images.
        every_class: Whether linear heads are trained for classes that nobody marked, too.
    """

    epochs: int | None = None
    lr: float | None = None
    batch: int | None = None
    every_class: bool = False


class Portable(Protocol):
    """A model for images outside of the project (models/ensemble/portable.py)."""

    def save(self, path: Path) -> None:
        """Write the model."""
        ...


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """The result of a training, from which a run is made.

    Attributes:
        head: Linear, on pooled features, with (nearly) the probabilities: heat maps are drawn from it.
        probabilities: (N, C) float32, nan for a class without a model.
        calibrated: The probabilities were fitted to unbiased answers already.
        outside_weights: (C, K) how far each of K models from elsewhere is believed; None where nothing was learned of
            them.
        portable: The model for images outside of the project; None: that is the head.
    """

    head: Head
    probabilities: np.ndarray
    calibrated: bool = False
    outside_weights: np.ndarray | None = None
    portable: Portable | None = None


@dataclass(frozen=True, eq=False)
class ResumePoint:
    """The state from which a long training continues after it was killed.

    Attributes:
        checkpoint: The file its state is kept in; None: none is kept.
        best: Returns the best epoch of the stage so far, which a new stage goes on with (models/finetune); None: the
            stage goes on with the last epoch.
    """

    checkpoint: Path | None = None
    best: Callable[[], BestEpoch | None] | None = None


class Trainer(ABC):
    """One training of one method.

    Attributes:
        comparison_batch: Images a step in comparisons, where every share of labels gets the same; None: as in a
            project.
        has_long_epochs: Epochs take so long that comparisons keep each of them, and end where the method's paper would.
        history: The epochs that are over.
    """

    comparison_batch: ClassVar[int | None] = None
    has_long_epochs: ClassVar[bool] = False
    history: list[Epoch]

    def __init__(
        self,
        method: Method,
        images: TrainingInputs,
        labels: TrainingLabels,
        *,
        settings: TrainingSettings = TrainingSettings(),
        seed: int = 0,
        progress: Progress = ignore_progress,
        resume: ResumePoint = ResumePoint(),
        outside: Sequence[OutsideScores] = (),
        scoring: ScoringFunction = score_locally,
    ):
        """Check the inputs and prepare; nothing is learned before `epochs` is stepped through.

        Args:
            method: The method to train by.
            images: The inputs of all N images.
            labels: The labels of some of them.
            settings: Number of epochs, learning rate and batch.
            seed: Decides the start and the order.
            progress: Called during long steps with (state, done, of); an exception that it raises ends the training.
            resume: Used where `long` is True.
            outside: Scores of models from elsewhere, of all N images; only RegionTrainer uses them.
            scoring: Scores all images for the outcome, where their features are enough for that.

        Raises:
            ValueError: The inputs do not fit together.
        """
        self.method, self.images, self.labels = method, images, labels
        self.settings, self.seed, self.progress, self.resume = settings, seed, progress, resume
        self.outside, self.scoring = outside, scoring
        self.history = []
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Make what the training needs.

        Raises:
            ValueError: The inputs do not fit together.
        """

    @abstractmethod
    def epochs(self) -> Iterator[Epoch]:
        """Train, one epoch a step; each epoch is in `history` when it is yielded."""

    @abstractmethod
    def predict(self, rows: np.ndarray, which: str = "network") -> np.ndarray:
        """Return the probabilities of some images, by one of `candidates` as it is now.

        Args:
            rows: (n,) int64, rows of the collection.
            which: A name that `candidates` returned.

        Returns:
            (n, C) float32.
        """

    @abstractmethod
    def build_outcome(self) -> TrainingOutcome:
        """Return what a run publishes, when the epochs are over."""

    def candidates(self) -> tuple[str, ...]:
        """Return the names of the networks that can be scored after each epoch and kept as the best.

        Returns:
            () where only the end of a training counts.
        """
        return ()

    def copy_weights(self, which: str) -> dict[str, Tensor]:
        """Return a copy of the weights of one of the candidates, on the CPU.

        Args:
            which: A name that `candidates` returned.

        Returns:
            Name -> weights, for `load`.

        Raises:
            ValueError: The trainer keeps no epoch but the last.
        """
        raise ValueError(f"{self.method.name} keeps no epoch but the last.")

    def copy_learned_tensors(self) -> list[Tensor]:
        """Return a copy of what the method has learned beside the network, on the CPU (models/finetune/best_epoch.py).

        Returns:
            Tensors; [] where there are none, or no stage goes on with them.
        """
        return []

    def begins_stage(self, epoch: int) -> bool:
        """Return whether a stage begins with this epoch that goes on with the best epoch of the stage before.

        Args:
            epoch: Its number, from 1.

        Returns:
            False where there is one stage, or the next one goes on with the last epoch.
        """
        return False

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Go back to earlier weights.

        Args:
            weights: What `weights` returned.

        Raises:
            ValueError: The trainer keeps no epoch but the last.
        """
        raise ValueError(f"{self.method.name} keeps no epoch but the last.")
