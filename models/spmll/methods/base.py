"""The base class of methods. A method is a training procedure: the part of a paper *around* its loss.

A loss is a function of one batch and has no state. A method holds the rest of a paper: constants that change from epoch
to epoch, pseudo-labels, estimates per image, parameters learned beside the network.

The trainer (`spmll.linear.training.fit`, `spmll.finetune.fit_network`) owns the network and the optimiser, and calls:

    begin(labels, mask, epochs, generator)      once; discards the state of an earlier training
    learned()                                   once, after begin: what the optimiser trains besides the network
    for epoch in 1 .. epochs:
        restarts_optimizer(epoch)                    True: the optimiser forgets its moments (a second stage begins)
        begin_epoch(epoch)
        loss(logits, rows)                      for every batch; rows are the indices of its images
        penalty(weights)                        for every batch; is added to its loss
        end_epoch(epoch, predict)               predict() computes the probabilities of all rows

The method holds the labels (`targets`), not `fit`, so that a method with pseudo-labels or an estimate per row has a
single place for them.
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
    """A training procedure. A subclass gives class attributes and `criterion`, and overrides the hooks of its paper.

    Every argument of `__init__` must have a default and be kept as an attribute of the same name (`parameters` reads
    them).

    Attributes:
        name: Its name in commands, in the database and on pages.
        title: Its name for people.
        paper: The paper it is from.
        year: The year of the paper.
        url: The address of the paper.
        assumes: One line: what it assumes of an unanswered cell.
        threshold: The probability from which on a cell is worth showing to a person.
        epochs: The number of epochs in which a linear head on cached features is trained.
        lr: The learning rate of such a head.
        reads: The input of the network, and so the trainer (spmll/trainers): "features", one pooled vector an image;
            "regions", those and the codes of nine regions an image; or "maps", the last feature map before pooling (or
            the images themselves), on which the method builds a network of its own.
        views: The number of augmented views of every image in a batch.
        full_labels: True: it is trained on the whole truth, where somebody has it (the ceiling of the others).
        known_absences: How many absences of an image a comparison tells it besides the labels of all methods; -1: all.
        yardstick: True: a row of a paper's table to compare with, which nobody would choose; comparisons train it only
            where it is named.
        tunable: Constants worth a search on validation data, each with the values to try (`annotator bench methods`).
        needs: What it needs beside images and labels of some of them; each is a word of spmll/catalog.py NEEDS.
        reproduced: Whether this code gave the figures of the paper again: "no", "in part" or "yes", a colon, and why or
            how.
        open_points: What the paper, or as much of it as was at hand, leaves open, and what is done here: a sentence
            each.
        skips_validation: True: comparisons neither search its constants nor choose its best epoch. It must do without
            validation images.
        published: How the paper trained the whole network on each of its data sets: "voc", "coco", "nus", "cub".
        evidence: (N, C) float32 in [0, 1], set before `begin` where `needs` asks for it (spmll/trainers/evidence.py):
            how much speaks for each cell beside the labels; nan where nothing is known. None: nothing is known of any
            cell.
        wants_features: True: `features` is set before `begin`.
        features: (N, D) float16 or float32, the pooled features of the images by the frozen network; None where they
            are not wanted, and where the network that makes them is trained.
        targets: (N, C) float32: the labels, and the method's own guesses in unseen cells.
        mask: (N, C) bool, True where a cell may be used; None: everywhere.
        total_epochs: The number of epochs of the training under way.
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
        """Return the loss with its constants at the start; `begin` calls this once, and keeps it as `loss_function`."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the constants of this method by name, as they are now: enough to build the same method again."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training with these labels, and discard the state of any earlier one.

        Args:
            labels: (N, C) int8, 1 present, -1 absent, 0 not looked at.
            mask: (N, C) bool, True where a cell may be used; None: all.
            epochs: How many epochs there will be; schedules are fractions of it.
            generator: For random starts (on the CPU), so that a seed decides them.
        """
        self.targets = labels.to(torch.float32, copy=True)  # methods write into it
        self.mask = mask
        self.total_epochs = epochs
        self.loss_function = self.criterion()

    def build_network(self, channels: int, classes: int, generator: torch.Generator) -> nn.Module:
        """Return the network that is trained on maps (B, channels, h, w).

        Args:
            channels: K, the channels of a map.
            classes: C, the number of classes.
            generator: Draws the random weights.

        Returns:
            A module with random weights: maps (B, K, h, w) -> the logits that `loss` takes.

        Raises:
            NotImplementedError: The method does not read maps.
        """
        raise NotImplementedError(f"{self.name} reads {self.reads} and has no network of its own.")

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return what the optimiser trains besides the network.

        Returns:
            Groups {"params": [leaf tensors], "lr_scale": how many times the learning rate of the network}.
        """
        return []

    def restarts_optimizer(self, epoch: int) -> bool:
        """Return whether a new stage begins with this epoch: the weights stay, the optimiser starts again."""
        return False

    def freezes_backbone(self, epoch: int) -> bool:
        """Return whether only the head is trained in this epoch; a head on cached features is always trained alone."""
        return False

    def should_stop_early(self, scores: list[float]) -> bool:
        """Return whether the paper would end a training here; False unless a method overrides this.

        Only comparisons with fully labelled validation images call this; a project has none.

        Args:
            scores: The validation mAP of each epoch so far, in [0, 1].

        Returns:
            True where the training would end.
        """
        return False

    def begin_epoch(self, epoch: int) -> None:  # noqa: B027 - most methods have nothing to do here
        """Prepare an epoch, before its first batch; epochs count from 1, as in the papers."""

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch, a scalar.

        Args:
            logits: (B, C) float.
            rows: (B,) int64, the rows of `targets` that the images of the batch have.

        Returns:
            A scalar, with a gradient to the logits.
        """
        return self.loss_function(logits, self.targets[rows], None if self.mask is None else self.mask[rows])

    def penalty(self, weights: Iterable[Tensor]) -> Tensor | float:
        """Return what the weights of the trained network cost beside the loss; 0 unless a method overrides this.

        Args:
            weights: All trained tensors of two and more dimensions, so without biases and normalisation.

        Returns:
            A scalar, with a gradient to the weights, or 0.
        """
        return 0.0

    def end_epoch(self, epoch: int, predict: Callable[[], Tensor]) -> None:  # noqa: B027 - as above
        """Finish an epoch, after its last batch.

        Args:
            epoch: Its number, from 1.
            predict: Returns (N, C) float32 probabilities of all images, rows as in `begin`.
        """


def search_grid(**values: tuple) -> dict[str, tuple]:
    """Return a value for `Method.tunable`: constants by name, each with the values that a search should try."""
    return values


def to_evidence_tensor(evidence: Tensor | np.ndarray, labels: Tensor) -> Tensor:
    """Return `Method.evidence` for these labels, on their device.

    Args:
        evidence: (N, C) floats in [0, 1], nan where nothing is known.
        labels: (N, C).

    Returns:
        (N, C) float32.

    Raises:
        ValueError: The shapes differ, or the evidence is no floats.
    """
    given = torch.as_tensor(evidence)
    if given.shape != labels.shape or not given.is_floating_point():
        raise ValueError(
            f"The evidence is {tuple(given.shape)} of {given.dtype}; it must be {tuple(labels.shape)} of floats. "
            "Were classes added since it was made?"
        )
    return given.float().to(labels.device)


def check_positive(**values: float) -> None:
    """Refuse values that are not finite numbers above 0.

    Args:
        **values: The constants of a method, by name.

    Raises:
        ValueError: A value is not a finite number above 0; the message names each.
    """
    wrong = [f"{name} = {value}" for name, value in values.items() if not 0 < value < math.inf]
    if wrong:
        raise ValueError(f"Must be a number above 0: {', '.join(wrong)}.")


def has_fallen_behind(scores: list[float], points: float) -> bool:
    """Return whether the last score is far below the best.

    Args:
        scores: The validation mAP of each epoch so far, in [0, 1].
        points: How far, in points of a hundred.

    Returns:
        True where it is more than `points` below; False without scores.
    """
    return bool(scores) and 100 * (max(scores) - scores[-1]) > points
