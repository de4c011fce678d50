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

from models.ensemble.all_images import Scoring, score_here
from models.ensemble.regions import Regions
from models.linear.training import Epoch, Head
from models.methods.base import Method
from models.rows import Rows
from models.statistics.outside_scores import OutsideScores

Progress = Callable[[str, int, int], None]  # what is being done, how much of it is done, of how much


def no_progress(state: str, done: int, of: int) -> None:
    """Ignore all progress: the default for callers that do not report it."""


class Maps(Protocol):
    """The feature maps of a collection of images by one frozen backbone; they are computed on request.

    Attributes:
        channels: K of a map (K, h, w).
        weak: Number of weak views among an image's views (models/finetune/views.py).
        device: Device on which a network on maps is trained.
    """

    @property
    def channels(self) -> int: ...

    @property
    def weak(self) -> int: ...

    @property
    def device(self) -> str | torch.device: ...

    def views(self, rows: np.ndarray, progress: Progress) -> tuple[np.ndarray, Sequence[np.ndarray]]:
        """Return which images can be read, (n,) bool, and the maps (V, K, h, w) of all views of those."""
        ...

    def plain(self, rows: np.ndarray, progress: Progress) -> Iterator[tuple[np.ndarray, Sequence[np.ndarray]]]:
        """Yield, a few images at a time, places in `rows` of readable images and maps (1 or V, K, h, w) of each."""
        ...


class Images(Protocol):
    """The inputs that a collection of N images offers; everything but features is computed on request.

    Attributes:
        features: (N, D) float16, pooled; on the disk or in memory, so read slices and rows of it.
        memory: Objects that trainers keep from one training to the next, each under the trainer's own key.
    """

    @property
    def features(self) -> Rows: ...

    @property
    def memory(self) -> dict[str, Any]: ...

    def region_codes(self, progress: Progress) -> Regions:
        """Return the codes of the regions of all N images, which are read by rows."""
        ...

    def maps(self) -> Maps:
        """Return the feature maps. Raise ValueError when the backbone has none."""
        ...

    def name_scores(self) -> np.ndarray:
        """Return the probability of each class by its name, from a text-image network: (N, C) float in [0, 1].

        nan where there is no score.

        Raises:
            ValueError: No such network has scored the images.
        """
        ...


@dataclass(frozen=True, eq=False)
class TrainingLabels:
    """The labels of some images of the collection.

    Attributes:
        rows: (n,) int64, ascending: images with a label.
        labels: (n, C) int8 of `rows`, 1 present, -1 absent, 0 unanswered.
        mask: (n, C) bool, True where a cell may be used; None: everywhere.
        unbiased: (n, C) bool, True for answers to questions that were not selected by a likely answer; None: none.
        pool: (m,) int64, ascending: images that may be learned from, labeled or not; None: all N.
    """

    rows: np.ndarray
    labels: np.ndarray
    mask: np.ndarray | None = None
    unbiased: np.ndarray | None = None
    pool: np.ndarray | None = None


@dataclass(frozen=True)
class Settings:
    """The length and speed of a training. None: epochs and lr as in the method, batch by the number of images."""

    epochs: int | None = None
    lr: float | None = None
    batch: int | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a training, from which a run is published.

    Attributes:
        head: Linear, on pooled features; gives (nearly) the probabilities. Heat maps are drawn from it.
        probabilities: (N, C) float32, nan for a class without a model.
        calibrated: Whether the probabilities were already fitted to unbiased answers.
        outside_weights: (C, K), how far each of K models from elsewhere is trusted; None where no weights were learned.
    """

    head: Head
    probabilities: np.ndarray
    calibrated: bool = False
    outside_weights: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Resume:
    """The state from which a long training continues after its process was killed.

    Attributes:
        checkpoint: The file that holds the state of the training.
        best: Returns the weights of the best epoch so far, from which a new stage continues (models/finetune).
    """

    checkpoint: Path | None = None
    best: Callable[[], dict[str, Tensor] | None] | None = None


class Trainer(ABC):
    """One training of one method.

    Attributes:
        history: The finished epochs.
    """

    # Images a step in comparisons, which use the same batch for every share of labels; None: as in a project.
    compared_batch: ClassVar[int | None] = None
    # Whether epochs are so long that comparisons store each of them, and end a training where the paper would.
    long: ClassVar[bool] = False
    # Whether the trainer learns how far to trust models from elsewhere. Published methods are trained as published.
    uses_outside: ClassVar[bool] = False

    def __init__(
        self,
        method: Method,
        images: Images,
        labels: TrainingLabels,
        *,
        settings: Settings = Settings(),
        seed: int = 0,
        progress: Progress = no_progress,
        resume: Resume = Resume(),
        outside: Sequence[OutsideScores] = (),
        scoring: Scoring = score_here,
    ):
        """Check the inputs and prepare; nothing is learned before `epochs` is iterated.

        Args:
            settings: Epochs, learning rate and batch, where they differ from the method's own.
            seed: Decides the initial weights and the order of the images.
            progress: Called during long steps with (state, done, of); an exception from it ends the training.
            resume: Used where `long` is True.
            outside: Scores of models from elsewhere, of all N images; used where `uses_outside` is True.
            scoring: Scores all images for the outcome, where their features are enough for that.

        Raises:
            ValueError: The inputs do not fit together.
        """
        self.method, self.images, self.labels = method, images, labels
        self.settings, self.seed, self.progress, self.resume = settings, seed, progress, resume
        self.outside, self.scoring = outside, scoring
        self.history: list[Epoch] = []
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Make what the training needs. Raise ValueError for inputs that do not fit together."""

    @abstractmethod
    def epochs(self) -> Iterator[Epoch]:
        """Train and yield one epoch at a time; each is in `history` when it is yielded."""

    @abstractmethod
    def predict(self, rows: np.ndarray, which: str = "network") -> np.ndarray:
        """Return (n, C) float32 probabilities of the images `rows`, by the current state of one of `candidates`."""

    @abstractmethod
    def outcome(self) -> Outcome:
        """Return the result to be published as a run, once the epochs are over."""

    def candidates(self) -> tuple[str, ...]:
        """Return the names of models that can be scored after each epoch; () if only the last state counts."""
        return ()

    def weights(self, which: str) -> dict[str, Tensor]:
        """Return a copy of the weights of one of the candidates, on the CPU."""
        raise ValueError(f"{self.method.name} keeps no epoch but the last.")

    def load(self, weights: dict[str, Tensor]) -> None:
        """Restore weights that `weights` returned."""
        raise ValueError(f"{self.method.name} keeps no epoch but the last.")
