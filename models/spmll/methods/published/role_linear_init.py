"""ROLE in two stages: first the classifier alone on a frozen backbone, then the whole network."""

from dataclasses import replace

import torch

from spmll.losses.base import check_fractions
from spmll.methods.published.linear_init import LinearInit
from spmll.methods.published.role import ROLE, inverse_sigmoid
from spmll.methods.training_recipes import BENCHMARK_SETS, recipes_by_set


class ROLELinearInit(LinearInit, ROLE):
    """ROLE with 25 epochs on a frozen backbone, then 10 of the whole network ("LinearInit.", sec. 6.1).

    The paper has 5 of the whole network; the code made the tables. The second stage starts with a fresh optimiser, and
    with classifier and estimates of the best epoch on fully labelled validation images, the estimates clamped to
    between 1e-5 and 1 - 1e-5; without such images both are of the last epoch.
    """

    name = "role+linear_init"
    title = "Regularized online label estimation, linear initialisation"
    published = recipes_by_set(
        *(
            replace(ROLE.published[name], epochs=35, linear_lr=1e-3, linear_batch=8 if name == "cub" else 16)
            for name in BENCHMARK_SETS
        )
    )

    def __init__(
        self,
        k: float = 1.5,
        strength: float = 1.0,
        lr_scale: float = 10.0,
        linear: float = 25 / 35,
        form: str = "code",
        eps: float = 1e-5,
    ):
        """Store linear, the share of the epochs with a frozen backbone; the others are as in ROLE.

        Raises:
            ValueError: The form is unknown, or a number is outside its range.
        """
        super().__init__(k, strength, lr_scale, form, eps)
        check_fractions(linear=linear)
        self.linear = linear

    @torch.no_grad()
    def begin_epoch(self, epoch: int) -> None:
        """Clamp the estimates when the second stage begins."""
        if self.restarts_optimizer(epoch):
            self.phi.copy_(inverse_sigmoid(torch.sigmoid(self.phi)))
