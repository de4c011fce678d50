"""Adaptation of a pretrained network to a collection: its last stages are trained on the collection's answers.

    inputs, last_stages, _ = split(backbone, source)            models/finetune/last_stages.py
    training = adapt(last_stages, examples, labels, ...)        examples: outputs of `inputs` for each image, two views
    for epoch in training: ...                                  stops and continues, as fit_network
    whole = put_back(source, last_stages)                       and models/backbones/local_dir.py saves it

The classifier begins as the linear head on the frozen features (Kumar et al., "Fine-Tuning can Distort Pretrained
Features and Underperform Out-of-Distribution", ICLR 2022), so that the first steps do not spoil the features. Then all
of the last stages are trained with it: AdamW, one cycle of the learning rate, images and their mirror images.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from models.finetune.answers import Answers, loss_for
from models.finetune.fit_network import NetworkTraining, fit_network
from models.finetune.last_stages import LastStages
from models.finetune.linear_start import linear_start
from models.finetune.together import Together
from models.finetune.views import Examples
from models.finetune.whole_network import WholeNetwork
from models.methods.base import Method
from models.methods.end_to_end import EndToEnd

WEAK_VIEWS = 2  # the image and its mirror image
LR, BATCH, EPOCHS, WEIGHT_DECAY = 3e-4, 32, 4, 0.01
BATCH_OF_FEATURES = 64


def settings_of(epochs: int = EPOCHS) -> EndToEnd:
    """Return the settings for training the last stages. Raise ValueError for fewer than one epoch."""
    if epochs < 1:
        raise ValueError(f"There must be at least one epoch, not {epochs}.")
    return EndToEnd(LR, BATCH, epochs, optimiser="adamw_onecycle", weight_decay=WEIGHT_DECAY, precision="auto")


def adapt(
    last_stages: LastStages,
    examples: Examples,
    labels: np.ndarray,
    mask: np.ndarray,
    unbiased: np.ndarray,
    method: Method,
    settings: EndToEnd,
    *,
    seed: int = 0,
    checkpoint: Path | None = None,
    should_stop: Callable[[], bool] | None = None,
    together: Together | None = None,
) -> NetworkTraining:
    """Return a training of the last stages, which are changed; iterating it trains one epoch at a time.

    A training continued from a checkpoint ends, on a CPU, with the same weights as an uninterrupted one. Other
    arguments, and errors, are as in fit_network.

    Args:
        last_stages: The stages to train.
        examples: The inputs of the first trained stage, of N images in WEAK_VIEWS views.
        labels: (N, C) int8, 1 present, -1 absent, 0 unanswered.
        mask: (N, C) bool, False where somebody was unsure.
        unbiased: (N, C) bool, True for answers to cells that were not selected by their likely state.
        method: The project's method; single positives go through its loss (answers.py).
        settings: As in fit_network.
        seed: Decides all that is random.
        checkpoint: The file that the training goes on from and is saved in; None: it is not saved.
        should_stop: As in fit_network.
        together: Training with other processes, each of which holds some of the images and calls this with equal
            arguments.
    """
    answers = Answers(loss_for(method), torch.from_numpy(np.ascontiguousarray(unbiased, bool)))
    network = with_classifier(last_stages, examples, labels.shape[1], seed, together)
    stopped = should_stop or (lambda: False)
    if checkpoint is None or not checkpoint.exists():
        pooled = None if together is None else partial(_pooled_together, last_stages, examples, together)
        linear_start(network, examples, labels, answers, mask=mask, seed=seed, should_stop=stopped, pooled=pooled)
    return fit_network(
        network,
        examples,
        labels,
        answers,
        settings,
        mask=mask,
        seed=seed,
        checkpoint=checkpoint,
        should_stop=stopped,
        together=together,
    )


def _pooled_together(last_stages: LastStages, examples: Examples, together: Together) -> Tensor:
    """Return the features of all images, of which each process computes its own."""
    own = torch.from_numpy(features_of(last_stages, examples, lambda: False, together.own)).float()
    return together.gathered(own).to(examples.device)


def with_classifier(
    last_stages: LastStages, examples: Examples, classes: int, seed: int, together: Together | None = None
) -> WholeNetwork:
    """Return the last stages followed by a classifier with random weights, on the device of the examples."""
    last_stages.to(examples.device).eval()
    with torch.no_grad():
        first = torch.zeros(1, dtype=torch.int64) if together is None else together.own[:1]
        dimensions = last_stages(examples.batch(first, 1, False, torch.Generator())).shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return WholeNetwork(last_stages, nn.Linear(dimensions, classes))


@torch.no_grad()
def features_of(
    last_stages: LastStages,
    examples: Examples,
    should_stop: Callable[[], bool],
    rows: Tensor | None = None,
    *,
    as_backbone: bool = False,
) -> np.ndarray:
    """Return the features that the classifier reads, by the last stages as they are now: (n, D) float16.

    Args:
        last_stages: The last stages of the network.
        examples: Their inputs.
        should_stop: Called before every batch; may raise to end the computation.
        rows: (n,) int64, the images; None: all.
        as_backbone: Return the features that a backbone of this network would give instead.
    """
    last_stages.to(examples.device).eval()
    features: list[np.ndarray] = []
    forward = last_stages.as_backbone if as_backbone else last_stages
    for part in (torch.arange(len(examples)) if rows is None else rows).split(BATCH_OF_FEATURES):
        should_stop()
        features.append(forward(examples.batch(part, 1, False, torch.Generator())).cpu().numpy())
    return np.concatenate(features).astype(np.float16)
