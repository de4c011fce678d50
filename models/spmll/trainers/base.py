"""The base class of trainers: inputs, interface and outcome.

trainer = make_trainer(method, images, labels, seed=7)
for epoch in trainer.epochs():          the caller may score or stop in between
    trainer.predict(rows)
trainer.build_outcome()
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from spmll.ensemble.collection_scoring import ScoringFunction, score_locally
from spmll.ensemble.regions import Regions
from spmll.finetune.resume_point import ResumePoint
from spmll.linear.training import Epoch, Head, TrainingSettings
from spmll.methods.base import Method
from spmll.rows import Rows
from spmll.statistics.image_context import ImageContext
from spmll.statistics.outside_scores import OutsideScores

Progress = Callable[[str, int, int], None]  # what is being done, how much of it is done, of how much


def ignore_progress(state: str, done: int, total: int) -> None:
    """Ignore progress reports."""


class MapSource(Protocol):
    """Interface to feature maps of a collection, computed on request."""

    @property
    def channels(self) -> int:
        """Return K of a map (K, h, w)."""
        ...

    @property
    def weak(self) -> int:
        """Count the weak views per image."""
        ...

    @property
    def device(self) -> str | torch.device:
        """Return the training device."""
        ...

    def views(self, rows: np.ndarray, progress: Progress) -> tuple[np.ndarray, Sequence[np.ndarray]]:
        """Return the maps of all views, for training.

        Args:
            rows: (n,) int64.
            progress: Called with (state, done, of).

        Returns:
            (n,) bool, readable images, and the maps (V, K, h, w) of each of them.
        """
        ...

    def plain(self, rows: np.ndarray, progress: Progress) -> Iterator[tuple[np.ndarray, Sequence[np.ndarray]]]:
        """Iterate over the maps of images, for predictions.

        Args:
            rows: (n,) int64.
            progress: Called with (state, done, of).

        Returns:
            Per block, readable places, and their maps (1 or V, K, h, w).
        """
        ...


class TrainingInputs(Protocol):
    """Interface to the inputs of N images, mostly computed on request."""

    @property
    def features(self) -> Rows:
        """Return pooled features (N, D) float16, maybe on disk."""
        ...

    @property
    def memory(self) -> dict[str, Any]:
        """Return values kept between trainings."""
        ...

    def region_codes(self, progress: Progress) -> Regions:
        """Return all region codes."""
        ...

    def maps(self) -> MapSource:
        """Return the maps.

        Returns:
            Feature maps.

        Raises:
            ValueError: The backbone has none.
        """
        ...

    def name_scores(self) -> np.ndarray:
        """Return class probabilities by a text-image network, from class names.

        Returns:
            (N, C) in [0, 1] or nan.

        Raises:
            ValueError: No text-image network was used.
        """
        ...


@dataclass(frozen=True, eq=False)
class TrainingLabels:
    """The labels of some images.

    Attributes:
        rows: (n,) int64, ascending, the labeled images.
        labels: (n, C) int8, 1 present, -1 absent, 0 unanswered.
        mask: (n, C) bool, usable cells, or None.
        unbiased: (n, C) bool, unbiased answers, or None.
        pool: (m,) int64, ascending, images to learn from, or None.
        groups: (N,) int64, never split between halves, or None.
        context: Places, times and events of all images, or None.
    """

    rows: np.ndarray
    labels: np.ndarray
    mask: np.ndarray | None = None
    unbiased: np.ndarray | None = None
    pool: np.ndarray | None = None
    groups: np.ndarray | None = None
    context: ImageContext | None = None


class Portable(Protocol):
    """Interface of a trained model that can be saved for images outside the project."""

    def save(self, path: Path) -> None:
        """Write the model."""
        ...


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """The result of a training.

    Attributes:
        head: Linear head for heat maps.
        probabilities: (N, C) float32, nan without a model.
        calibrated: Whether probabilities were fitted to unbiased answers.
        outside_weights: (C, K), weights of K outside models, or None.
        portable: Model for images outside the project, or None.
    """

    head: Head
    probabilities: np.ndarray
    calibrated: bool = False
    outside_weights: np.ndarray | None = None
    portable: Portable | None = None


class Trainer(ABC):
    """The base class of trainers, which train a method on one kind of input.

    Attributes:
        comparison_batch: Batch size in comparisons. None selects that of projects.
        has_long_epochs: Whether comparisons keep every epoch and stop as papers do.
        history: Finished epochs.
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
        """Check inputs and prepare, without training.

        Args:
            method: The method.
            images: Inputs of all N images.
            labels: Labels of some.
            settings: Length and pace.
            seed: Decides start and order.
            progress: Called with (state, done, of). Exceptions end the training.
            resume: Used if `has_long_epochs`.
            outside: Scores of outside models, which only RegionTrainer uses.
            scoring: Scores all images.

        Raises:
            ValueError: Inputs do not fit.
        """
        self.method, self.images, self.labels = method, images, labels
        self.settings, self.seed, self.progress, self.resume = settings, seed, progress, resume
        self.outside, self.scoring = outside, scoring
        self.history = []
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Prepare the training.

        Raises:
            ValueError: Inputs do not fit.
        """

    @abstractmethod
    def epochs(self) -> Iterator[Epoch]:
        """Train, yielding each epoch after adding it to `history`."""

    @abstractmethod
    def predict(self, rows: np.ndarray, which: str = "network") -> np.ndarray:
        """Return current probabilities.

        Args:
            rows: (n,) int64.
            which: Name from `candidates`.

        Returns:
            (n, C) float32.
        """

    @abstractmethod
    def build_outcome(self) -> TrainingOutcome:
        """Return the published result after the epochs."""

    def candidates(self) -> tuple[str, ...]:
        """Return the networks whose weights can be kept per epoch.

        Returns:
            Names, maybe none.
        """
        return ()

    def copy_weights(self, which: str) -> dict[str, Tensor]:
        """Copy a candidate's weights to the CPU.

        Args:
            which: Its name.

        Returns:
            Name -> weights.

        Raises:
            ValueError: Only the last epoch is kept.
        """
        raise ValueError(f"{self.method.name} keeps no epoch but the last.")

    def copy_learned_tensors(self) -> list[Tensor]:
        """Copy the method's learned tensors to the CPU.

        Returns:
            Tensors, maybe none.
        """
        return []

    def begins_stage(self, epoch: int) -> bool:
        """Return whether a stage starts from the best earlier epoch.

        Args:
            epoch: From 1.

        Returns:
            False by default.
        """
        return False

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Restore weights.

        Args:
            weights: From `copy_weights`.

        Raises:
            ValueError: Only the last epoch is kept.
        """
        raise ValueError(f"{self.method.name} keeps no epoch but the last.")
