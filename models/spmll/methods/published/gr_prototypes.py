"""Generalized robust loss with prototypes: similarity to marked images suggests a class.

People mark salient classes, so marked images are good examples. After the abstract of PiSA (see
`open_points`).
"""

from dataclasses import dataclass

from spmll.methods.base import search_grid
from spmll.methods.published.gr_guided import GRGuided


@dataclass(eq=False, repr=False)
class GRPrototypes(GRGuided):
    """GR whose soft labels partly follow prototype scores (spmll/linear/prototypes.py).

    Classes with fewer than five marked images use `gr`, as do all without a frozen network.

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
