"""Regularized online label estimation: estimates of all labels are learned together with the network.

Every cell has an estimate of its own, a logit phi in a table with one row an image. Network and estimates each learn
from the other as if it were the truth, both must agree with the labels, and both must expect k classes an image, which
rules out trivial agreement.

Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021, sec. 5.4,
https://arxiv.org/abs/2106.09708
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
    """Online label estimation. The defaults are the published ones for PASCAL VOC; k matters most.

    k is the expected number of classes an image. The authors counted it on fully labelled images: VOC 1.5, COCO 2.9,
    NUS-WIDE 1.9, CUB 31.4. In a project nobody knows k, so it is a number to set.
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
        """Store the constants and the form of the average.

        Args:
            k: How many classes an image shows on average.
            strength: Weight of the two penalties for expecting another number (1 in the code; the paper gives none).
            lr_scale: Learning rate of the estimates, as a multiple of the network's.
            form: "code": the loss of marked cells is divided by images x classes, like everything else; "paper": by
                images only, so they weigh C times as much. The published tables were made by the code.
            eps: Added inside every logarithm (published code: 1e-5).

        Raises:
            ValueError: The form is unknown, or a number is outside its range.
        """
        check_positive(k=k, lr_scale=lr_scale)
        check_non_negative(strength=strength, eps=eps)
        self.k, self.strength, self.lr_scale = k, strength, lr_scale
        self.form = check_choice("form", form, LOSS_FORMS)
        self.eps = eps

    def criterion(self) -> AssumeNegative:
        """Return the loss of a network without estimates; `loss` needs the estimates and does not use this one."""
        return AssumeNegative(self.eps)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start as Method does, and make the first estimates."""
        super().begin(labels, mask, epochs, generator)
        self.phi = draw_initial_estimates(labels, generator).requires_grad_()

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the estimates, one dense table: Adam's momentum moves rows that are not in the batch, too."""
        return [{"params": [self.phi], "lr_scale": self.lr_scale}]

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the joint loss of network and estimates."""
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
    """Return the joint loss of network and estimates of a batch, as a scalar.

    Args:
        logits: (B, C) float, of the network.
        phi: (B, C) float, logits of the estimates for the same images.
        labels: (B, C), 1 present, -1 absent, 0 not looked at.
        mask: (B, C) bool, True where a cell may be used; None: all.
        k: Expected classes an image.
        strength: As in `ROLE`.
        eps: As in `ROLE`.
        form: As in `ROLE`.

    Half of: the mean over cells of each side's cross-entropy towards the other, taken as a constant, plus the negative
    log-likelihood of the labels under both; plus `strength` times ((classes an image - k) / C)^2 of both. Confirmed
    absence, which the paper does not have, counts like presence.

    Source: Cole et al. 2021, sec. 5.4: the mean of L' (eq. 11) with its arguments in both orders.
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
    """Return the initial estimates: (N, C) logits.

    A marked cell begins at probability 0.995, a confirmed absence at 0.005, every other cell at random between 0.4 and
    0.6 (uniform in logits, as in the published code). `generator` must be on the CPU.
    """
    sure, bound = float(inverse_sigmoid(SEEN_START)), float(inverse_sigmoid(UNSEEN_BOUND))
    start = (2 * torch.rand(labels.shape, generator=generator, dtype=dtype) - 1).mul_(bound).to(labels.device)
    start[labels >= PRESENT] = sure
    start[labels <= ABSENT] = -sure
    return start


def inverse_sigmoid(p: Tensor | float) -> Tensor:
    """Return the logit of a probability, which is first clamped to between 1e-5 and 1 - 1e-5."""
    p = p if isinstance(p, Tensor) else torch.tensor(p, dtype=torch.float64)
    p = p.clamp(ESTIMATE_EPS, 1 - ESTIMATE_EPS)
    return torch.log(p / (1 - p))
