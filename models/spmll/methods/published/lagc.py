"""Label-aware global consistency: agreement of views, and similar embeddings per class.

Stage 1: confident predictions of the weak view teach the strong one. Stage 2: embeddings of assumed positives are
attracted within and repelled between classes.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spmll.losses.assume_negative import AssumeNegative
from spmll.losses.base import LOSS_FORMS, check_choice, check_fractions, check_non_negative
from spmll.methods.base import Method, check_positive, search_grid
from spmll.methods.published.label_decoder import LabelDecoder
from spmll.methods.published.lagc_losses import EmbeddingQueue, consistency_loss, contrastive_loss
from spmll.methods.training_recipes import TrainingRecipe, recipes_by_set

# AdamW at weight decay 0.01 and one cycle up to 1e-4 over 40 epochs, for each of the two stages. Batches were chosen
# from 8, 16, 32 and 64; that of COCO is in the README of the code.
PUBLISHED_RECIPE = TrainingRecipe(
    lr=1e-4,
    batch=32,
    epochs=80,
    parameters={"width": 0, "average_warm_up": False},
    optimiser="adamw_onecycle",
    weight_decay=0.01,
    precision="fp16",
    drop_last=True,
)
PATIENCE_EPOCHS = 8  # epochs without a new best before the published code ends a stage


@dataclass(eq=False, repr=False)
class LAGC(Method):
    """Label-aware global consistency, with some defaults for a CPU.

    On a frozen backbone, views are precomputed and reduced to `width` channels, to avoid 140 million weights.
    `published` recipes train end to end without reduction or normalization.

    Args:
        threshold_first: Probability of assumed presence in stage 1.
        threshold_second: The same in stage 2.
        first: Share of epochs in stage 1.
        weight_plc: Weight of view agreement.
        weight_lac: Weight of the embedding contrast.
        queue: Number of kept cells.
        average_decay: Of weight averages, 0 for none.
        average_warm_up: Start with a smaller decay, for short trainings.
        width: Decoder channels, 0 for the map's.
        form: "code" or "paper" (lagc_losses.py).
    """

    name = "lagc"
    title = "Label-aware global consistency"
    paper = "Xie et al., Label-Aware Global Consistency for Multi-Label Learning with Single Positive Labels, NeurIPS"
    year = 2022
    url = "https://github.com/xiemk/SPML-LAC"
    assumes = "What nobody marked is absent, except where the network is sure of it in a weakly changed view."
    threshold = 0.3
    # On maps of a frozen backbone, 500 photographs of 19 classes with one click each. More epochs or a higher rate
    # memorise the clicks: 16 epochs at 1e-3 rank hidden positives at 0.35 (average precision over all cells) where 6 at
    # 3e-4 reach 0.53. A linear head on pooled features reaches 0.48 (an) and 0.61 (gr): so few images do not pay for a
    # decoder, which the paper trains on 4,600 and more, with the backbone.
    epochs = 8
    lr = 3e-4
    reads = "maps"
    views = 2
    tunable = search_grid(threshold_first=(0.5, 0.6, 0.7, 0.8, 0.9), threshold_second=(0.7, 0.8, 0.9))
    published = recipes_by_set(PUBLISHED_RECIPE, PUBLISHED_RECIPE, PUBLISHED_RECIPE, PUBLISHED_RECIPE)
    open_points = (
        "Thresholds, the size of the queue and the batch were chosen on validation images of each data set; only those "
        "of the README (COCO: 0.6, 0.9, 512 and 32) are published, and used for all sets here.",
        "The label decoder follows the published code: two layers of cross-attention and none in which classes attend "
        "to each other, where the paper names one block of each.",
        "The paper keeps the projection head fixed in the first stage; in the code, and here, that stage does not use "
        "it, and the second begins with random weights.",
        "Colour jitter and grey pictures among the strong views are the published code's; the paper names Cutout and "
        "RandAugment only.",
        "Images are not normalised although the backbone was trained on normalised ones, as in the published code.",
        "The average of the weights has no warm-up end to end; on maps of a frozen backbone it has one, because such a "
        "training is shorter than the average is long.",
        "In eq. 7 the paper leaves open how the second view counts. With form = paper each view of a cell is an "
        "embedding: B is twice images x classes, and an embedding whose class is alone in batch and queue costs 0.",
    )
    plain_pixels = True  # the published code hands pixels in [0, 1] to a backbone that was trained on normalised ones

    threshold_first: float = 0.6
    threshold_second: float = 0.9
    first: float = 0.5
    weight_plc: float = 1.0
    weight_lac: float = 1.0
    temperature: float = 0.5
    queue: int = 512
    projection: int = 128
    average_decay: float = 0.9997
    average_warm_up: bool = True
    width: int = 256
    form: str = "code"

    def __post_init__(self):
        """Validate constants, sizes and form."""
        check_fractions(threshold_first=self.threshold_first, threshold_second=self.threshold_second, first=self.first)
        check_fractions(average_decay=self.average_decay)
        check_non_negative(weight_plc=self.weight_plc, weight_lac=self.weight_lac, queue=self.queue, width=self.width)
        check_positive(temperature=self.temperature, projection=self.projection)
        check_choice("form", self.form, LOSS_FORMS)

    def criterion(self) -> AssumeNegative:
        """Return the assume-negative loss alone. LAGC.loss adds the other terms."""
        return AssumeNegative(0.0)

    def build_network(self, channels: int, classes: int, generator: torch.Generator) -> LabelDecoder:
        return LabelDecoder(channels, classes, width=self.width, projection=self.projection, generator=generator)

    def prepare(self, network: torch.nn.Module, epoch: int) -> None:
        """Make the network return class embeddings too, if this epoch is in stage 2."""
        for module in network.modules():
            if isinstance(module, LabelDecoder):
                module.projecting = epoch >= self.second

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training with an empty queue of embeddings, and compute the first epoch of stage 2."""
        super().begin(labels, mask, epochs, generator)
        self.second = 1 + round(self.first * epochs)
        self.epoch = 1
        self.kept = EmbeddingQueue(self.queue, self.projection, labels.device)

    def restarts_optimizer(self, epoch: int) -> bool:
        """Return whether stage 2 starts in this epoch, unless that is epoch 1."""
        return 1 < epoch == self.second

    def should_stop_early(self, scores: list[float]) -> bool:
        """Return whether stage 2 has had no new best score for more than PATIENCE_EPOCHS epochs."""
        scores = scores[self.second - 1 :]
        return bool(scores) and len(scores) - 1 - scores.index(max(scores)) > PATIENCE_EPOCHS

    def begin_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def loss(self, outputs: Any, rows: Tensor) -> Tensor:
        """Return the loss of a batch.

        Args:
            outputs: Logits (2B, C), weak views first, maybe with embeddings (2B, C, P).
            rows: (B,) int64.
        """
        logits, embeddings = outputs if isinstance(outputs, tuple) else (outputs, None)
        weak, strong = (logits, logits) if len(logits) == len(rows) else logits.chunk(2)
        labels = self.targets[rows]
        mask = None if self.mask is None else self.mask[rows]
        second = self.epoch >= self.second
        threshold = self.threshold_second if second else self.threshold_first
        total = consistency_loss(
            weak, strong, labels, mask, threshold=threshold, weight=self.weight_plc, form=self.form
        )
        if embeddings is None or not second:
            return total
        present = (labels > 0) | ((torch.sigmoid(weak.detach()) >= threshold) & (labels == 0))
        if mask is not None:
            present &= mask
        pairs = torch.stack(embeddings.chunk(2), dim=2)[present]
        everything, classes = self.kept.push(pairs, present.nonzero()[:, 1] + 1)
        if self.form == "code":
            return total + self.weight_lac * contrastive_loss(everything, classes, self.temperature)
        cells = present.numel() if mask is None else int(mask.sum())
        return total + self.weight_lac * contrastive_loss(
            everything,
            classes,
            self.temperature,
            "paper",
            anchors=self.kept.find_newest_slots(len(pairs)),
            embedding_count=2 * cells,
        )
