"""Regularized online label estimation: label estimates are learned together with the network.

Network and estimates (a logit phi per cell) learn from each other, agree with labels, and expect k classes
per image. Cole et al., CVPR 2021, sec. 5.4, https://arxiv.org/abs/2106.09708
"""

from typing import Any

import torch
from torch import Tensor

from spmll.labels import ABSENT, PRESENT
from spmll.losses.assume_negative import AssumeNegative
from spmll.losses.base import LOSS_FORMS, check_choice, check_non_negative, negative_log_sigmoid
from spmll.losses.expected_positive_regularization import expected_count_penalty
from spmll.methods.base import Method, check_positive, search_grid
from spmll.methods.training_recipes import cole_protocol

ESTIMATE_EPS = 1e-5  # how near to 0 and 1 an estimate may begin
# where the estimates of seen cells begin, and the bound of the others (and 1 - UNSEEN_BOUND)
SEEN_START, UNSEEN_BOUND = (0.995, 0.6)


class ROLE(Method):
    """Online label estimation, with published defaults for VOC.

    k was counted: VOC 1.5, COCO 2.9, NUS-WIDE 1.9, CUB 31.4. Projects must set it.
    """

    name = "role"
    title = "Regularized online label estimation"
    paper = "Cole et al., Multi-Label Learning from Single Positive Labels, CVPR"
    year = 2021
    url = "https://arxiv.org/abs/2106.09708"
    assumes = "What nobody marked is what network and estimates come to agree on, k classes an image in all."
    threshold = 0.5
    tunable = search_grid(k=(1.2, 1.5, 2.0, 3.0, 5.0), strength=(0.3, 1.0, 3.0))
    published = cole_protocol(k=(1.5, 2.9, 1.9, 31.4))

    def __init__(
        self, k: float = 1.5, strength: float = 1.0, lr_scale: float = 10.0, form: str = "code", eps: float = 1e-5
    ):
        """Store the constants.

        Args:
            k: Expected number of present classes per image.
            strength: Weight of both penalties.
            lr_scale: Learning rate of the label estimates, relative to the network's.
            form: "code" (published tables) divides the loss of marked cells by images x classes, "paper" by images.
            eps: Added inside logarithms.
        """
        check_positive(k=k, lr_scale=lr_scale)
        check_non_negative(strength=strength, eps=eps)
        self.k, self.strength, self.lr_scale = k, strength, lr_scale
        self.form = check_choice("form", form, LOSS_FORMS)
        self.eps = eps

    def criterion(self) -> AssumeNegative:
        """Return the assume-negative loss, which is unused: ROLE.loss computes its own."""
        return AssumeNegative(self.eps)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training with initial label estimates."""
        super().begin(labels, mask, epochs, generator)
        self.phi = draw_initial_estimates(labels, generator).requires_grad_()

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the label estimates, which the optimizer trains as a dense table whose rows all move by momentum."""
        return [{"params": [self.phi], "lr_scale": self.lr_scale}]

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the joint loss of network and label estimates for a batch."""
        return role_loss(
            logits,
            self.phi.index_select(0, rows),
            self.targets[rows],
            None if self.mask is None else self.mask[rows],
            k=min(self.k, logits.shape[1]),  # more classes than there are cannot be expected
            strength=self.strength,
            eps=self.eps,
            form=self.form,
        )


def role_loss(
    logits: Tensor,
    phi: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: float,
    strength: float = 1.0,
    eps: float = 1e-5,
    form: str = "code",
) -> Tensor:
    """Return the joint loss of network and estimates, a scalar (Cole et al. 2021, eq. 11).

    Half of: each side's cross-entropy towards the other as a constant, the labels' negative log-likelihood under
    both, and `strength` times ((classes per image - k) / C)^2 of both. Confirmed absence counts like presence.

    Args:
        logits: (B, C).
        phi: (B, C), logits of estimates.
        labels: (B, C), 1 present, -1 absent, 0 unseen.
        mask: (B, C) bool, usable cells.
    """
    logits, phi = (x.float() if x.dtype in (torch.float16, torch.bfloat16) else x for x in (logits, phi))
    use = torch.ones_like(logits, dtype=torch.bool) if mask is None else mask
    weight = labels.shape[1] if form == "paper" else 1
    (p, present, absent), (guess, guess_present, guess_absent) = (
        (torch.sigmoid(x), negative_log_sigmoid(x, eps), negative_log_sigmoid(-x, eps)) for x in (logits, phi)
    )
    towards_guess = guess.detach() * present + (1 - guess.detach()) * absent
    towards_network = p.detach() * guess_present + (1 - p.detach()) * guess_absent
    known = torch.where(labels >= PRESENT, present + guess_present, 0)
    known = torch.where(labels <= ABSENT, absent + guess_absent, known)
    cells = torch.where(use, towards_guess + towards_network + weight * known, 0).sum() / use.sum().clamp(min=1)
    return 0.5 * (cells + strength * (expected_count_penalty(p, k, mask) + expected_count_penalty(guess, k, mask)))


def draw_initial_estimates(labels: Tensor, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return initial estimates, (N, C) logits.

    Marked cells start at 0.995, confirmed absences at 0.005, others randomly in [0.4, 0.6].
    """
    sure, bound = float(inverse_sigmoid(SEEN_START)), float(inverse_sigmoid(UNSEEN_BOUND))
    start = (2 * torch.rand(labels.shape, generator=generator, dtype=dtype) - 1).mul_(bound).to(labels.device)
    start[labels >= PRESENT] = sure
    start[labels <= ABSENT] = -sure
    return start


def inverse_sigmoid(p: Tensor | float) -> Tensor:
    """Return the logit of a probability clamped to [1e-5, 1 - 1e-5]."""
    p = p if isinstance(p, Tensor) else torch.tensor(p, dtype=torch.float64)
    p = p.clamp(ESTIMATE_EPS, 1 - ESTIMATE_EPS)
    return torch.log(p / (1 - p))
