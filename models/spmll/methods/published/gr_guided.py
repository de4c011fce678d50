"""Generalized robust loss with outside guesses: from class names or similarity to marked images.

Both follow the abstract of a paper only (AEVLP, PiSA), as `open_points` says.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import check_fractions, check_non_negative
from spmll.losses.generalized_robust import GeneralizedRobustGuided
from spmll.methods.base import search_grid
from spmll.methods.published.gr import GR

GUESS_EPS = 1e-3  # how near a guess may be to 0 and 1, which would be unseen, and a person's word


@dataclass(eq=False, repr=False)
class GRGuided(GR):
    """GR whose soft labels of unseen cells partly follow guesses from elsewhere (Method.evidence).

    Args:
        trust: Weight of a guess against k(p).
        sharpness: Power that turns Method.evidence into a guess.

    Raises:
        ValueError: A value is invalid.
    """

    published = {}  # noqa: RUF012 - read only
    q1: float = field(default=0.0, init=False)
    trust: float = 0.5
    sharpness: float = 1.0
    loss_function: GeneralizedRobustGuided = field(init=False)

    def __post_init__(self):
        super().__post_init__()
        check_fractions(trust=self.trust)
        check_non_negative(sharpness=self.sharpness)

    def criterion(self) -> GeneralizedRobustGuided:
        curves = (self.w_start, self.b_start, self.mu_start, self.sigma_start)
        return GeneralizedRobustGuided(*curves, self.q2, self.q3, self.trust, self.eps)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training, and write the available guesses into unseen cells."""
        super().begin(labels, mask, epochs, generator)
        if self.evidence is None:
            return
        guess = -(self.evidence.to(self.targets.dtype) ** self.sharpness).clamp(GUESS_EPS, 1 - GUESS_EPS)
        self.targets = torch.where((self.targets == UNSEEN) & ~guess.isnan(), guess, self.targets)


class GRNames(GRGuided):
    """GR whose soft labels partly follow text-image scores of class names (after AEVLP). Without scores it is `gr`."""

    name = "gr+names"
    title = "Generalized robust loss + guesses from names"
    paper = (
        "After the abstract of Tran et al., More Reliable Pseudo-labels, Better Performance: A Generalized Approach to "
        "Single Positive Multi-label Learning, ICCV"
    )
    year = 2025
    url = "https://arxiv.org/abs/2508.20381"
    assumes = "What nobody marked is what a text-image network and the network in training come to believe of it."
    needs = ("text",)
    tunable = search_grid(trust=(0.1, 0.25, 0.5, 0.75, 1.0), w=(2.0, 5.0, 10.0), b=(-8.0, -5.0, -2.0))
    reproduced = "no: only the abstract of the paper (AEVLP) was at hand, so this is not its method"
    open_points = (
        "The formula of the GPR loss was not at hand: by the abstract it learns from diverse pseudo-labels and "
        "mitigates their noise. Here a guess takes part in the soft label of the generalized robust loss, with "
        "weight trust = 0.5, a choice.",
        "How DAMP makes pseudo-labels was not at hand: by its name they are dynamic, and of several views of an "
        "image. Here the guesses from names of the project are taken (docs/backbones.md), of the whole image and "
        "its best patch, made once.",
        "Schedules and constants of the curves are those of gr.",
    )


@dataclass(eq=False, repr=False)
class GRPrototypes(GRGuided):
    """GR whose soft labels partly follow prototype scores (spmll/linear/prototypes.py).

    People mark salient classes, so marked images are good examples (after PiSA). Classes with fewer than five
    marked images use `gr`, as do all without a frozen network.

    Args:
        trust: Weight of prototypes against k(p).
        sharpness: Power of the p-value.
    """

    name = "gr+prototypes"
    title = "Generalized robust loss + prototypes"
    paper = (
        "After the abstract of One Coin Has Two Sides: Single Positive Multi Label Learning from Salient Annotations, "
        "ICML"
    )
    year = 2026
    url = "https://icml.cc/virtual/2026/poster/64609"
    assumes = (
        "What nobody marked is what the network comes to believe, the more so the more the image is like marked ones."
    )
    needs = ("prototypes",)
    tunable = search_grid(trust=(0.05, 0.1, 0.2), sharpness=(2.0, 4.0, 8.0))
    reproduced = "no: only the abstract of the paper (PiSA) was at hand, so this is not its method"
    open_points = (
        "How PiSA makes prototypes is open: here the mean of the marked images, in the features of the frozen "
        "network, centred and of length 1.",
        "How PiSA rejects false negatives by them is open. Here the share of the marked images that are less alike "
        "to the prototype of the others than this image is to that of all, raised to the power of 4, takes part in "
        "the soft label of the generalized robust loss, with weight trust = 0.05. To leave such cells out instead "
        "was worse in most of what was tried.",
        "How prototypes guide the learning of the embedding is open, and left out: the network is frozen.",
    )
    trust: float = 0.05
    sharpness: float = 4.0
