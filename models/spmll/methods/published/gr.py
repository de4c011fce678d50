"""Generalized robust loss: unseen cells start as weak negatives and follow predictions (eq. 9 to 13).

`gr_learned` is an ablation that the paper advises against. Chen et al., IJCAI 2024, https://arxiv.org/abs/2405.03501
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from spmll.losses.base import check_finite, check_non_negative, unknown_name_error
from spmll.losses.generalized_robust import GeneralizedRobust
from spmll.methods.base import Method, check_positive, has_fallen_behind, search_grid
from spmll.methods.training_recipes import TrainingRecipe, recipes_by_set

SCHEDULES = ("code", "paper")


@dataclass(eq=False, repr=False)
class GR(Method):
    """Generalized robust loss whose curves move during training, with published defaults for VOC.

    COCO, NUS-WIDE and CUB end at w 10, b -8, CUB with q3 1.5.

    Args:
        w, b, mu, sigma: Final constants of the curves k(p) and v(p).
        w_start, b_start, mu_start, sigma_start: Their initial constants.
        schedule: "code": in epoch e of T, w and b have moved by (e - 1) / T, mu and sigma by e / T. "paper": all
            by e / T.
    """

    name = "gr"
    title = "Generalized robust loss"
    paper = "Chen et al., Boosting Single Positive Multi-label Classification with Generalized Robust Loss, IJCAI"
    year = 2024
    url = "https://arxiv.org/abs/2405.03501"
    assumes = "What nobody marked is mostly absent, except where the network is coming to believe otherwise."
    threshold = 0.5
    tunable = search_grid(w=(2.0, 5.0, 10.0), b=(-8.0, -5.0, -2.0), q3=(0.7, 1.0, 1.5))
    published = recipes_by_set(
        voc=TrainingRecipe(1e-5, 8, 8, head_lr_scale=10),
        coco=TrainingRecipe(1e-5, 16, 8, {"w": 10.0, "b": -8.0}, head_lr_scale=10),
        nus=TrainingRecipe(1e-5, 16, 10, {"w": 10.0, "b": -8.0}, head_lr_scale=10),
        cub=TrainingRecipe(5e-5, 8, 10, {"w": 10.0, "b": -8.0, "q3": 1.5}, head_lr_scale=10),
    )

    w: float = 2.0
    b: float = -2.0
    mu: float = 0.8
    sigma: float = 0.5
    w_start: float = 0.0
    b_start: float = -2.0
    mu_start: float = 0.5
    sigma_start: float = 2.0
    q1: float = 0.0
    q2: float = 0.01
    q3: float = 1.0
    eps: float = 1e-7
    schedule: str = "code"
    loss_function: GeneralizedRobust = field(init=False)

    def __post_init__(self):
        check_non_negative(q1=self.q1, q2=self.q2, q3=self.q3, eps=self.eps)
        check_finite(w=self.w, b=self.b, mu=self.mu, w_start=self.w_start, b_start=self.b_start, mu_start=self.mu_start)
        if self.schedule not in SCHEDULES:
            raise unknown_name_error("schedule", self.schedule, SCHEDULES)
        if not (self.sigma > 0 and self.sigma_start > 0):
            raise ValueError(f"sigma = {self.sigma} and sigma_start = {self.sigma_start} must both be positive.")

    def criterion(self) -> GeneralizedRobust:
        """Return the loss with the initial constants of its curves k(p) and v(p)."""
        return GeneralizedRobust(
            self.w_start, self.b_start, self.mu_start, self.sigma_start, self.q1, self.q2, self.q3, self.eps
        )

    def should_stop_early(self, scores: list[float]) -> bool:
        """Return whether the last validation score (mAP) is over 2 points below the best."""
        return has_fallen_behind(scores, 2)

    def begin_epoch(self, epoch: int) -> None:
        """Move the constants of the curves k(p) and v(p) to this epoch's values."""
        way_of_v = epoch / self.total_epochs
        way_of_k = way_of_v if self.schedule == "paper" else (epoch - 1) / self.total_epochs
        curves = self.loss_function
        curves.w = self.w_start + way_of_k * (self.w - self.w_start)
        curves.b = self.b_start + way_of_k * (self.b - self.b_start)
        curves.mu = self.mu_start + way_of_v * (self.mu - self.mu_start)
        curves.sigma = self.sigma_start + way_of_v * (self.sigma - self.sigma_start)


MIN_SIGMA = 1e-3  # v is a bell curve no narrower than this, so that its square cannot vanish


@dataclass(eq=False, repr=False)
class GRLearned(GR):
    """An ablation of GR that learns w, b, mu and sigma per class, starting from the initial values of `gr`.

    Args:
        lr_scale: Learning rate of the curves, relative to the network's.

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
        super().__post_init__()
        check_positive(lr_scale=self.lr_scale)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training, with the initial constants of the curves for every class."""
        super().begin(labels, mask, epochs, generator)
        starts = (self.w_start, self.b_start, self.mu_start, self.sigma_start)
        self.curves = [
            torch.full((labels.shape[1],), start, device=labels.device, requires_grad=True) for start in starts
        ]

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the constants of both curves, which are trained."""
        return [{"params": self.curves, "lr_scale": self.lr_scale}]

    def begin_epoch(self, epoch: int) -> None:
        """Do nothing, because the curves are learned and follow no schedule."""

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch with the present constants of the curves."""
        w, b, mu, sigma = self.curves
        function: Any = self.loss_function
        function.w, function.b, function.mu, function.sigma = w, b, mu, sigma.clamp(min=MIN_SIGMA)
        return super().loss(logits, rows)
