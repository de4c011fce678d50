"""LL-Cp, large loss with permanent correction: the unseen cells with the largest loss become present for good."""

from torch import Tensor

from spmll.labels import PRESENT
from spmll.methods.published.large_loss import LargeLoss, count_rejections, make_published_recipes


class LLCp(LargeLoss):
    """Large loss with permanent correction. The default is the published delta for PASCAL VOC.

    COCO, NUS-WIDE and CUB have .2. The cell with the k-th highest loss is corrected in this step only; those above it
    stay corrected, as in the published code.
    """

    name = "ll_cp"
    title = "Large loss, permanent correction"
    assumes = "What nobody marked is absent, except what has once fitted that worst: that is present."
    published = make_published_recipes(voc=0.1, coco=0.2, nus=0.2, cub=0.2)
    corrects = True

    def __init__(self, delta: float = 0.1, released: bool = False):
        """Store the percentage and the version.

        Args:
            delta: Percentage of cells rejected, in every epoch from the second on.
            released: True: what the released code does. It compares the name of the scheme by identity, which is never
                true of a word from the command line, and so trains LL-Ct. False: what its authors meant.

        Raises:
            ValueError: Delta is not between 0 and 100.
        """
        super().__init__(delta)
        self.released = released

    def count_rejected(self, cells: int) -> int:
        """Return how many of `cells` cells are rejected: a constant share from epoch 2 on, unless `released`."""
        return count_rejections(self.epoch, cells, self.delta, constant=not self.released)

    def correct_labels(self, rows: Tensor, above: Tensor) -> None:
        """Write the corrections into the labels of this training."""
        if not self.released:
            self.targets[rows] = self.targets[rows].masked_fill(above, PRESENT)
