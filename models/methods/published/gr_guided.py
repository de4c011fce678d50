"""Generalized robust loss with guesses from elsewhere: the common part of gr_names.py and gr_prototypes.py."""

import torch
from torch import Tensor

from models.labels import UNSEEN
from models.losses.base import at_least_zero, shares
from models.losses.generalized_robust_guided import GeneralizedRobustGuided
from models.methods.end_to_end import EndToEnd
from models.methods.published.gr import GR

SUREST = 1e-3  # how near a guess may be to 0 and 1, which would be unseen, and a person's word


class GRGuided(GR):
    """GR in which the soft label of an unseen cell with evidence is in part that evidence."""

    published: dict[str, EndToEnd] = {}  # noqa: RUF012 - read only
    loss_function: GeneralizedRobustGuided

    def __init__(
        self,
        w: float = 2.0,
        b: float = -2.0,
        mu: float = 0.8,
        sigma: float = 0.5,
        w_start: float = 0.0,
        b_start: float = -2.0,
        mu_start: float = 0.5,
        sigma_start: float = 2.0,
        q2: float = 0.01,
        q3: float = 1.0,
        trust: float = 0.5,
        sharpness: float = 1.0,
        eps: float = 1e-7,
        schedule: str = "code",
    ):
        """Store trust and sharpness, and the constants of `gr`.

        Args:
            trust: Weight of a guess against k(p), the network's own share.
            sharpness: The power to which the evidence is raised to give the guess.

        Raises:
            ValueError: As in `gr`; also if trust is not between 0 and 1 or sharpness is negative.
        """
        super().__init__(w, b, mu, sigma, w_start, b_start, mu_start, sigma_start, 0.0, q2, q3, eps, schedule)
        shares(trust=trust)
        at_least_zero(sharpness=sharpness)
        self.trust, self.sharpness = trust, sharpness

    def criterion(self) -> GeneralizedRobustGuided:
        """Return the loss with the start parameters of both curves."""
        curves = (self.w_start, self.b_start, self.mu_start, self.sigma_start)
        return GeneralizedRobustGuided(*curves, self.q2, self.q3, self.trust, self.eps)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start as Method does, and write the guesses into unseen cells with evidence."""
        super().begin(labels, mask, epochs, generator)
        if self.evidence is None:
            return
        guess = -(self.evidence.to(self.targets.dtype) ** self.sharpness).clamp(SUREST, 1 - SUREST)
        self.targets = torch.where((self.targets == UNSEEN) & ~guess.isnan(), guess, self.targets)
