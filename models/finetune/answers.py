"""The loss of adapting: answers in full where they are unbiased, single positives through the loss of a method.

An image with an unbiased answer teaches by its answered cells alone, by binary cross-entropy: what nobody has looked at
in it is left out, because answers of both kinds are there. An image that was only clicked on has positives and nothing
else; its cells go through the loss of the project's method, which says what to think of the unanswered ones. Cells
outside of the mask (somebody was unsure) teach nothing.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from models.labels import PRESENT, UNSEEN
from models.losses.base import Loss
from models.methods.auto import Auto
from models.methods.base import Method
from models.methods.published.gr import GR


class Answers(Method):
    """Both losses, weighted by the cells they are of. No method to choose: adapting makes one around the chosen."""

    name = "answers"
    title = "Answers in full, single positives by a method"
    paper = "None: this project's own"
    year = 2026
    url = ""
    assumes = "What the method inside assumes, of images without an unbiased answer; of all others nothing."
    threshold = 0.5
    inside = ("inner",)  # kept with its own state (checkpoints.py)

    def __init__(self, method: Method, unbiased: Tensor):
        """method: of single positives; unbiased: (N, C) bool, answers that were not chosen by their state."""
        self.inner, self.unbiased = method, unbiased
        self.answered = self.single = torch.zeros(0, 0, dtype=torch.bool)

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of the method inside, and a digest of which answers are unbiased."""
        digest = hashlib.sha256(self.unbiased.cpu().numpy().tobytes()).hexdigest()[:16]
        return self.inner.parameters | {"method": self.inner.name, "unbiased": digest}

    def criterion(self) -> Loss:
        """The loss of the method inside."""
        return self.inner.criterion()

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """As in Method."""
        usable = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask
        unbiased = self.unbiased.to(labels.device) & usable
        looked_at = unbiased.any(1, keepdim=True)
        self.answered = usable & (labels != UNSEEN) & looked_at
        self.single = usable & ~looked_at
        super().begin(labels, mask, epochs, generator)
        self.inner.begin(labels, self.single, epochs, generator)

    def begin_epoch(self, epoch: int) -> None:
        """As in Method."""
        self.inner.begin_epoch(epoch)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """As in Method."""
        answered, single = self.answered[rows], self.single[rows]
        wanted = (self.targets[rows] == PRESENT).to(logits.dtype)
        told = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        told = torch.where(answered, told, 0).sum()
        cells = single.sum()
        guessed = self.inner.loss(logits, rows) * cells if bool(cells) else told.new_zeros(())
        return (told + guessed) / (answered.sum() + cells).clamp(min=1)

    def end_epoch(self, epoch: int, predict: Callable[[], Tensor]) -> None:
        """As in Method."""


def loss_for(method: Method) -> Method:
    """The method whose loss single positives go through: the project's, where it is a mean over the cells of a batch
    and keeps nothing of each image; else the generalized robust loss, as in `auto`."""
    kind = type(method)
    is_plain = (
        kind.learned is Method.learned
        and kind.end_epoch is Method.end_epoch
        and kind.loss is Method.loss
        and kind.begin is Method.begin
    )
    if method.reads == "features" and is_plain and not method.full_labels and method.criterion().reduction == "cells":
        return method
    return method.of_the_head() if isinstance(method, Auto) else GR()
