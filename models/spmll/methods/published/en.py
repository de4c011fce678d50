"""Expected negative: per class, the least likely images are negatives, in the expected number.

A running average of predictions decides. The paper's consistency terms need maps.
"""

import torch
from torch import Tensor

from spmll.labels import ABSENT, PRESENT
from spmll.losses.base import check_fractions, check_non_negative
from spmll.losses.expected_negative import ExpectedNegative
from spmll.methods.base import Method, check_positive, search_grid
from spmll.methods.published.ranks import select_lowest
from spmll.methods.training_recipes import shared_protocol


class EN(Method):
    """Expected negatives by rank, with defaults for PASCAL VOC.

    The authors know each class's frequency. Here k expected positives per image are divided among classes in
    proportion to marks. The momentum 0.8 is a guess.
    """

    name = "en"
    title = "Expected negative"
    paper = (
        "Verelst et al., Spatial Consistency Loss for Training Multi-Label Classifiers from Single-Label Annotations, "
        "WACV"
    )
    year = 2023
    url = "https://arxiv.org/abs/2203.06127"
    assumes = "What nobody marked is absent in as many images as expected, those the network finds least likely."
    threshold = 0.55
    open_points = (
        "The authors know for each class how many images show it; here k x images are divided among the classes as "
        "their marked cells are.",
        "How fast the running average forgets is not in the text at hand; momentum = 0.8 is a choice.",
        "The other parts of the paper, consistency of predictions and of score maps, are not in this method. Score "
        "maps of an image are laid over one another from epoch to epoch, through flips and crops; what reads maps here "
        "does not say how a view was turned, and makes no crops. How these terms are weighed is not in the text at "
        "hand.",
    )
    tunable = search_grid(k=(1.2, 1.5, 2.0, 3.0, 5.0), momentum=(0.0, 0.5, 0.8, 0.9))
    published = shared_protocol(k=(1.5, 2.9, 1.9, 31.4))

    def __init__(self, k: float = 1.5, momentum: float = 0.8, eps: float = 1e-5):
        """Store the constants.

        Args:
            k: Expected number of present classes per image.
            momentum: Share of the running average of predictions that an update keeps.
            eps: Added inside logarithms.
        """
        check_positive(k=k)
        check_fractions(momentum=momentum)
        check_non_negative(eps=eps)
        if momentum == 1:
            raise ValueError("momentum = 1 would never take up a prediction; it must be below 1.")
        self.k = k
        self.momentum = momentum
        self.eps = eps

    def criterion(self) -> ExpectedNegative:
        return ExpectedNegative(self.eps)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training, and compute the expected number of negatives per class."""
        super().begin(labels, mask, epochs, generator)
        self.given = self.targets.clone()
        self.usable = torch.ones_like(self.given, dtype=torch.bool) if mask is None else mask
        self.negatives = self.usable.sum(0) - estimate_positive_counts(self.given, self.usable, self.k)
        self.average = torch.full_like(self.given, torch.nan)

    def begin_epoch(self, epoch: int) -> None:
        """Choose the negatives of this epoch by rank (in epoch 1 all unseen cells)."""
        unseen = (self.given > ABSENT) & (self.given < PRESENT) & self.usable
        if epoch > 1:
            # Answered cells are not ranked: confirmed absences are always negatives, marked cells never.
            value = torch.where(unseen, self.average.nan_to_num(nan=torch.inf), torch.inf)
            value = torch.where((self.given <= ABSENT) & self.usable, -torch.inf, value)
            unseen &= select_lowest(value, self.negatives)
        self.targets = torch.where(unseen, float(ABSENT), self.given)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch, and update the running average of predictions."""
        predicted = torch.sigmoid(logits.detach().float())
        before = self.average[rows]
        self.average[rows] = torch.where(
            before.isnan(), predicted, self.momentum * before + (1 - self.momentum) * predicted
        )
        return super().loss(logits, rows)


def estimate_positive_counts(labels: Tensor, usable: Tensor, k: float) -> Tensor:
    """Return the expected number of positives per class, (C,) int64, at least the number of marked cells.

    Args:
        labels: (N, C).
        usable: (N, C) bool.
        k: Mean classes per image, divided among classes in proportion to marked cells.
    """
    marked = ((labels >= PRESENT) & usable).sum(0)
    images = usable.any(1).sum()
    expected = (k * images * marked / marked.sum().clamp(min=1)).round().long()
    return torch.minimum(torch.maximum(expected, marked), usable.sum(0))
