"""The oracle: training on the complete truth, the upper limit."""

import torch
from torch import Tensor

from spmll.labels import UNSEEN
from spmll.losses.base import check_non_negative
from spmll.losses.binary_cross_entropy import BinaryCrossEntropy
from spmll.methods.base import Method
from spmll.methods.training_recipes import cole_protocol


class Oracle(Method):
    """Binary cross-entropy on known labels. Comparisons give it all labels. In projects it needs confirmed absences."""

    name = "oracle"
    title = "Full labels (the ceiling)"
    paper = "Cole et al., Multi-Label Learning from Single Positive Labels, CVPR"
    year = 2021
    url = "https://arxiv.org/abs/2106.09708"
    assumes = "Nothing is unseen: the whole truth is known."
    threshold = 0.5
    full_labels = True
    published = cole_protocol()

    def __init__(self, eps: float = 1e-5):
        """Store eps, added inside logarithms, 0 if exact."""
        check_non_negative(eps=eps)
        self.eps = eps

    def criterion(self) -> BinaryCrossEntropy:
        return BinaryCrossEntropy(self.eps)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training in which unseen cells are masked out of the average."""
        super().begin(labels, mask, epochs, generator)
        known = labels != UNSEEN
        if not known.all():
            self.mask = known if mask is None else known & mask
