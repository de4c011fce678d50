"""Expected positive regularization: unseen cells have no label, but images average k classes."""

import torch
from torch import Tensor

from spmll.losses.expected_positive_regularization import ExpectedPositiveRegularization
from spmll.methods.base import Method, check_positive, search_grid
from spmll.methods.training_recipes import cole_protocol


class EPR(Method):
    """Expected positive regularization, with published defaults for VOC.

    k was counted: VOC 1.5, COCO 2.9, NUS-WIDE 1.9, CUB 31.4. Projects must set it.
    """

    name = "epr"
    title = "Expected positive regularization"
    paper = "Cole et al., Multi-Label Learning from Single Positive Labels, CVPR"
    year = 2021
    url = "https://arxiv.org/abs/2106.09708"
    assumes = "Of what nobody marked only one thing is known: how many classes an image shows on average."
    threshold = 0.5
    tunable = search_grid(k=(1.2, 1.5, 2.0, 3.0, 5.0), strength=(0.1, 1.0, 10.0))
    published = cole_protocol(k=(1.5, 2.9, 1.9, 31.4))

    def __init__(self, k: float = 1.5, strength: float = 1.0, form: str = "code", eps: float = 1e-5):
        """Store the constants.

        Args:
            k: Expected number of present classes per image.
            strength: Weight of the penalty.
            form: "code" (published tables) divides by images x classes, "paper" by images.
            eps: Added inside logarithms.
        """
        check_positive(k=k)
        self.k, self.strength = k, strength
        self.form = form
        self.eps = eps
        self.criterion()  # what makes no sense is refused now, not at the first training

    loss_function: ExpectedPositiveRegularization

    def criterion(self) -> ExpectedPositiveRegularization:
        return ExpectedPositiveRegularization(self.k, self.strength, self.form, self.eps)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training, with k limited to the number of classes."""
        super().begin(labels, mask, epochs, generator)
        self.loss_function.k = min(self.k, labels.shape[1])
