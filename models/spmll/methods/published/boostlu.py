"""BoostLU: positive class scores at each place are multiplied, in training and prediction.

With missing labels a network looks at the right places, but with lower scores. Unseen cells use
assume-negative or a scheme of large loss.
"""

import torch
from torch import Tensor, nn

from spmll.labels import PRESENT
from spmll.losses.assume_negative import AssumeNegative
from spmll.losses.base import check_choice
from spmll.methods.base import Method, search_grid
from spmll.methods.published.large_loss import count_rejections, large_loss
from spmll.methods.training_recipes import TrainingRecipe, recipes_by_set

REJECTION_SCHEMES = ("an", "ll_r", "ll_ct", "ll_cp")


class BoostedMap(nn.Module):
    """A network from feature maps (B, K, h, w) to logits (B, C): the mean of boosted scores over positions."""

    def __init__(self, channels: int, classes: int, alpha: float):
        """Build the classifier with weights of 0, since random ones would remain as noise."""
        super().__init__()
        self.classifier = nn.Conv2d(channels, classes, 1)
        for parameter in self.classifier.parameters():
            nn.init.zeros_(parameter)
        self.alpha = alpha

    def forward(self, maps: Tensor) -> Tensor:
        return boost_positive_scores(self.classifier(maps), self.alpha).mean((2, 3))


def boost_positive_scores(scores: Tensor, alpha: float) -> Tensor:
    """Return max(x, alpha x), which multiplies positive scores by alpha >= 1 (Kim et al. 2023)."""
    return torch.where(scores > 0, alpha * scores, scores)


class BoostLU(Method):
    """Assume negative or large loss on boosted maps, with the published alpha 5."""

    name = "boostlu"
    title = "Boosted class activation maps"
    paper = (
        "Kim et al., Bridging the Gap between Model Explanations in Partially Annotated Multi-label Classification, "
        "CVPR"
    )
    year = 2023
    url = "https://arxiv.org/abs/2304.01804"
    assumes = "What nobody marked is absent, unless it fits that worst; what speaks for a class counts several times."
    threshold = 0.2
    # On the photos of animals with one click each: at 5e-3 single clicks are memorised (hidden AP 0.53 for 0.57).
    lr = 2e-3
    reads = "maps"
    open_points = (
        "Which delta of large loss goes with boosted maps, and which optimiser and batch, is not in the text at hand; "
        "they are those of large loss.",
        "Whether the classifier has a bias, and whether it is boosted, is not in the text at hand; here it is part of "
        "the map, so that without boosting the logits are those of a linear classifier on pooled features.",
        "The network is a frozen backbone's map and a 1x1 convolution; the authors train the backbone, too.",
    )
    tunable = search_grid(alpha=(2.0, 5.0, 10.0), scheme=REJECTION_SCHEMES, delta=(0.1, 0.2, 0.4))
    # alpha, learning rate and epochs are in the README of the authors, the same for all sets; batch and delta are those
    # of large loss. The classifier of a network that ends in a map has no learning rate of its own here.
    published = recipes_by_set(
        voc=TrainingRecipe(1e-5, 16, 10, {"delta": 0.2}),
        coco=TrainingRecipe(1e-5, 16, 10, {"delta": 0.4}),
        nus=TrainingRecipe(1e-5, 16, 10, {"delta": 0.4}),
        cub=TrainingRecipe(1e-5, 16, 10, {"delta": 0.4}),
    )

    def __init__(self, alpha: float = 5.0, scheme: str = "ll_r", delta: float = 0.2):
        """Store the boost and the treatment of unseen cells.

        Args:
            alpha: Factor of positive scores, at least 1.
            scheme: Treatment of unseen cells with the largest losses: "an" absent, "ll_r" ignored, "ll_ct" present for
                one step, "ll_cp" present permanently.
            delta: Percentage of unseen cells rejected in epoch 2, growing except for "ll_cp".
        """
        if not 1 <= alpha < float("inf"):
            raise ValueError(f"alpha = {alpha} must be at least 1: it boosts what speaks for a class.")
        if not 0 <= delta <= 100:
            raise ValueError(f"delta = {delta} is a percentage; it must be between 0 and 100.")
        self.alpha, self.delta = alpha, delta
        self.scheme = check_choice("scheme", scheme, REJECTION_SCHEMES)

    def criterion(self) -> AssumeNegative:
        """Return the assume-negative loss without eps. Method.loss rejects cells from it."""
        return AssumeNegative(eps=0.0)

    def build_network(self, channels: int, classes: int, generator: torch.Generator) -> BoostedMap:
        return BoostedMap(channels, classes, self.alpha)

    def begin_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch without the rejected cells (large_loss.py)."""
        mask = None if self.mask is None else self.mask[rows]
        cells = logits.numel() if mask is None else int(mask.sum())
        constant = self.scheme == "ll_cp"
        k = 0 if self.scheme == "an" else count_rejections(self.epoch, cells, self.delta, constant)
        loss, above = large_loss(logits, self.targets[rows], k, self.scheme != "ll_r", mask)
        if self.scheme == "ll_cp":
            self.targets[rows] = self.targets[rows].masked_fill(above, PRESENT)
        return loss
