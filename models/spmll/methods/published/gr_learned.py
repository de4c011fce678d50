"""Generalized robust loss with learned curves, an ablation that the paper advises against."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spmll.methods.base import check_positive
from spmll.methods.published.gr import GR

MIN_SIGMA = 1e-3  # v is a bell curve no narrower than this, so that its square cannot vanish


@dataclass(eq=False, repr=False)
class GRLearned(GR):
    """GR that learns w, b, mu and sigma per class, from the start values of `gr`.

    Args:
        lr_scale: Relative learning rate of the curves.

    Raises:
        ValueError: A value is invalid.
    """

    name = "gr_learned"
    title = "Generalized robust loss, learned curves"
    yardstick = True
    open_points = (
        "The paper says that the curves are trained by gradient descent, and no more. Its code has SGD with a rate of "
        "0.1 and momentum 0.9 for them, and stops with an error; here the network's optimiser trains them.",
    )

    lr_scale: float = 10.0

    def __post_init__(self):
        """Validate the constants."""
        super().__post_init__()
        check_positive(lr_scale=self.lr_scale)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start with initial curves per class."""
        super().begin(labels, mask, epochs, generator)
        starts = (self.w_start, self.b_start, self.mu_start, self.sigma_start)
        self.curves = [
            torch.full((labels.shape[1],), start, device=labels.device, requires_grad=True) for start in starts
        ]

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return both curves' parameters."""
        return [{"params": self.curves, "lr_scale": self.lr_scale}]

    def begin_epoch(self, epoch: int) -> None:
        """Do nothing, without a schedule."""

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the batch loss with current curves."""
        w, b, mu, sigma = self.curves
        function: Any = self.loss_function
        function.w, function.b, function.mu, function.sigma = w, b, mu, sigma.clamp(min=MIN_SIGMA)
        return super().loss(logits, rows)
