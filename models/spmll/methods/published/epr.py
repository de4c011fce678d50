"""Expected positive regularization: unseen cells have no label, but a batch must expect k classes an image."""

import torch
from torch import Tensor

from spmll.losses.expected_positive_regularization import ExpectedPositiveRegularization
from spmll.methods.base import Method, check_positive, search_grid
from spmll.methods.training_recipes import cole_protocol


class EPR(Method):
    """Expected positive regularization. The defaults are the published ones for PASCAL VOC; k matters most.

    k is the expected number of classes an image. The authors counted it on fully labelled images: VOC 1.5, COCO 2.9,
    NUS-WIDE 1.9, CUB 31.4. In a project nobody knows k, so it is a number to set.
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
        """Store the constants and the form of the average.

        Args:
            k: How many classes an image shows on average.
            strength: Weight of the penalty for expecting another number (1 in the code; the paper gives none).
            form: "code": the loss of marked cells is divided by images x classes; "paper": by images only, so that the
                penalty counts C times less beside it. The published tables were made by the code.
            eps: Added inside the logarithm (published code: 1e-5).

        Raises:
            ValueError: The form is unknown, or a number is outside its range.
        """
        check_positive(k=k)
        self.k, self.strength = k, strength
        self.form = form
        self.eps = eps
        self.criterion()  # what makes no sense is refused now, not at the first training

    loss_function: ExpectedPositiveRegularization

    def criterion(self) -> ExpectedPositiveRegularization:
        """Return the loss, which is the same in every epoch."""
        return ExpectedPositiveRegularization(self.k, self.strength, self.form, self.eps)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start as Method does, and limit k to the number of classes."""
        super().begin(labels, mask, epochs, generator)
        self.loss_function.k = min(self.k, labels.shape[1])
