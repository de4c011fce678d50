"""Vision-language pseudo-labels: cells with high text-image scores count as present, permanently."""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import check_fractions, check_non_negative
from spmll.losses.entropy_maximization import EntropyMaximization
from spmll.methods.base import Method, search_grid
from spmll.methods.training_recipes import TrainingRecipe, recipes_by_set


class VLPL(Method):
    """Entropy maximization with text-image pseudo-labels, published defaults for VOC.

    COCO and NUS-WIDE have alpha .1, CUB .01.
    """

    name = "vlpl"
    title = "Vision-language pseudo-labels"
    paper = "Xing et al., Vision-Language Pseudo-Labels for Single-Positive Multi-Label Learning, CVPRW"
    year = 2024
    url = "https://arxiv.org/abs/2310.15985"
    assumes = "What nobody marked is unknown, except where a text-image network is sure of the name of the class."
    threshold = 0.7  # as for em, whose loss it is
    needs = ("text",)
    tunable = search_grid(alpha=(0.01, 0.1, 0.2, 0.5), beta=(0.2, 0.7, 1.0), sure=(0.2, 0.3, 0.5))
    published = recipes_by_set(
        voc=TrainingRecipe(1e-5, 8, 10),
        coco=TrainingRecipe(1e-5, 8, 10, {"alpha": 0.1}),
        nus=TrainingRecipe(1e-5, 8, 10, {"alpha": 0.1}),
        cub=TrainingRecipe(1e-4, 8, 10, {"alpha": 0.01}),
    )
    reproduced = (
        "no: the figures of the paper are of whole networks with pseudo-labels of CLIP ViT-L/14 at 336 pixels, "
        "which were not trained here"
    )
    open_points = (
        "The formulas are those of the published code (MIT licence); of the paper only the beginning was at hand.",
        "The code takes the softmax over classes of CLIP's similarities at temperature 0.01. Here the guesses from "
        "names of the project are taken (docs/backbones.md), which say of each class by itself how probable it is.",
        "The paper speaks of negative pseudo-labels, too. With the settings of its code there are none, nor are "
        "there here.",
    )

    def __init__(
        self, alpha: float = 0.2, beta: float = 0.7, sure: float = 0.3, softness: float = 0.1, eps: float = 1e-5
    ):
        """Store the weights and the threshold.

        Args:
            alpha: Weight of unseen cells.
            beta: Weight of pseudo-labels.
            sure: Lowest text-image score that becomes a pseudo-label.
            softness: Probability of absence that a pseudo-label keeps.
            eps: Added inside logarithms.
        """
        check_non_negative(alpha=alpha, beta=beta, eps=eps)
        check_fractions(sure=sure, softness=softness)
        self.alpha, self.beta, self.sure, self.softness = alpha, beta, sure, softness
        self.eps = eps

    def criterion(self) -> EntropyMaximization:
        return EntropyMaximization(self.alpha, self.beta, self.eps)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training, and write pseudo-labels into unseen cells with a text-image score."""
        super().begin(labels, mask, epochs, generator)
        if self.evidence is None:
            return
        guessed = (self.targets == UNSEEN) & (self.evidence > self.sure)
        # Below 1: exactly -1 would mean a person's answer.
        self.targets[guessed] = -min(1 - self.softness, 1 - 1e-6)
