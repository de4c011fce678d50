"""The adaptation loss: cross-entropy on unbiased answers, the method's loss on single positives.

Images with an unbiased answer use only answered cells. Others use the project's method, with its assumption
about unanswered cells. Unsure cells are ignored.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from spmll.labels import PRESENT, UNSEEN
from spmll.losses.base import Loss
from spmll.methods.auto import Auto
from spmll.methods.base import Method
from spmll.methods.published.gr import GR


class AnswerMethod(Method):
    """A method that uses unbiased answers in full, and another method for all other images."""

    name = "answers"
    title = "Answers in full, single positives by a method"
    paper = "None: this project's own"
    year = 2026
    url = ""
    assumes = "What the method inside assumes, of images without an unbiased answer; of all others nothing."
    threshold = 0.5
    inside = ("inner",)  # kept with its own state (checkpoints.py)

    def __init__(self, method: Method, unbiased: Tensor):
        """Store the method for single positives and `unbiased` (N, C) bool."""
        self.inner, self.unbiased = method, unbiased
        self.answered = self.single = torch.zeros(0, 0, dtype=torch.bool)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters and name of the inner method, and a digest of `unbiased`."""
        digest = hashlib.sha256(self.unbiased.cpu().numpy().tobytes()).hexdigest()[:16]
        return self.inner.parameters | {"method": self.inner.name, "unbiased": digest}

    def criterion(self) -> Loss:
        return self.inner.criterion()

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training, giving images without unbiased answers to the inner method."""
        usable = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask
        unbiased = self.unbiased.to(labels.device) & usable
        looked_at = unbiased.any(1, keepdim=True)
        self.answered = usable & (labels != UNSEEN) & looked_at
        self.single = usable & ~looked_at
        super().begin(labels, mask, epochs, generator)
        self.inner.begin(labels, self.single, epochs, generator)

    def begin_epoch(self, epoch: int) -> None:
        self.inner.begin_epoch(epoch)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the mean loss over cells, by both losses."""
        answered, single = self.answered[rows], self.single[rows]
        wanted = (self.targets[rows] == PRESENT).to(logits.dtype)
        told = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        told = torch.where(answered, told, 0).sum()
        cells = single.sum()
        guessed = self.inner.loss(logits, rows) * cells if bool(cells) else told.new_zeros(())
        return (told + guessed) / (answered.sum() + cells).clamp(min=1)

    def end_epoch(self, epoch: int, predict: Callable[[], Tensor]) -> None:
        """Do nothing, since inner methods do not act after epochs."""


def choose_single_positive_method(method: Method) -> Method:
    """Return the project's method if its loss is a stateless mean over cells, else the robust loss's method."""
    kind = type(method)
    is_plain = (
        kind.parameter_groups is Method.parameter_groups
        and kind.end_epoch is Method.end_epoch
        and kind.loss is Method.loss
        and kind.begin is Method.begin
    )
    if method.reads == "features" and is_plain and not method.full_labels and method.criterion().reduction == "cells":
        return method
    return method.make_head_method() if isinstance(method, Auto) else GR()
