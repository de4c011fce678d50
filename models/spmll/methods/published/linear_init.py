"""Two stages: the classifier on a frozen backbone, then the network (Cole et al. 2021, sec. 6.1).

finetune/linear_start.py trains the classifier before methods without such a stage.
"""

from dataclasses import replace

import torch
from torch import Tensor

from spmll.losses.assume_negative import AssumeNegativeSmoothed
from spmll.losses.base import check_fractions
from spmll.methods.base import Method
from spmll.methods.published.loss_only import ANLS
from spmll.methods.published.role import ROLE, inverse_sigmoid
from spmll.methods.training_recipes import BENCHMARK_SETS, recipes_by_set


class LinearInit(Method):
    """Base of methods that train the classifier on a frozen backbone, then restart the optimizer for all.

    Attributes:
        linear: Share of frozen epochs.
    """

    linear: float

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training, and compute the first epoch of stage 2, in which the whole network is trained."""
        super().begin(labels, mask, epochs, generator)
        self.second = 1 + round(self.linear * epochs)

    def freezes_backbone(self, epoch: int) -> bool:
        """Return whether this epoch trains only the classifier (stage 1)."""
        return epoch < self.second

    def restarts_optimizer(self, epoch: int) -> bool:
        """Return whether stage 2 starts in this epoch, unless that is epoch 1."""
        return 1 < epoch == self.second


class ANLSLinearInit(LinearInit):
    """Smoothed assume-negative in two stages: 25 epochs with a frozen backbone, then 10 of the whole network.

    10 is the number in the code of the tables, 5 that in the paper. The optimizer restarts.
    """

    name = "an_ls+linear_init"
    title = "Assume negative, label smoothing, linear initialisation"
    paper = ANLS.paper
    year = ANLS.year
    url = ANLS.url
    assumes = ANLS.assumes
    threshold = ANLS.threshold
    yardstick = True
    published = recipes_by_set(
        *(
            replace(ANLS.published[name], epochs=35, linear_lr=1e-4, linear_batch=16 if name == "nus" else 8)
            for name in BENCHMARK_SETS
        )
    )

    def __init__(
        self,
        positive: float = 0.1,
        negative: float = 0.1,
        linear: float = 25 / 35,
        form: str = "code",
        eps: float = 1e-5,
    ):
        """Store the constants. `linear` is the share of frozen epochs."""
        check_fractions(linear=linear)
        self.positive, self.negative, self.linear = positive, negative, linear
        self.form, self.eps = form, eps
        self.criterion()  # what makes no sense is refused now, not at the first training

    def criterion(self) -> AssumeNegativeSmoothed:
        return AssumeNegativeSmoothed(self.positive, self.negative, self.form, self.eps)


class ROLELinearInit(LinearInit, ROLE):
    """ROLE with 25 frozen epochs, then 10 of the whole network as in the code (5 in the paper).

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
        """Clamp the label estimates when stage 2 starts."""
        if self.restarts_optimizer(epoch):
            self.phi.copy_(inverse_sigmoid(torch.sigmoid(self.phi)))
