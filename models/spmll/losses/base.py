"""The base class of losses: shape checks, reduction and stable logarithms.

A loss defines `per_cell` or `per_image` and has no training state. A label of exactly -1 is an answer with
full weight, whatever a paper's weight of assumed negatives.
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
    """A loss that sums over cells of a batch. Subclasses define `name` and `per_cell`.

    Half-precision logits are widened, since 1e-7 underflows.

    Attributes:
        name: Name in LOSSES.
        reduction: "cells" divides by usable cells, "images" by images with usable cells, "sum" by nothing (code
            of ASL, Hill, SPLC).
    """

    name: ClassVar[str]
    reduction: str = "cells"

    @abstractmethod
    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each cell. The caller drops unusable cells.

        Args:
            logits: (B, C) float32 or float64, 0 if unusable.
            labels: (B, C), 1 present, -1 absent, 0 unseen, or -q, a guess with presence probability q.

        Returns:
            (B, C).
        """

    def compute_batch_loss(self, logits: Tensor, labels: Tensor, usable: Tensor | None) -> Tensor:
        """Return the loss of a batch with checked arguments.

        Args:
            logits: (B, C).
            labels: (B, C).
            usable: (B, C) bool, None for all.

        Returns:
            A scalar.
        """
        cells = self.per_cell(logits, labels)
        if usable is not None:
            cells = torch.where(usable, cells, 0)
        return cells.sum() / self.compute_divisor(labels, usable)

    def compute_divisor(self, labels: Tensor, usable: Tensor | None) -> Tensor | int:
        """Return the divisor of the batch sum, at least 1.

        Args:
            labels: (B, C).
            usable: (B, C) bool, None for all.

        Returns:
            A count.

        Raises:
            ValueError: Unknown `reduction`.
        """
        if self.reduction == "cells":
            return max(labels.numel(), 1) if usable is None else usable.sum().clamp(min=1)
        if self.reduction == "images":
            return max(labels.shape[0], 1) if usable is None else usable.any(1).sum().clamp(min=1)
        if self.reduction == "sum":
            return 1
        raise unknown_name_error("reduction", self.reduction, REDUCTIONS)

    def forward(self, logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the loss of a batch, reduced by `reduction`.

        Args:
            logits: (B, C) float.
            labels: (B, C), 1 present, -1 absent, 0 unseen, else soft.
            mask: (B, C) bool, usable cells, None for all.

        Returns:
            A scalar, 0 without usable cells.

        Raises:
            TypeError: Logits are not floats.
            ValueError: Shapes differ, or the mask is not bool.
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
    """A loss of all classes of an image together, not per cell. Subclasses define `per_image`.

    Attributes:
        reduction: Usually "images".
    """

    reduction = "images"

    @abstractmethod
    def per_image(self, logits: Tensor, labels: Tensor, usable: Tensor) -> Tensor:
        """Return the loss of each image. The caller drops images without usable cells.

        Args:
            logits: (B, C).
            labels: (B, C).
            usable: (B, C) bool.

        Returns:
            (B,).
        """

    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Raise TypeError, since images have no cell losses."""
        raise TypeError(f"{self.name} prices whole images; it has no loss of a single cell.")

    def compute_batch_loss(self, logits: Tensor, labels: Tensor, usable: Tensor | None) -> Tensor:
        """Return the batch loss over images with usable cells."""
        in_use = torch.ones_like(labels, dtype=torch.bool) if usable is None else usable
        images = torch.where(in_use.any(1), self.per_image(logits, labels, in_use), 0)
        return images.sum() / self.compute_divisor(labels, usable)


def negative_log_sigmoid(logits: Tensor, eps: float = 0.0) -> Tensor:
    """Return -log(sigmoid(logits) + eps), finite in value and gradient.

    Pass -logits for -log(1 - p + eps). A positive eps bounds the loss, but the gradients of saturated mistakes
    vanish.
    """
    if eps == 0:
        return F.softplus(-logits)
    return -torch.log(torch.sigmoid(logits) + eps)


def log_loss(logits: Tensor, labels: Tensor, eps: float = 0.0) -> Tensor:
    """Return -log(p + eps) where present, -log(1 - p + eps) elsewhere, (B, C)."""
    return negative_log_sigmoid(torch.where(labels > UNSEEN, logits, -logits), eps)


def clamped_negative_log_sigmoid(logits: Tensor, eps: float = 0.0) -> Tensor:
    """Return -log(max(sigmoid(logits), eps)), as in ASL's code. eps = 0 is exact."""
    if eps == 0:
        return F.softplus(-logits)
    return -torch.log(torch.sigmoid(logits).clamp(min=eps))


def focal_loss(logits: Tensor, gamma: float, eps: float = 0.0, detached: bool = False) -> Tensor:
    """Return (1 - p)^gamma x -log(max(p, eps)) (Lin et al., ICCV 2017, eq. 4).

    Pass -logits for p^gamma x -log(1 - p).

    Args:
        logits: Any shape.
        gamma: 0 weighs all alike.
        eps: Lower bound of p.
        detached: Whether weights are constants in the gradient.

    Returns:
        The loss per logit.
    """
    cost = clamped_negative_log_sigmoid(logits, eps)
    if gamma == 0:
        return cost
    # exp of a logarithm: the plain power has no finite gradient where 1 - p has become 0 and gamma is below 1.
    weight = torch.exp(gamma * F.logsigmoid(-logits))
    return (weight.detach() if detached else weight) * cost


def generalized_cross_entropy(logits: Tensor, q: float) -> Tensor:
    """Return (1 - p^q) / q, or -log(p) at q = 0 (Zhang and Sabuncu, NeurIPS 2018, eq. 6).

    Gradients stay finite at p = 0.
    """
    if q == 0:
        return negative_log_sigmoid(logits)
    return -torch.expm1(q * F.logsigmoid(logits)) / q


def presence_probability(labels: Tensor) -> Tensor:
    """Return the probability that each label states: 1 if present, q for a soft -q, else 0."""
    return torch.where(labels > ABSENT, labels.abs(), 0)


def weighted_log_sum_exp(logits: Tensor, weights: Tensor, constant: float = 0.0) -> Tensor:
    """Return log(e^constant + sum of weights x e^logits) per image.

    Args:
        logits: (B, C).
        weights: (B, C) in [0, 1].
        constant: Logarithm of the extra term.

    Returns:
        (B,).
    """
    terms = torch.where(weights > 0, logits + weights.clamp(min=torch.finfo(weights.dtype).tiny).log(), -torch.inf)
    return torch.logsumexp(F.pad(terms, (1, 0), value=constant), dim=1)


def unknown_name_error(kind: str, name: object, known: Iterable[str]) -> ValueError:
    """Return an error that lists known names and suggests one.

    Args:
        kind: Noun, such as "loss".
        name: The unknown name.
        known: Known names.

    Returns:
        The error.
    """
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"There is no {kind} {name!r}.{hint} There is: {', '.join(known) or 'none'}.")


def check_choice(kind: str, name: object, known: Iterable[str]) -> str:
    """Return a known name.

    Args:
        kind: Noun, such as "reduction".
        name: The name.
        known: Known names.

    Returns:
        The name.

    Raises:
        ValueError: Unknown name.
    """
    known = list(known)
    if name not in known:
        raise unknown_name_error(kind, name, known)
    return str(name)


def check_non_negative(**values: float) -> None:
    """Reject negative values and nan.

    Args:
        **values: By name.

    Raises:
        ValueError: Invalid values, named.
    """
    wrong = [f"{name} = {value}" for name, value in values.items() if not value >= 0]
    if wrong:
        raise ValueError(f"Must not be negative: {', '.join(wrong)}.")


def check_fractions(**values: float) -> None:
    """Reject values outside [0, 1].

    Args:
        **values: By name.

    Raises:
        ValueError: Invalid values, named.
    """
    wrong = [f"{name} = {value}" for name, value in values.items() if not 0 <= value <= 1]
    if wrong:
        raise ValueError(f"Must be between 0 and 1: {', '.join(wrong)}.")


def check_finite(**values: float) -> None:
    """Reject infinite values and nan.

    Args:
        **values: By name.

    Raises:
        ValueError: Invalid values, named.
    """
    wrong = [f"{name} = {value}" for name, value in values.items() if not abs(value) < float("inf")]
    if wrong:
        raise ValueError(f"Must be finite: {', '.join(wrong)}.")
