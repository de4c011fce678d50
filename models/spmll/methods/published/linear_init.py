"""Two stages: the classifier on a frozen backbone, then the network (Cole et al. 2021, sec. 6.1)."""

import torch
from torch import Tensor

from spmll.methods.base import Method


class LinearInit(Method):
    """A method with a frozen backbone first, then a new optimizer.

    Attributes:
        linear: Share of frozen epochs.
    """

    linear: float

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start, computing the first epoch of stage 2."""
        super().begin(labels, mask, epochs, generator)
        self.second = 1 + round(self.linear * epochs)

    def freezes_backbone(self, epoch: int) -> bool:
        """Return True in stage 1."""
        return epoch < self.second

    def restarts_optimizer(self, epoch: int) -> bool:
        """Return whether stage 2 starts, other than in epoch 1."""
        return 1 < epoch == self.second
