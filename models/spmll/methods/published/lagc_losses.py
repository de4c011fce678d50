"""The losses of LAGC: two views of an image must agree, and embeddings of one class must be close to each other.

Xie et al., "Label-Aware Global Consistency for Multi-Label Learning with Single Positive Labels", NeurIPS 2022, and
the published code, which differs from the paper in both losses: `form` chooses.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer
from torch.optim.lr_scheduler import OneCycleLR

from spmll.labels import PRESENT, UNSEEN
from spmll.losses.base import LOSS_FORMS, check_choice

WARM_UP_SHARE = 0.2  # share of the steps in which the one-cycle learning rate rises


def consistency_loss(
    weak: Tensor,
    strong: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    threshold: float,
    weight: float = 1.0,
    form: str = "code",
) -> Tensor:
    """Return L_AN + weight x L_PLC, where labels train the weak view, whose confident predictions train the strong one.

    With no cell in use the loss is 0. Neither source has confirmed absences; here they are treated like confirmed
    presences.

    Args:
        weak: (B, C) float, logits of the weak view, which are constants of L_PLC.
        strong: (B, C) float, logits of the strong view.
        labels: (B, C), 1 present, -1 absent, 0 not looked at (any value below 0 counts as absent).
        mask: (B, C) bool, True where a cell may be used; None: all.
        threshold: A cell counts as present from this probability on, as absent below one minus it.
        weight: Weight of L_PLC.
        form: "code": L_AN is the mean of the cells, L_PLC the mean of the confident cells, which include cells marked
            present; "paper" (eq. 2 and 4): both are summed over classes and averaged over images, and L_PLC is of
            unseen cells only.

    Raises:
        ValueError: The shapes differ, or the form is unknown.
    """
    check_choice("form", form, LOSS_FORMS)
    if not weak.shape == strong.shape == labels.shape:
        raise ValueError(
            f"The logits of the weak view are {tuple(weak.shape)}, of the strong view {tuple(strong.shape)}, and the "
            f"labels {tuple(labels.shape)}; all three must be (images, classes)."
        )
    weak, strong = (x.float() if x.dtype in (torch.float16, torch.bfloat16) else x for x in (weak, strong))
    use = torch.ones_like(weak, dtype=torch.bool) if mask is None else mask
    present = (labels >= PRESENT).to(weak.dtype)
    believed = torch.sigmoid(weak.detach())
    absent = believed <= 1 - threshold if form == "paper" else believed < 1 - threshold
    sure, guess = (believed >= threshold) | absent, (believed >= threshold).to(weak.dtype)
    seen = labels != UNSEEN
    if form == "paper":
        sure = sure & ~seen
    else:
        sure, guess = sure | seen, torch.where(seen, present, guess)
    sure = sure & use
    taught = torch.where(use, F.binary_cross_entropy_with_logits(weak, present, reduction="none"), 0).sum()
    agreed = torch.where(sure, F.binary_cross_entropy_with_logits(strong, guess, reduction="none"), 0).sum()
    if form == "paper":
        return (taught + weight * agreed) / max(len(weak), 1)
    return taught / use.sum().clamp(min=1) + weight * agreed / sure.sum().clamp(min=1)


def contrastive_loss(
    embeddings: Tensor,
    classes: Tensor,
    temperature: float = 0.5,
    form: str = "code",
    *,
    anchors: Tensor | None = None,
    embedding_count: int | None = None,
) -> Tensor:
    """Return L_LAC, which pulls embeddings of one class together and pushes those of different classes apart.

    Args:
        embeddings: (K, 2, d) float of length 1: weak and strong view of one cell each.
        classes: (K,) int64, the class of that cell counted from 1; 0 for an empty slot, which is left out.
        temperature: Divisor of the inner products.
        form: "code": as in supervised contrastive learning, an embedding is compared with all others, and the terms are
            averaged over the others of its class and then over all embeddings; "paper" (eq. 7): an embedding is
            compared with those of other classes only, and the terms are summed over its class and over the anchors,
            then divided by `of`.
        anchors: (K,) bool, in the form of the paper: the cells of the batch, which are compared with all others; None:
            all K.
        embedding_count: In the form of the paper: B, all embeddings of the batch, those that are not assumed present
            among them;
            None: the embeddings in use.

    Returns:
        A scalar; 0 when all slots are empty. In the form of the paper an embedding costs 0 if no embedding has another
            class, a case that eq. 7 does not define.

    Raises:
        ValueError: The shapes do not fit, the temperature is not positive, or the form is unknown.
    """
    check_choice("form", form, LOSS_FORMS)
    if embeddings.ndim != 3 or embeddings.shape[1] != 2 or classes.shape != embeddings.shape[:1]:
        raise ValueError(
            f"Embeddings are {tuple(embeddings.shape)} and classes {tuple(classes.shape)}; they must be (slots, 2, d) "
            "and (slots,)."
        )
    if not temperature > 0:
        raise ValueError(f"temperature = {temperature} must be positive.")
    filled = classes > 0
    if not filled.any():
        return embeddings.sum() * 0
    units = embeddings[filled].transpose(0, 1).flatten(0, 1)
    kinds = classes[filled].repeat(2)
    with torch.autocast(units.device.type, enabled=False):  # it would multiply in half precision
        alike = units @ units.T / temperature
    same = kinds[:, None] == kinds
    itself = torch.eye(len(kinds), dtype=torch.bool, device=kinds.device)
    partners = same & ~itself
    if form == "paper":
        newest = torch.ones_like(filled) if anchors is None else anchors
        against, counted = ~same, (~same).any(1) & newest[filled].repeat(2)
    else:
        against, counted = ~itself, torch.ones_like(kinds, dtype=torch.bool)
    # An empty row of -inf has no gradient, so it is filled before and its cost taken out afterwards.
    against = against | ~against.any(1, keepdim=True)
    log_ratio = alike - torch.logsumexp(alike.masked_fill(~against, -torch.inf), dim=1, keepdim=True)
    pulled = torch.where(partners, log_ratio, 0).sum(1)
    if form == "code":
        pulled = pulled / partners.sum(1)
    divisor = embedding_count if form == "paper" and embedding_count is not None else len(kinds)
    return -torch.where(counted, pulled, 0).sum() / max(divisor, 1)


class EmbeddingQueue(nn.Module):
    """The latest embeddings with an assumed class, so that a batch is compared with earlier ones as well."""

    embeddings: Tensor  # (slots, 2, d)
    classes: Tensor  # (slots,) int64, 0: empty
    at: Tensor  # () int64, the slot to be written next

    def __init__(self, slots: int, dimensions: int, device: torch.device | str = "cpu"):
        """Make a queue of `slots` empty slots for embeddings of length `dimensions`; 0: nothing is kept."""
        super().__init__()
        self.register_buffer("embeddings", torch.zeros(slots, 2, dimensions, device=device))
        self.register_buffer("classes", torch.zeros(slots, dtype=torch.long, device=device))
        self.register_buffer("at", torch.zeros((), dtype=torch.long))  # on the CPU: read at every batch

    def push(self, pairs: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Add a batch and return all entries; those of the batch carry gradients.

        A batch is written as in the published code: where m embeddings do not fit before the end, or would just fill
        it, writing begins again at slot 0, so that slots at the end may keep old ones for longer. Of more than K
        embeddings the last K are taken (the published code fails). A queue without slots returns the batch alone, as in
        the ablation of the paper without a queue.

        Args:
            pairs: (m, 2, d) float.
            classes: (m,) int64 from 1.

        Returns:
            (K, 2, d), (K,); entries of older batches have no gradient. (m, 2, d), (m,) without slots.
        """
        slots = len(self.classes)
        if not slots:
            return pairs, classes
        pairs, classes = pairs[max(len(pairs) - slots, 0) :], classes[max(len(classes) - slots, 0) :]
        first = 0 if int(self.at) + len(pairs) >= slots else int(self.at)
        last = first + len(pairs)
        with torch.no_grad():
            before = self.embeddings.clone()
            self.embeddings[first:last] = pairs.to(self.embeddings.dtype)
            self.classes[first:last] = classes
            self.at.fill_(last)
        everything = torch.cat([before[:first].to(pairs.dtype), pairs, before[last:].to(pairs.dtype)])
        return everything, self.classes.clone()

    def find_newest_slots(self, pushed: int) -> Tensor:
        """Return which slots hold the last batch of `pushed` embeddings: (K,) bool."""
        slots = torch.arange(len(self.classes), device=self.classes.device)
        return (slots >= int(self.at) - pushed) & (slots < int(self.at))


def make_one_cycle_schedule(
    optimizer: Optimizer, steps: int, max_lr: float | list[float] = 1e-4, warm_up: float = WARM_UP_SHARE
) -> OneCycleLR:
    """Return a schedule whose rate rises from max_lr / 25 during `warm_up`, then falls to nearly 0 along a cosine.

    Args:
        optimizer: Its own learning rate is overwritten.
        steps: Total number of optimiser steps. The first is made at the lowest rate, and the schedule is stepped once
            after each but the last.
        max_lr: The highest rate, or one for each group of the optimiser.
        warm_up: The share of the steps in which the rate rises.

    Source: Smith and Topin 2018, as torch has it; ASL, Hill, SPLC and LAGC train this way.
    """
    # torch divides by the length of the rise less one step, which is 0 when the rise is exactly one step.
    steps = max(steps, 1)
    return OneCycleLR(optimizer, max_lr, total_steps=steps + (steps * warm_up == 1), pct_start=warm_up)
