"""Generalized robust loss with guesses from elsewhere: the common part of gr_names.py and gr_prototypes.py."""

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
    """GR in which the soft label of an unseen cell with evidence is in part that evidence.

    Args:
        trust: Weight of a guess against k(p), the network's own share.
        sharpness: The power to which the evidence is raised to give the guess.
        q1: None; its loss takes 0.

    The others are those of `gr`.

    Raises:
        ValueError: As in `gr`; also if trust is not between 0 and 1 or sharpness is negative.
    """

    published = {}  # noqa: RUF012 - read only
    q1: float = field(default=0.0, init=False)
    trust: float = 0.5
    sharpness: float = 1.0
    loss_function: GeneralizedRobustGuided = field(init=False)

    def __post_init__(self):
        """Refuse what GR refuses, and a trust or sharpness outside its range."""
        super().__post_init__()
        check_fractions(trust=self.trust)
        check_non_negative(sharpness=self.sharpness)

    def criterion(self) -> GeneralizedRobustGuided:
        """Return the loss with the start parameters of both curves."""
        curves = (self.w_start, self.b_start, self.mu_start, self.sigma_start)
        return GeneralizedRobustGuided(*curves, self.q2, self.q3, self.trust, self.eps)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start as Method does, and write the guesses into unseen cells with evidence."""
        super().begin(labels, mask, epochs, generator)
        if self.evidence is None:
            return
        guess = -(self.evidence.to(self.targets.dtype) ** self.sharpness).clamp(GUESS_EPS, 1 - GUESS_EPS)
        self.targets = torch.where((self.targets == UNSEEN) & ~guess.isnan(), guess, self.targets)
