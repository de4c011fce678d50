"""Adapting a pretrained network to a collection: its last stages are trained on the answers that there are.

    inputs, last_stages, _ = split(backbone, source)            models/finetune/last_stages.py
    training = adapt(last_stages, examples, labels, ...)        examples: what `inputs` gave of each image, twice
    for epoch in training: ...                                  stops and goes on, as fit_network
    whole = put_back(source, last_stages)                       and models/backbones/local_dir.py keeps it

The classifier begins as the linear head on the frozen features (Kumar et al., "Fine-Tuning can Distort Pretrained
Features and Underperform Out-of-Distribution", ICLR 2022), so that the first steps do not spoil the features. Then all
of the last stages are trained with it: AdamW, one cycle of the learning rate, images and their mirror images.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from models.finetune.answers import Answers, loss_for
from models.finetune.fit_network import NetworkTraining, fit_network
from models.finetune.last_stages import LastStages
from models.finetune.linear_start import linear_start, pooled_features
from models.finetune.views import Examples
from models.finetune.whole_network import WholeNetwork
from models.methods.base import Method
from models.methods.published import EndToEnd

WEAK_VIEWS = 2  # the image and its mirror image
LR, BATCH, EPOCHS, WEIGHT_DECAY = 3e-4, 32, 4, 0.01


def settings_of(epochs: int = EPOCHS) -> EndToEnd:
    """How the last stages are trained. Raises ValueError for fewer than one epoch."""
    if epochs < 1:
        raise ValueError(f"There must be at least one epoch, not {epochs}.")
    return EndToEnd(LR, BATCH, epochs, optimiser="adamw_onecycle", weight_decay=WEIGHT_DECAY)


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
) -> NetworkTraining:
    """Train the last stages, one epoch at each step of what is returned; they are changed.

    examples    the inputs of the first trained stage, of N images in WEAK_VIEWS views
    labels      (N, C) int8, 1 present, -1 absent, 0 unanswered; mask (N, C) bool, False where somebody was unsure;
                unbiased (N, C) bool, answers that were not chosen by their state
    method      of the project: single positives go through its loss (answers.py)

    All else, and what is raised, as in fit_network; a training that goes on from a checkpoint ends with the same
    weights on a CPU as one that was not interrupted.
    """
    answers = Answers(loss_for(method), torch.from_numpy(np.ascontiguousarray(unbiased, bool)))
    network = with_classifier(last_stages, examples, labels.shape[1], seed)
    stopped = should_stop or (lambda: False)
    if checkpoint is None or not checkpoint.exists():
        linear_start(network, examples, labels, answers, mask=mask, seed=seed, should_stop=stopped)
    return fit_network(
        network, examples, labels, answers, settings, mask=mask, seed=seed, checkpoint=checkpoint, should_stop=stopped
    )


def with_classifier(last_stages: LastStages, examples: Examples, classes: int, seed: int) -> WholeNetwork:
    """The last stages with a classifier of random weights behind them, on the device of the examples."""
    last_stages.to(examples.device).eval()
    with torch.no_grad():
        one = examples.batch(torch.zeros(1, dtype=torch.int64), 1, False, torch.Generator())
        dimensions = last_stages(one).shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return WholeNetwork(last_stages, nn.Linear(dimensions, classes))


def features_of(last_stages: LastStages, examples: Examples, should_stop: Callable[[], bool]) -> np.ndarray:
    """The features of images by the adapted network, (N, D) float16; should_stop may raise to end it."""
    network = WholeNetwork(last_stages, nn.Linear(1, 1))
    return pooled_features(network, examples, should_stop, None).cpu().numpy().astype(np.float16)
