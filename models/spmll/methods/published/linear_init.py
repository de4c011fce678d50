"""Two stages: first the classifier alone on a frozen backbone, then the whole network ("LinearInit.").

Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021, sec. 6.1.
"""

import torch
from torch import Tensor

from spmll.methods.base import Method


class LinearInit(Method):
    """A method whose backbone is frozen in the first part of the epochs; a fresh optimiser begins the second.

    A linear head on cached features goes through both stages with fixed features.

    Attributes:
        linear: The share of the epochs with a frozen backbone, in [0, 1].
    """

    linear: float

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start as the method does, and compute the first epoch of the second stage."""
        super().begin(labels, mask, epochs, generator)
        self.second = 1 + round(self.linear * epochs)

    def freezes_backbone(self, epoch: int) -> bool:
        """Return True in the first stage."""
        return epoch < self.second

    def restarts_optimizer(self, epoch: int) -> bool:
        """Return True for the first epoch of the second stage, unless it is the first of all."""
        return 1 < epoch == self.second
