"""LL-Cp: the unseen cells with the largest loss become present permanently."""

from torch import Tensor

from spmll.labels import PRESENT
from spmll.methods.published.large_loss import LargeLoss, count_rejections, make_published_recipes


class LLCp(LargeLoss):
    """Large loss with permanent correction, published delta (others have .2).

    The k-th cell itself is corrected for one step only.
    """

    name = "ll_cp"
    title = "Large loss, permanent correction"
    assumes = "What nobody marked is absent, except what has once fitted that worst: that is present."
    published = make_published_recipes(voc=0.1, coco=0.2, nus=0.2, cub=0.2)
    corrects = True

    def __init__(self, delta: float = 0.1, released: bool = False):
        """Store the constants.

        Args:
            delta: Percentage rejected per epoch from the second.
            released: Train LL-Ct, as a bug of the released code does.
        """
        super().__init__(delta)
        self.released = released

    def count_rejected(self, cells: int) -> int:
        """Return the rejected cells, a constant share unless `released`."""
        return count_rejections(self.epoch, cells, self.delta, constant=not self.released)

    def correct_labels(self, rows: Tensor, above: Tensor) -> None:
        """Write corrections into this training's labels."""
        if not self.released:
            self.targets[rows] = self.targets[rows].masked_fill(above, PRESENT)
