"""The common part of the large-loss methods: negatives with the largest loss are probably hidden positives.

All three methods train as assume-negative and, from the second epoch on, reject the unseen cells with the largest loss:
LL-R leaves them out (ll_r.py), LL-Ct takes them as present for this step (ll_ct.py), LL-Cp permanently (ll_cp.py).

Kim et al., "Large Loss Matters in Weakly Supervised Multi-Label Classification", CVPR 2022,
https://arxiv.org/abs/2206.03740
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
    """The common base of the three methods; each decides what happens to a rejected cell."""

    paper = "Kim et al., Large Loss Matters in Weakly Supervised Multi-Label Classification, CVPR"
    year = 2022
    url = "https://arxiv.org/abs/2206.03740"
    threshold = 0.4
    tunable = search_grid(delta=(0.1, 0.2, 0.3, 0.4, 0.5))  # the grid of the authors

    corrects: ClassVar[bool]  # whether a rejected cell counts as present, or not at all

    def __init__(self, delta: float = 0.2):
        """Store delta, the percentage of cells rejected (in LL-R and LL-Ct every further epoch adds as many).

        Raises:
            ValueError: Delta is not between 0 and 100.
        """
        if not 0 <= delta <= 100:
            raise ValueError(f"delta = {delta} is a percentage; it must be between 0 and 100.")
        self.delta = delta

    def criterion(self) -> AssumeNegative:
        """Return the loss before rejection, with the exact logarithm, as in the published code."""
        return AssumeNegative(eps=0.0)

    def begin_epoch(self, epoch: int) -> None:
        """Store the epoch, which determines how many cells are rejected."""
        self.epoch = epoch

    def count_rejected(self, cells: int) -> int:
        """Return how many of `cells` cells are rejected in the current epoch."""
        return count_rejections(self.epoch, cells, self.delta)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of a batch after rejection."""
        mask = None if self.mask is None else self.mask[rows]
        # Only cells in use are counted: what is held out must not make room for more rejections.
        k = self.count_rejected(logits.numel() if mask is None else int(mask.sum()))
        loss, above = large_loss(logits, self.targets[rows], k, self.corrects, mask)
        self.correct_labels(rows, above)
        return loss

    def correct_labels(self, rows: Tensor, above: Tensor) -> None:
        """Handle the cells that cost strictly more than the k-th; does nothing here, LL-Cp overrides it."""

    def should_stop_early(self, scores: list[float]) -> bool:
        """Return whether the validation mAP is more than 3 points below its best (published code)."""
        return has_fallen_behind(scores, 3)


def make_published_recipes(voc: float, coco: float, nus: float, cub: float) -> dict[str, TrainingRecipe]:
    """Return the authors' settings, given a delta for each set: published code and its discussion (issue 4)."""
    return recipes_by_set(
        voc=TrainingRecipe(
            5e-3, 16, 10, {"delta": voc}, head_lr_scale=10, optimiser="sgd", momentum=0.9, weight_decay=1e-3
        ),
        coco=TrainingRecipe(1e-5, 16, 10, {"delta": coco}, head_lr_scale=10),
        nus=TrainingRecipe(1e-5, 16, 10, {"delta": nus}, head_lr_scale=10),
        cub=TrainingRecipe(7.5e-5, 16, 10, {"delta": cub}, head_lr_scale=10),
    )


def count_rejections(epoch: int, cells: int, delta: float, constant: bool = False) -> int:
    """Return how many cells of a batch are rejected in an epoch, counted from 1; never more than `cells`.

    The share is reached as in the published code, by subtracting delta from 1 once an epoch: where the product is a
    whole number, the rounding of that difference decides whether one more cell is rejected.

    Args:
        epoch: The epoch, from 1.
        cells: Cells of the batch, images x classes.
        delta: Percentage.
        constant: True: delta of all cells in every epoch from the second on (LL-Cp); False: epoch - 1 times as many.

    Source: Kim et al. 2022, sec. 4, and `compute_batch_loss`.
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
    """Return the assume-negative loss of a batch with the k dearest unseen cells rejected, and the cells above the bar.

    A cell that a person has answered is never rejected. (In the published code seen cells count as unseen ones without
    loss, and all of them would be rejected where k exceeds the number of unseen cells.)

    Args:
        logits: (B, C) float.
        labels: (B, C), 1 present, -1 absent, 0 not looked at.
        k: Number of rejected cells; 0 rejects none. The bar is the k-th highest loss of an unseen cell, over the whole
            batch; all unseen cells that cost as much or more are rejected (more than k, where several cost the same).
        correct: True: a rejected cell has the loss of a present cell; False: no loss.
        mask: (B, C) bool, True where a cell may be used; None: all.

    Returns:
        The mean over all cells in use, rejected ones among them, and (B, C) bool: cells strictly above the bar.
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
