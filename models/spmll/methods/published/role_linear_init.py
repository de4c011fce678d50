"""ROLE, first on a frozen backbone, then the whole network."""

from dataclasses import replace

import torch

from spmll.losses.base import check_fractions
from spmll.methods.published.linear_init import LinearInit
from spmll.methods.published.role import ROLE, inverse_sigmoid
from spmll.methods.training_recipes import BENCHMARK_SETS, recipes_by_set


class ROLELinearInit(LinearInit, ROLE):
    """ROLE with 25 frozen epochs, then 10 of the whole network (code, paper 5).

    Stage 2 has a new optimizer, and classifier and clamped estimates of the best validation epoch, else the last.
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
        """Store the constants. `linear` is the share of frozen epochs."""
        super().__init__(k, strength, lr_scale, form, eps)
        check_fractions(linear=linear)
        self.linear = linear

    @torch.no_grad()
    def begin_epoch(self, epoch: int) -> None:
        """Clamp the estimates as stage 2 starts."""
        if self.restarts_optimizer(epoch):
            self.phi.copy_(inverse_sigmoid(torch.sigmoid(self.phi)))
