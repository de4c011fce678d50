"""The base class of losses: the check of the shapes, the average, and logarithms that cannot overflow.

A loss defines the loss of each cell (`per_cell`); the reduction is done here. A loss that cannot be split into cells
defines the loss of each image (PerImageLoss); a loss with a term for the whole batch adds it in `total`. A loss holds
no state of a training: values that change from epoch to epoch, or are stored per image, belong to a method
(spmll/methods).

In all of them a label of exactly -1 is an answer of a person and has full weight, whatever weight the paper gives to an
assumed negative. A loss whose paper does not define this says so.
"""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spmll.labels import ABSENT, UNSEEN

REDUCTIONS = ("cells", "images", "sum")
LOSS_FORMS = ("code", "paper")


class Loss(nn.Module, ABC):
    """A loss that is a sum over the cells of a batch. A subclass gives `name` and `per_cell`.

    Half-precision logits (float16, bfloat16) are widened to float32 before anything is computed, and the result is
    float32: the constants of the papers (1e-5, 1e-7) do not exist in half precision.

    Attributes:
        name: Its name in the table LOSSES.
        reduction: How the losses of the cells become one number. "cells": divided by B x C, or by the number of cells
            in use where there is a mask, so that holding cells out does not weaken the rest; as in the code of Cole et
            al. (2021), EM/APL, GR and Large Loss. "images": summed over classes, averaged over images with a cell in
            use, as papers write it. "sum": not divided, as in the code of ASL, Hill and SPLC, whose learning rates
            depend on the batch.
    """

    name: ClassVar[str]
    reduction: str = "cells"

    @abstractmethod
    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell.

        Cells that are not in use have logit 0 and label UNSEEN; their loss is dropped afterwards.

        Args:
            logits: (B, C) float32 or float64.
            labels: (B, C) of the same type: 1 present, -1 absent, 0 not looked at, between -1 and 0 a soft
                pseudo-label.

        Returns:
            (B, C) of the same type.
        """

    def compute_batch_loss(self, logits: Tensor, labels: Tensor, usable: Tensor | None) -> Tensor:
        """Return the loss of a batch, as `forward` does, of arguments that are checked already.

        Args:
            logits: (B, C) float32 or float64.
            labels: (B, C) of the same type.
            usable: (B, C) bool, the mask; None: all cells are in use.

        Returns:
            A scalar.
        """
        cells = self.per_cell(logits, labels)
        if usable is not None:
            cells = torch.where(usable, cells, 0)
        return cells.sum() / self.compute_divisor(labels, usable)

    def compute_divisor(self, labels: Tensor, usable: Tensor | None) -> Tensor | int:
        """Return what the sum over a batch is divided by; at least 1, so that a batch without a cell in use costs 0.

        Args:
            labels: (B, C).
            usable: (B, C) bool, the mask; None: all cells are in use.

        Returns:
            A number of cells or images, or 1.

        Raises:
            ValueError: `reduction` is none of REDUCTIONS.
        """
        if self.reduction == "cells":
            return max(labels.numel(), 1) if usable is None else usable.sum().clamp(min=1)
        if self.reduction == "images":
            return max(labels.shape[0], 1) if usable is None else usable.any(1).sum().clamp(min=1)
        if self.reduction == "sum":
            return 1
        raise unknown_name_error("reduction", self.reduction, REDUCTIONS)

    def forward(self, logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the loss of a batch, as a scalar; `reduction` says how it is averaged.

        Args:
            logits: (B, C) float.
            labels: (B, C), 1 present, -1 absent, 0 not looked at; a float between -1 and 0 is a soft pseudo-label
                (spmll/labels.py), which a loss that has no use for the nuance takes as absent.
            mask: (B, C) bool, True where the cell may be used; None: everywhere. No cell in use costs 0.

        Returns:
            A scalar, float32 or float64.

        Raises:
            TypeError: The logits are not floats.
            ValueError: The shapes differ, or the mask is not bool.
        """
        if not logits.is_floating_point():
            raise TypeError(f"Logits must be floats, not {logits.dtype}.")
        if logits.ndim != 2 or logits.shape != labels.shape:
            raise ValueError(
                f"Logits are {tuple(logits.shape)} but labels are {tuple(labels.shape)}; "
                "both must be (images, classes). Were classes added after this network was built?"
            )
        if mask is not None and (mask.shape != labels.shape or mask.dtype != torch.bool):
            raise ValueError(
                f"The mask is {tuple(mask.shape)} of {mask.dtype}; it must be {tuple(labels.shape)} of torch.bool, "
                "True where a cell may be used."
            )
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        labels = labels.to(logits.dtype)
        if mask is not None:
            # where, not a product: a cell left out must not turn anything into nan, whatever its logit was.
            logits, labels = torch.where(mask, logits, 0), torch.where(mask, labels, UNSEEN)
        return self.compute_batch_loss(logits, labels, mask)


class PerImageLoss(Loss):
    """A loss that is a sum over images, in which the classes of an image compete. A subclass gives `per_image`.

    Attributes:
        reduction: As in Loss; "images", the mean over the images with a cell in use, is the usual one here.
    """

    reduction = "images"

    @abstractmethod
    def per_image(self, logits: Tensor, labels: Tensor, usable: Tensor) -> Tensor:
        """Return the loss of each image.

        Args:
            logits: (B, C), as in per_cell.
            labels: (B, C), as in per_cell.
            usable: (B, C) bool, True where a cell is in use.

        Returns:
            (B,) of the same type as the logits; the loss of an image without a cell in use is dropped afterwards.
        """

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Raise TypeError: the loss of an image cannot be split into cells."""
        raise TypeError(f"{self.name} prices whole images; it has no loss of a single cell.")

    def compute_batch_loss(self, logits: Tensor, labels: Tensor, usable: Tensor | None) -> Tensor:
        """Return the loss of a batch, as in Loss; an image without a cell in use costs nothing."""
        in_use = torch.ones_like(labels, dtype=torch.bool) if usable is None else usable
        images = torch.where(in_use.any(1), self.per_image(logits, labels, in_use), 0)
        return images.sum() / self.compute_divisor(labels, usable)


def negative_log_sigmoid(logits: Tensor, eps: float = 0.0) -> Tensor:
    """Return -log(p + eps) of p = sigmoid(logits), finite in value and gradient for every finite logit.

    Pass -logits for -log(1 - p + eps). Published code keeps an eps inside the logarithm, which bounds the loss at
    -log(eps) and lets the gradient of a saturated mistake vanish; eps = 0 is the exact logarithm, which does neither.
    """
    if eps == 0:
        return F.softplus(-logits)
    return -torch.log(torch.sigmoid(logits) + eps)


def log_loss(logits: Tensor, labels: Tensor, eps: float = 0.0) -> Tensor:
    """Return -log(p + eps) where present, -log(1 - p + eps) everywhere else; (B, C), (B, C) -> (B, C)."""
    return negative_log_sigmoid(torch.where(labels > UNSEEN, logits, -logits), eps)


def clamped_negative_log_sigmoid(logits: Tensor, eps: float = 0.0) -> Tensor:
    """Return -log(max(p, eps)) of p = sigmoid(logits), as the code of ASL bounds its logarithms; eps = 0 is exact."""
    if eps == 0:
        return F.softplus(-logits)
    return -torch.log(torch.sigmoid(logits).clamp(min=eps))


def focal_loss(logits: Tensor, gamma: float, eps: float = 0.0, detached: bool = False) -> Tensor:
    """Return (1 - p)^gamma x -log(max(p, eps)) of p = sigmoid(logits): well predicted cells count little.

    Pass -logits for p^gamma x -log(1 - p).

    Args:
        logits: Of any shape.
        gamma: The larger it is, the less a well predicted cell counts; 0: all cells count alike.
        eps: As in clamped_negative_log_sigmoid.
        detached: The weight (1 - p)^gamma is a constant of the gradient.

    Returns:
        The loss of each logit, of their shape.

    Source: Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017, eq. 4.
    """
    cost = clamped_negative_log_sigmoid(logits, eps)
    if gamma == 0:
        return cost
    # exp of a logarithm: the plain power has no finite gradient where 1 - p has become 0 and gamma is below 1.
    weight = torch.exp(gamma * F.logsigmoid(-logits))
    return (weight.detach() if detached else weight) * cost


def generalized_cross_entropy(logits: Tensor, q: float) -> Tensor:
    """Return (1 - p^q) / q of p = sigmoid(logits), and its limit -log(p) at q = 0.

    p^q is exp(q log p): the plain power has no finite gradient once p has become 0 in float32 (from logits of about
    -90). Source: Zhang and Sabuncu, NeurIPS 2018, eq. 6.
    """
    if q == 0:
        return negative_log_sigmoid(logits)
    return -torch.expm1(q * F.logsigmoid(logits)) / q


def presence_probability(labels: Tensor) -> Tensor:
    """Return the probability of presence that a label states: 1 present, q where the label is a soft -q, else 0."""
    return torch.where(labels > ABSENT, labels.abs(), 0)


def weighted_log_sum_exp(logits: Tensor, weights: Tensor, constant: float = 0.0) -> Tensor:
    """Return log(e^constant + sum over classes of weights x e^logits).

    Args:
        logits: (B, C).
        weights: (B, C) in [0, 1].
        constant: The logarithm of the term beside the classes.

    Returns:
        (B,).
    """
    terms = torch.where(weights > 0, logits + weights.clamp(min=torch.finfo(weights.dtype).tiny).log(), -torch.inf)
    return torch.logsumexp(F.pad(terms, (1, 0), value=constant), dim=1)


def unknown_name_error(kind: str, name: object, known: Iterable[str]) -> ValueError:
    """Return the error for a name that is in no table: the names that there are, and the one that was probably meant.

    Args:
        kind: The noun for such a name: "loss".
        name: The unknown name.
        known: The names in the table.

    Returns:
        The error, to be raised by the caller.
    """
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"There is no {kind} {name!r}.{hint} There is: {', '.join(known) or 'none'}.")


def check_choice(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the name if it is in the table.

    Args:
        kind: The noun for such a name: "reduction".
        name: The name to look up.
        known: The names in the table.

    Returns:
        The name.

    Raises:
        ValueError: The name is not in the table; the message lists those that are.
    """
    known = list(known)
    if name not in known:
        raise unknown_name_error(kind, name, known)
    return str(name)


def check_non_negative(**values: float) -> None:
    """Refuse values that are negative or not a number.

    Args:
        **values: The constants of a loss, by name.

    Raises:
        ValueError: A value is negative or nan; the message names each.
    """
    wrong = [f"{name} = {value}" for name, value in values.items() if not value >= 0]
    if wrong:
        raise ValueError(f"Must not be negative: {', '.join(wrong)}.")


def check_fractions(**values: float) -> None:
    """Refuse values that are not between 0 and 1.

    Args:
        **values: The constants of a loss, by name.

    Raises:
        ValueError: A value is not in [0, 1]; the message names each.
    """
    wrong = [f"{name} = {value}" for name, value in values.items() if not 0 <= value <= 1]
    if wrong:
        raise ValueError(f"Must be between 0 and 1: {', '.join(wrong)}.")


def check_finite(**values: float) -> None:
    """Refuse values that are infinite or not a number.

    Args:
        **values: The constants of a loss, by name.

    Raises:
        ValueError: A value is infinite or nan; the message names each.
    """
    wrong = [f"{name} = {value}" for name, value in values.items() if not abs(value) < float("inf")]
    if wrong:
        raise ValueError(f"Must be finite: {', '.join(wrong)}.")
