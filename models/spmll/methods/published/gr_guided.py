"""Generalized robust loss with outside guesses, shared by gr_names.py and gr_prototypes.py."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import check_fractions, check_non_negative
from spmll.losses.generalized_robust_guided import GeneralizedRobustGuided
from spmll.methods.published.gr import GR

GUESS_EPS = 1e-3  # how near a guess may be to 0 and 1, which would be unseen, and a person's word


@dataclass(eq=False, repr=False)
class GRGuided(GR):
    """GR whose soft labels of unseen cells partly follow evidence.

    Args:
        trust: Weight of a guess against k(p).
        sharpness: Power that turns evidence into a guess.

    Raises:
        ValueError: A value is invalid.
    """

    published = {}  # noqa: RUF012 - read only
    q1: float = field(default=0.0, init=False)
    trust: float = 0.5
    sharpness: float = 1.0
    loss_function: GeneralizedRobustGuided = field(init=False)

    def __post_init__(self):
        """Validate the constants."""
        super().__post_init__()
        check_fractions(trust=self.trust)
        check_non_negative(sharpness=self.sharpness)

    def criterion(self) -> GeneralizedRobustGuided:
        """Return the loss with initial curves."""
        curves = (self.w_start, self.b_start, self.mu_start, self.sigma_start)
        return GeneralizedRobustGuided(*curves, self.q2, self.q3, self.trust, self.eps)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start, writing guesses into unseen cells with evidence."""
        super().begin(labels, mask, epochs, generator)
        if self.evidence is None:
            return
        guess = -(self.evidence.to(self.targets.dtype) ** self.sharpness).clamp(GUESS_EPS, 1 - GUESS_EPS)
        self.targets = torch.where((self.targets == UNSEEN) & ~guess.isnan(), guess, self.targets)
