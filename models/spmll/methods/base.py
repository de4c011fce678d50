"""The base class of methods: training procedures around a stateless loss.

The trainer owns network and optimizer, and calls:

    begin(labels, mask, epochs, generator)      once, discarding earlier state
    parameter_groups()                          once, further parameters to train
    for epoch in 1 .. epochs:
        restarts_optimizer(epoch)               True starts a new stage
        begin_epoch(epoch)
        loss(logits, rows)                      per batch
        penalty(weights)                        per batch, added to the loss
        end_epoch(epoch, predict)               predict() returns all probabilities
"""

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from spmll.losses.base import Loss
from spmll.methods.training_recipes import TrainingRecipe


class Method(ABC):
    """A training procedure. Subclasses define attributes and `criterion`, and override hooks.

    Every constructor argument has a default and an attribute of the same name. A method with many is a dataclass.

    Attributes:
        name: Name in commands and database.
        title: Displayed name.
        paper: Its paper.
        year: Year of the paper.
        url: URL of the paper.
        assumes: One line on unanswered cells.
        threshold: Minimum probability of displayed cells.
        epochs: Default epochs of a linear head.
        lr: Default learning rate of a linear head.
        reads: Network input: "features", "regions" (also features), or "maps" (or images).
        views: Augmented views per image.
        full_labels: Whether it trains on the whole truth.
        known_absences: Confirmed absences per image that comparisons add, -1 for all.
        yardstick: Whether it is only a reference, trained by comparisons that name it.
        tunable: Constants, with values that a search tries.
        needs: Further requirements, from METHOD_NEEDS.
        reproduced: "no", "in part" or "yes", a colon, and the reason.
        open_points: Sentences on what the paper leaves open.
        skips_validation: Whether comparisons use no validation images.
        published: Recipes for "voc", "coco", "nus", "cub".
        evidence: (N, C), presence probabilities from elsewhere or nan, set before `begin` if needed, or None.
        wants_features: Whether to set `features`.
        features: (N, D), pooled by a frozen network, or None.
        targets: (N, C) float32, labels and pseudo-labels.
        mask: (N, C) bool, usable cells, or None.
        total_epochs: Number of epochs of this training.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    year: ClassVar[int]
    url: ClassVar[str]
    assumes: ClassVar[str]

    # Probabilities of different methods are not comparable: each loss presses unseen cells towards its own level. Each
    # value is where, on two photograph collections with one click on 5, 20 and 100 % of the images, roughly three of
    # five shown cells were true (0.34 to 0.88) and two of three hidden positives were shown (0.45 to 0.77).
    threshold: ClassVar[float]

    # spmll/linear/training.py says how these were chosen. Twenty epochs at 3e-3 rank about as well and take longer;
    # much more than either memorises single clicks.
    epochs: ClassVar[int] = 12
    lr: ClassVar[float] = 5e-3

    reads: ClassVar[str] = "features"
    views: ClassVar[int] = 1
    full_labels: ClassVar[bool] = False
    known_absences: ClassVar[int] = 0
    yardstick: ClassVar[bool] = False
    tunable: ClassVar[dict[str, tuple]] = {}
    needs: ClassVar[tuple[str, ...]] = ()
    reproduced: ClassVar[str] = (
        "no: the figures of the paper are of whole networks trained on its data sets, which was not done here "
        "(docs/benchmarks.md, End to end)"
    )
    open_points: ClassVar[tuple[str, ...]] = ()
    skips_validation: ClassVar[bool] = False
    published: ClassVar[dict[str, TrainingRecipe]] = {}
    evidence: Tensor | None = None
    wants_features: ClassVar[bool] = False
    features: Tensor | None = None
    targets: Tensor
    mask: Tensor | None
    total_epochs: int

    @abstractmethod
    def criterion(self) -> Loss:
        """Return the initial loss, kept by `begin` as `loss_function`."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the current constants, enough to rebuild the method."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training, discarding earlier state.

        Args:
            labels: (N, C) int8, 1 present, -1 absent, 0 unseen.
            mask: (N, C) bool, usable cells, None for all.
            epochs: Total number of epochs.
            generator: CPU generator for random starts.
        """
        self.targets = labels.to(torch.float32, copy=True)  # methods write into it
        self.mask = mask
        self.total_epochs = epochs
        self.loss_function = self.criterion()

    def build_network(self, channels: int, classes: int, generator: torch.Generator) -> nn.Module:
        """Return the network trained on maps (B, channels, h, w).

        Args:
            channels: K.
            classes: C.
            generator: For random weights.

        Returns:
            A module from maps to the logits of `loss`.

        Raises:
            NotImplementedError: The method does not read maps.
        """
        raise NotImplementedError(f"{self.name} reads {self.reads} and has no network of its own.")

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return what the optimizer trains besides the network.

        Returns:
            Groups {"params": [leaf tensors], "lr_scale": relative learning rate}.
        """
        return []

    def restarts_optimizer(self, epoch: int) -> bool:
        """Return whether this epoch starts a new stage with a new optimizer."""
        return False

    def freezes_backbone(self, epoch: int) -> bool:
        """Return whether this epoch trains only the head."""
        return False

    def should_stop_early(self, scores: list[float]) -> bool:
        """Return whether the paper would stop here, in comparisons with validation images.

        Args:
            scores: Validation mAP per epoch, in [0, 1].

        Returns:
            True to stop.
        """
        return False

    def begin_epoch(self, epoch: int) -> None:  # noqa: B027 - most methods have nothing to do here
        """Prepare an epoch, counted from 1."""

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch.

        Args:
            logits: (B, C) float.
            rows: (B,) int64, rows of `targets`.

        Returns:
            A scalar with gradient.
        """
        return self.loss_function(logits, self.targets[rows], None if self.mask is None else self.mask[rows])

    def penalty(self, weights: Iterable[Tensor]) -> Tensor | float:
        """Return an additional cost of weights, 0 by default.

        Args:
            weights: Trained tensors, without biases and normalization.

        Returns:
            A scalar with gradient, or 0.
        """
        return 0.0

    def end_epoch(self, epoch: int, predict: Callable[[], Tensor]) -> None:  # noqa: B027 - as above
        """Finish an epoch.

        Args:
            epoch: Counted from 1.
            predict: Returns all (N, C) float32 probabilities.
        """


def search_grid(**values: tuple) -> dict[str, tuple]:
    """Return constants with values to try, for `Method.tunable`."""
    return values


def to_evidence_tensor(evidence: Tensor | np.ndarray, labels: Tensor) -> Tensor:
    """Check `Method.evidence`, and return it on the labels' device.

    Args:
        evidence: (N, C) in [0, 1] or nan.
        labels: (N, C).

    Returns:
        (N, C) float32.

    Raises:
        ValueError: Wrong shape or type.
    """
    given = torch.as_tensor(evidence)
    if given.shape != labels.shape or not given.is_floating_point():
        raise ValueError(
            f"The evidence is {tuple(given.shape)} of {given.dtype}; it must be {tuple(labels.shape)} of floats. "
            "Were classes added since it was made?"
        )
    return given.float().to(labels.device)


def check_positive(**values: float) -> None:
    """Reject values that are not positive and finite.

    Args:
        **values: By name.

    Raises:
        ValueError: Invalid values, named.
    """
    wrong = [f"{name} = {value}" for name, value in values.items() if not 0 < value < math.inf]
    if wrong:
        raise ValueError(f"Must be a number above 0: {', '.join(wrong)}.")


def has_fallen_behind(scores: list[float], points: float) -> bool:
    """Return whether the last score is more than `points` below the best.

    Args:
        scores: mAP per epoch, in [0, 1].
        points: Tolerance in percentage points.

    Returns:
        False without scores.
    """
    return bool(scores) and 100 * (max(scores) - scores[-1]) > points
