"""The base class of methods. A method is a training procedure: everything in a paper *around* its loss.

A loss is a function of one batch and has no state. A method holds the rest of a paper: constants that change from epoch
to epoch, pseudo-labels, estimates per image, parameters learned beside the network.

The trainer (`models.linear.training.fit`, `models.finetune.fit_network`) owns the network and the optimiser, and calls:

    begin(labels, mask, epochs, generator)      once; discards the state of an earlier training
    learned()                                   once, after begin: what the optimiser trains besides the network
    for epoch in 1 .. epochs:
        starts_afresh(epoch)                    True: the optimiser forgets its moments (a second stage begins)
        begin_epoch(epoch)
        loss(logits, rows)                      for every batch; rows are the indices of its images
        end_epoch(epoch, predict)               predict() computes the probabilities of all rows

The method holds the labels (`targets`), not `fit`, so that a method with pseudo-labels or an estimate per row has a
single place for them.
"""

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from models.losses.base import Loss
from models.methods.end_to_end import EndToEnd


class Method(ABC):
    """A training procedure. A subclass gives the class attributes and `criterion`, and overrides the hooks it needs.

    Every argument of `__init__` must have a default and be kept as an attribute of the same name (`parameters` reads
    them).
    """

    name: ClassVar[str]  # in commands, in the database, on pages
    title: ClassVar[str]  # for people
    paper: ClassVar[str]
    year: ClassVar[int]
    url: ClassVar[str]
    assumes: ClassVar[str]  # one line: what the method assumes of an unanswered cell

    # The lowest probability at which a cell is worth showing to a person. Probabilities of different methods are not
    # comparable: each loss presses unseen cells towards its own level. At each value, on two photograph collections
    # with one click on 5, 20 and 100 % of the images, roughly three of five shown cells were true (0.34 to 0.88) and
    # two of three hidden positives were shown (0.45 to 0.77).
    threshold: ClassVar[float]

    # Epochs and learning rate of a linear head on cached features; models/linear/training.py says how they were chosen.
    # Twenty epochs at 3e-3 rank about as well and take longer; much more than either memorises single clicks.
    epochs: ClassVar[int] = 12
    lr: ClassVar[float] = 5e-3

    # The input of the network, which determines the trainer (models/trainers): "features", one pooled vector an image;
    # "regions", features and the codes of nine regions an image; or "maps", the last feature map before pooling (or the
    # images themselves), on which the method builds a network of its own.
    reads: ClassVar[str] = "features"
    views: ClassVar[int] = 1  # how many augmented views of every image a batch holds

    # True: the method is trained on the whole truth where it is known (the upper limit of the other methods).
    full_labels: ClassVar[bool] = False

    # Constants worth a search on validation data, each with the values to try (`annotator bench methods`).
    tunable: ClassVar[dict[str, tuple]] = {}

    # Inputs that the method needs beside images and labels of some of them; each is a key of models/catalogue.NEEDS.
    needs: ClassVar[tuple[str, ...]] = ()

    # Whether this code reproduced the figures of the paper: one of models/catalogue.VERDICTS, a colon, and why or how.
    reproduced: ClassVar[str] = (
        "no: the figures of the paper are of whole networks trained on its data sets, which was not done here "
        "(docs/benchmarks.md, End to end)"
    )

    # Points that the paper, or the part of it at hand, leaves open, and the choice made here: a sentence each.
    open_points: ClassVar[tuple[str, ...]] = ()

    # True: comparisons neither search constants nor choose the best epoch; the method works without validation images.
    as_it_is: ClassVar[bool] = False

    # The paper's settings for training the whole network on each data set: "voc", "coco", "nus", "cub".
    published: ClassVar[dict[str, EndToEnd]] = {}

    # (N, C) float32 in [0, 1], set before `begin` where `needs` asks for it (models/trainers/evidence.py): evidence
    # for each cell beside the labels; nan where there is none. None: no evidence for any cell.
    evidence: Tensor | None = None

    # True: `features` is set before `begin`.
    wants_features: ClassVar[bool] = False
    # (N, D) float16 or float32, pooled, of the frozen network; None if not wanted, or if that network is trained.
    features: Tensor | None = None

    targets: Tensor  # (N, C) float32: the labels, and the method's own guesses in unseen cells
    mask: Tensor | None  # (N, C) bool, True where a cell may be used
    total_epochs: int

    @abstractmethod
    def criterion(self) -> Loss:
        """Return the loss, with its constants at the start; `begin` stores it as `self.loss_function`."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the constants of this method by name, as they are now: enough to build the same method again."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training with these labels, and discard the state of any earlier one.

        Args:
            labels: (N, C) int8, 1 present, -1 absent, 0 not looked at.
            mask: (N, C) bool, True where a cell may be used; None: all.
            epochs: Number of epochs of this training; schedules are fractions of it.
            generator: Source of random initial values (on the CPU), so that a seed decides them.
        """
        self.targets = labels.to(torch.float32, copy=True)  # methods write into it
        self.mask = mask
        self.total_epochs = epochs
        self.loss_function = self.criterion()

    def network(self, channels: int, classes: int, generator: torch.Generator) -> nn.Module:
        """Return the network to train on maps (B, channels, h, w), with random weights from `generator`.

        Raises:
            NotImplementedError: The method does not read maps.
        """
        raise NotImplementedError(f"{self.name} reads {self.reads} and has no network of its own.")

    def learned(self) -> list[dict[str, Any]]:
        """Return the parameters that the optimiser trains besides the network.

        Returns:
            Groups {"params": [leaf tensors], "lr_scale": how many times the learning rate of the network}.
        """
        return []

    def starts_afresh(self, epoch: int) -> bool:
        """Return whether a new stage begins with this epoch: the weights stay, the optimiser starts again."""
        return False

    def freezes_backbone(self, epoch: int) -> bool:
        """Return whether only the head is trained in this epoch; on cached features it is always trained alone."""
        return False

    def gives_up(self, scores: list[float]) -> bool:
        """Return whether the paper would end a training here, by the validation mAP in [0, 1] of each epoch so far.

        Only comparisons with fully labelled validation images call this; a project has no such images.
        """
        return False

    def begin_epoch(self, epoch: int) -> None:  # noqa: B027 - most methods have nothing to do here
        """Prepare an epoch, before its first batch; epochs count from 1, as in the papers."""

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch: logits (B, C) of the images `rows` (B,) int64 -> scalar."""
        return self.loss_function(logits, self.targets[rows], None if self.mask is None else self.mask[rows])

    def end_epoch(self, epoch: int, predict: Callable[[], Tensor]) -> None:  # noqa: B027 - as above
        """Finish an epoch, after its last batch; predict() -> (N, C) float32 probabilities, rows as in begin."""


def worth_trying(**values: tuple) -> dict[str, tuple]:
    """Return the keyword arguments as a dict, for `Method.tunable`: constants and the values a search should try."""
    return values


def checked_evidence(evidence: Tensor | np.ndarray, labels: Tensor) -> Tensor:
    """Return `Method.evidence` for these labels as float32 on their device.

    Raises:
        ValueError: The shapes differ, or the evidence does not consist of floats.
    """
    given = torch.as_tensor(evidence)
    if given.shape != labels.shape or not given.is_floating_point():
        raise ValueError(
            f"The evidence is {tuple(given.shape)} of {given.dtype}; it must be {tuple(labels.shape)} of floats. "
            "Were classes added since it was made?"
        )
    return given.float().to(labels.device)


def positive(**values: float) -> None:
    """Raise ValueError naming every value that is not a finite number above 0."""
    wrong = [f"{name} = {value}" for name, value in values.items() if not 0 < value < math.inf]
    if wrong:
        raise ValueError(f"Must be a number above 0: {', '.join(wrong)}.")


def fallen_behind(scores: list[float], points: float) -> bool:
    """Return whether the last validation mAP is more than `points` hundredths below the best; scores are in [0, 1]."""
    return bool(scores) and 100 * (max(scores) - scores[-1]) > points
