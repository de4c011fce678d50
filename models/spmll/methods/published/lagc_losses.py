"""The losses of LAGC (Xie et al., NeurIPS 2022), in the form of paper or code, which differ."""

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
    """Return the assume-negative loss of the weak view + weight x the pseudo-label loss of the strong view.

    The paper calls it L_AN + weight x L_PLC. It is 0 without usable cells.

    Args:
        weak: (B, C) logits, constants in L_PLC.
        strong: (B, C) logits.
        labels: (B, C), 1 present, negative absent, 0 unseen.
        mask: (B, C) bool, usable cells.
        threshold: Probability from which a cell is confidently present. It is absent below 1 - threshold.
        form: "code" averages over cells, L_PLC over confident ones. "paper" (eq. 2 and 4) sums over classes, L_PLC over
            unseen cells.

    Raises:
        ValueError: Shapes or form are invalid.
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
    """Return L_LAC, which attracts embeddings of one class and repels others, 0 without any.

    Args:
        embeddings: (K, 2, d), unit vectors of weak and strong view.
        classes: (K,) int64 from 1, 0 for empty slots.
        form: "code": supervised contrastive, averaged. "paper" (eq. 7): compared with other classes only, summed.
        anchors: (K,) bool, embeddings of the current batch, for "paper".
        embedding_count: Divisor of the sum, for "paper".

    Raises:
        ValueError: Shapes, temperature or form are invalid.
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
    """A ring buffer of the latest embeddings with assumed classes, for comparison with a batch."""

    embeddings: Tensor  # (slots, 2, d)
    classes: Tensor  # (slots,) int64, 0: empty
    at: Tensor  # () int64, the slot to be written next

    def __init__(self, slots: int, dimensions: int, device: torch.device | str = "cpu"):
        """Create a queue with this number of empty slots (0 keeps nothing)."""
        super().__init__()
        self.register_buffer("embeddings", torch.zeros(slots, 2, dimensions, device=device))
        self.register_buffer("classes", torch.zeros(slots, dtype=torch.long, device=device))
        self.register_buffer("at", torch.zeros((), dtype=torch.long))  # on the CPU: read at every batch

    def push(self, pairs: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Add a batch to the queue and return all entries, with gradients for the batch.

        As in published code, writing restarts at slot 0 before the end. Of a larger batch, only the last K are kept. A
        queue without slots returns the batch itself.

        Args:
            pairs: (m, 2, d), embeddings of the weak and the strong view.
            classes: (m,) int64 from 1.

        Returns:
            (K, 2, d), (K,), for K slots.
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
        """Return which slots hold the last batch of `pushed` entries, (K,) bool."""
        slots = torch.arange(len(self.classes), device=self.classes.device)
        return (slots >= int(self.at) - pushed) & (slots < int(self.at))


def make_one_cycle_schedule(
    optimizer: Optimizer, steps: int, max_lr: float | list[float] = 1e-4, warm_up: float = WARM_UP_SHARE
) -> OneCycleLR:
    """Return a one-cycle schedule: a rise from max_lr / 25, then a cosine to nearly 0.

    Smith and Topin 2018.

    Args:
        steps: Step the schedule after each but the last.
        max_lr: Highest rate, or one per group.
        warm_up: Rising share of steps.
    """
    # torch divides by the length of the rise less one step, which is 0 when the rise is exactly one step.
    steps = max(steps, 1)
    return OneCycleLR(optimizer, max_lr, total_steps=steps + (steps * warm_up == 1), pct_start=warm_up)
