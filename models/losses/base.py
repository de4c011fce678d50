"""What every loss shares: the check of the shapes, the average, and a logarithm that cannot overflow.

A loss says what each cell costs (`per_cell`); adding up is done here, once. A loss holds no state of a training run:
whatever changes from epoch to epoch, or is kept per image, belongs to a method (models/methods).
"""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Loss(nn.Module, ABC):
    """A price for every cell of a batch. A subclass gives `name` and `per_cell`.

    Half-precision logits (float16, bfloat16) are widened to float32 before anything is computed, and the result is
    float32: the constants of the papers (1e-5, 1e-7) do not exist in half precision.
    """

    name: ClassVar[str]

    @abstractmethod
    def per_cell(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of each cell: logits (B, C) float32 or float64, labels (B, C) of the same type -> (B, C)."""

    def forward(self, logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
        """The average loss of a cell, as a scalar.

        logits   (B, C) float
        labels   (B, C), 1 present, -1 absent, 0 not looked at; a float between -1 and 0 is a soft pseudo-negative
                 (models/labels.py), which a loss that has no use for the nuance takes as absent
        mask     (B, C) bool, True where the cell may be used; None uses all

        Without a mask the sum is divided by B x C, as in the code of Cole et al. (2021), EM/APL, GR and Large Loss.
        With one, it is divided by the number of cells in use, so that holding cells out does not weaken the rest. No
        cell in use costs 0.

        Raises ValueError when shapes differ or the mask is not bool, TypeError when the logits are not floats.
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
        cells = self.per_cell(logits, labels.to(logits.dtype))
        if mask is None:
            return cells.sum() / max(cells.numel(), 1)
        # where, not a product: a cell left out must not turn the sum into nan, whatever its logit was.
        return torch.where(mask, cells, 0).sum() / mask.sum().clamp(min=1)


def negative_log(logits: Tensor, eps: float = 0.0) -> Tensor:
    """-log(p + eps) of p = sigmoid(logits), finite in value and gradient for every finite logit.

    Pass -logits for -log(1 - p + eps). Published code keeps an eps inside the logarithm, which bounds the loss at
    -log(eps) and lets the gradient of a saturated mistake vanish; eps = 0 is the exact logarithm, which does neither.
    """
    if eps == 0:
        return F.softplus(-logits)
    return -torch.log(torch.sigmoid(logits) + eps)


def no_such(kind: str, name: object, known: Iterable[str]) -> ValueError:
    """The error for a name that is in no table: what there is, and what was probably meant."""
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"There is no {kind} {name!r}.{hint} There is: {', '.join(known) or 'none'}.")


def at_least_zero(**values: float) -> None:
    """Raises ValueError naming every value that is negative or not a number."""
    wrong = [f"{name} = {value}" for name, value in values.items() if not value >= 0]
    if wrong:
        raise ValueError(f"Must not be negative: {', '.join(wrong)}.")
