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
    """For callers that do not report progress."""


class Maps(Protocol):
    """The feature maps of a collection of images by one frozen backbone; they are made when they are asked for.

    Attributes:
        channels: K of a map (K, h, w).
        weak: How many of an image's views are weak ones (models/finetune/views.py).
        device: Where a network on maps is trained.
    """

    @property
    def channels(self) -> int: ...

    @property
    def weak(self) -> int: ...

    @property
    def device(self) -> str | torch.device: ...

    def views(self, rows: np.ndarray, progress: Progress) -> tuple[np.ndarray, Sequence[np.ndarray]]:
        """(n,) bool, which of the images can be read; of those, the maps (V, K, h, w) of all views."""
        ...

    def plain(self, rows: np.ndarray, progress: Progress) -> Iterator[tuple[np.ndarray, Sequence[np.ndarray]]]:
        """Places in `rows` of images that can be read, and the maps (1 or V, K, h, w) of each: a few at a time."""
        ...


class Images(Protocol):
    """The inputs that a collection of N images offers; everything but features is computed on request.

    Attributes:
        features: (N, D) float16, pooled; on the disk or in memory, so take slices and rows of it.
        memory: What trainers keep from one training to the next, by a name of their own.
    """

    @property
    def features(self) -> Rows: ...

    @property
    def memory(self) -> dict[str, Any]: ...

    def region_codes(self, progress: Progress) -> Regions:
        """The codes of the regions of all N images, read by rows."""
        ...

    def maps(self) -> Maps:
        """The feature maps. Raises ValueError when the backbone has none."""
        ...

    def name_scores(self) -> np.ndarray:
        """(N, C) float in [0, 1], nan where there is none: how probable a text-image network finds each class by its
        name. Raises ValueError where no such network has been asked."""
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
    """

    rows: np.ndarray
    labels: np.ndarray
    mask: np.ndarray | None = None
    unbiased: np.ndarray | None = None
    pool: np.ndarray | None = None


@dataclass(frozen=True)
class Settings:
    """How long and how fast to train; None: as the method says, and for the batch, as suits the number of images."""

    epochs: int | None = None
    lr: float | None = None
    batch: int | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run is made of.

    Attributes:
        head: Linear, on pooled features, with (nearly) the probabilities: heat maps are drawn from it.
        probabilities: (N, C) float32, nan for a class without a model.
        calibrated: Whether they were fitted to unbiased answers already.
        outside_weights: (C, K) how far each model from elsewhere is believed; None where nothing was learned of them.
    """

    head: Head
    probabilities: np.ndarray
    calibrated: bool = False
    outside_weights: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Resume:
    """How a long training continues after a kill.

    Attributes:
        checkpoint: The file its state is kept in.
        best: Gives the weights of the best epoch so far, which a new stage goes on with (models/finetune).
    """

    checkpoint: Path | None = None
    best: Callable[[], dict[str, Tensor] | None] | None = None


class Trainer(ABC):
    """One training of one method.

    Attributes:
        history: The epochs that are over.
    """

    # Images a step in comparisons, where every share of labels gets the same; None: as in a project.
    compared_batch: ClassVar[int | None] = None
    # Whether epochs take so long that comparisons keep each of them, and end where the method's paper would.
    long: ClassVar[bool] = False
    # Whether it learns how far to believe models from elsewhere. Published methods are trained as published.
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
        """Checks and prepares; nothing is learned before `epochs` is stepped through.

        Args:
            seed: Decides the start and the order.
            progress: Called during long steps with (state, done, of); what it raises ends the training.
            resume: Used where `long` is True.
            outside: Scores of models from elsewhere, of all N images; used where `uses_outside` is True.
            scoring: Scores all images for the outcome, where their features are enough for that.

        Raises:
            ValueError: For inputs that do not fit together.
        """
        self.method, self.images, self.labels = method, images, labels
        self.settings, self.seed, self.progress, self.resume = settings, seed, progress, resume
        self.outside, self.scoring = outside, scoring
        self.history: list[Epoch] = []
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Makes what the training needs. Raises ValueError for inputs that do not fit together."""

    @abstractmethod
    def epochs(self) -> Iterator[Epoch]:
        """Trains, one epoch a step; each is in `history` when it is given."""

    @abstractmethod
    def predict(self, rows: np.ndarray, which: str = "network") -> np.ndarray:
        """(n, C) float32 probabilities of images of the collection, by one of `candidates` as it is now."""

    @abstractmethod
    def outcome(self) -> Outcome:
        """What a run publishes, when the epochs are over."""

    def candidates(self) -> tuple[str, ...]:
        """What can be scored after each epoch and kept as the best; () where only the end of a training counts."""
        return ()

    def weights(self, which: str) -> dict[str, Tensor]:
        """A copy of one of the candidates, on the CPU."""
        raise ValueError(f"{self.method.name} keeps no epoch but the last.")

    def load(self, weights: dict[str, Tensor]) -> None:
        """Goes back to weights that `weights` gave."""
        raise ValueError(f"{self.method.name} keeps no epoch but the last.")
