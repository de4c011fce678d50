"""Generalized robust loss with guesses from class names, after AEVLP's abstract (`open_points`)."""

from spmll.methods.base import search_grid
from spmll.methods.published.gr_guided import GRGuided


class GRNames(GRGuided):
    """GR whose soft labels partly follow class name scores, without which it is `gr`."""

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
