"""The large-loss methods: negatives with large loss are probably hidden positives.

From epoch 2 on, these are ignored (LL-R), present for a step (LL-Ct) or for good (LL-Cp). Kim et al., CVPR
2022, https://arxiv.org/abs/2206.03740
"""

import math
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from spmll.labels import PRESENT, UNSEEN
from spmll.losses.assume_negative import AssumeNegative
from spmll.methods.base import Method, has_fallen_behind, search_grid
from spmll.methods.training_recipes import TrainingRecipe, recipes_by_set


class LargeLoss(Method):
    """The base of the three large-loss methods, which differ in what happens to rejected cells."""

    paper = "Kim et al., Large Loss Matters in Weakly Supervised Multi-Label Classification, CVPR"
    year = 2022
    url = "https://arxiv.org/abs/2206.03740"
    threshold = 0.4
    tunable = search_grid(delta=(0.1, 0.2, 0.3, 0.4, 0.5))  # the grid of the authors

    corrects: ClassVar[bool]  # whether a rejected cell counts as present, or not at all

    def __init__(self, delta: float = 0.2):
        """Store delta, the percentage of cells rejected. Raises ValueError if it is invalid."""
        if not 0 <= delta <= 100:
            raise ValueError(f"delta = {delta} is a percentage; it must be between 0 and 100.")
        self.delta = delta

    def criterion(self) -> AssumeNegative:
        """Return the assume-negative loss without eps. LargeLoss.loss rejects cells from it."""
        return AssumeNegative(eps=0.0)

    def begin_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def count_rejected(self, cells: int) -> int:
        """Count the cells rejected in this epoch."""
        return count_rejections(self.epoch, cells, self.delta)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch without its rejected cells."""
        mask = None if self.mask is None else self.mask[rows]
        # Only cells in use are counted: what is held out must not make room for more rejections.
        k = self.count_rejected(logits.numel() if mask is None else int(mask.sum()))
        loss, above = large_loss(logits, self.targets[rows], k, self.corrects, mask)
        self.correct_labels(rows, above)
        return loss

    def correct_labels(self, rows: Tensor, above: Tensor) -> None:
        """Correct the labels of the cells whose losses are `above` the threshold. A hook that does nothing here."""

    def should_stop_early(self, scores: list[float]) -> bool:
        """Return whether the last validation score (mAP) is over 3 points below the best."""
        return has_fallen_behind(scores, 3)


def make_published_recipes(voc: float, coco: float, nus: float, cub: float) -> dict[str, TrainingRecipe]:
    """Return the authors' settings per data set, each with its delta (from their code and issue 4)."""
    return recipes_by_set(
        voc=TrainingRecipe(
            5e-3, 16, 10, {"delta": voc}, head_lr_scale=10, optimiser="sgd", momentum=0.9, weight_decay=1e-3
        ),
        coco=TrainingRecipe(1e-5, 16, 10, {"delta": coco}, head_lr_scale=10),
        nus=TrainingRecipe(1e-5, 16, 10, {"delta": nus}, head_lr_scale=10),
        cub=TrainingRecipe(7.5e-5, 16, 10, {"delta": cub}, head_lr_scale=10),
    )


def count_rejections(epoch: int, cells: int, delta: float, constant: bool = False) -> int:
    """Count the cells rejected in an epoch (Kim et al. 2022, sec. 4).

    Delta is subtracted from 1 once per epoch, as in published code, where rounding may decide a cell.

    Args:
        cells: Images x classes.
        delta: Percentage.
        constant: Reject delta in every epoch from the second (LL-Cp), else epoch - 1 times as many.
    """
    share = delta / 100
    clean = 1.0
    for _ in range(epoch - 1):
        clean -= share
    if clean == 1:
        return 0
    return min(math.ceil(cells * share if constant else cells * (1 - clean)), cells)


def large_loss(
    logits: Tensor, labels: Tensor, k: int, correct: bool, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the assume-negative loss without the k largest losses of unseen cells, and the cells above the bar.

    Answered cells are never rejected, unlike in published code.

    Args:
        logits: (B, C).
        labels: (B, C), 1 present, -1 absent, 0 unseen.
        k: The bar is the k-th highest loss of an unseen cell. Ties are rejected too.
        correct: Whether rejected cells count as present. Otherwise they cost nothing.
        mask: (B, C) bool, usable cells.

    Returns:
        The mean over usable cells, and (B, C) bool: strictly above the bar.
    """
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    use = torch.ones_like(logits, dtype=torch.bool) if mask is None else mask
    if_present, if_absent = F.softplus(-logits), F.softplus(logits)
    cells = torch.where(labels >= PRESENT, if_present, if_absent)
    unseen = (labels == UNSEEN) & use
    above = torch.zeros_like(use)
    if k > 0 and labels.numel():
        price = torch.where(unseen, if_absent.detach(), 0).flatten()
        bar = price.topk(min(k, price.numel())).values[-1]
        price = price.view_as(if_absent)
        cells = torch.where(unseen & (price >= bar), if_present if correct else 0, cells)
        above = unseen & (price > bar)
    return torch.where(use, cells, 0).sum() / use.sum().clamp(min=1), above


class LLR(LargeLoss):
    """The method LL-R: large losses are ignored. delta is the published one for VOC (other sets have 0.4)."""

    name = "ll_r"
    title = "Large loss rejection"
    assumes = "What nobody marked is absent, except what fits that worst: of that nothing is known."
    published = make_published_recipes(voc=0.2, coco=0.4, nus=0.4, cub=0.4)
    corrects = False


class LLCt(LargeLoss):
    """The method LL-Ct: large losses count as present for one step. delta as published (CUB has 0.4)."""

    name = "ll_ct"
    title = "Large loss, temporary correction"
    assumes = "What nobody marked is absent, except what fits that worst: that is present for now."
    published = make_published_recipes(voc=0.2, coco=0.2, nus=0.2, cub=0.4)
    corrects = True


class LLCp(LargeLoss):
    """The method LL-Cp: cells with large losses become present permanently. delta as published for VOC (others 0.2).

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
            delta: Percentage of cells rejected per epoch, from the second on.
            released: Whether to train LL-Ct instead, as a bug of the released code does.
        """
        super().__init__(delta)
        self.released = released

    def count_rejected(self, cells: int) -> int:
        """Count the cells rejected in this epoch, a constant share unless `released`."""
        return count_rejections(self.epoch, cells, self.delta, constant=not self.released)

    def correct_labels(self, rows: Tensor, above: Tensor) -> None:
        """Set the cells above the threshold to present in this training's labels."""
        if not self.released:
            self.targets[rows] = self.targets[rows].masked_fill(above, PRESENT)
