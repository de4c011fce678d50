"""Adaptation of a pretrained network's last stages to the answers of a collection.

    inputs, last_stages, _ = split_network(backbone, source)
    for epoch in adapt_last_stages(last_stages, examples, ...): ...
    whole = merge_last_stages(source, last_stages)

The classifier starts as the linear head (Kumar et al., ICLR 2022), so that first steps do not spoil features. Training
uses AdamW, one-cycle learning rates and mirrored images.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from spmll.finetune.answer_method import AnswerMethod, choose_single_positive_method
from spmll.finetune.fit_network import NetworkTraining, fit_network
from spmll.finetune.last_stages import LastStages
from spmll.finetune.linear_start import fit_linear_start
from spmll.finetune.parallel_process import ParallelProcess
from spmll.finetune.resume_point import ResumePoint
from spmll.finetune.views import Examples
from spmll.finetune.whole_network import WholeNetwork
from spmll.methods.base import Method
from spmll.methods.training_recipes import TrainingRecipe

WEAK_VIEWS = 2  # the image and its mirror image
LEARNING_RATE, BATCH_IMAGES, DEFAULT_EPOCHS, WEIGHT_DECAY = 3e-4, 32, 4, 0.01
FEATURE_BATCH_IMAGES = 64


def make_adaptation_recipe(epochs: int = DEFAULT_EPOCHS) -> TrainingRecipe:
    """Return the settings for training last stages. Raise ValueError below one epoch."""
    if epochs < 1:
        raise ValueError(f"There must be at least one epoch, not {epochs}.")
    return TrainingRecipe(
        LEARNING_RATE, BATCH_IMAGES, epochs, optimiser="adamw_onecycle", weight_decay=WEIGHT_DECAY, precision="auto"
    )


@dataclass(frozen=True, eq=False)
class AdaptationLabels:
    """The answers that last stages are adapted to.

    Attributes:
        labels: (N, C) int8, 1 present, -1 absent, 0 unanswered.
        mask: (N, C) bool, False if unsure.
        unbiased: (N, C) bool, answers to cells selected independently of their state.
    """

    labels: np.ndarray
    mask: np.ndarray
    unbiased: np.ndarray


def adapt_last_stages(
    last_stages: LastStages,
    examples: Examples,
    answers: AdaptationLabels,
    method: Method,
    settings: TrainingRecipe,
    *,
    seed: int = 0,
    checkpoint: Path | None = None,
    should_stop: Callable[[], bool] | None = None,
    parallel: ParallelProcess | None = None,
) -> NetworkTraining:
    """Return a training that updates the last stages in place, one epoch per iteration.

    `checkpoint` is that of ResumePoint. Other arguments are those of `fit_network`.

    Args:
        examples: Inputs of the first trained stage, in WEAK_VIEWS views.
        method: Method for images without unbiased answers (answer_method.py).
    """
    answer_method = AnswerMethod(
        choose_single_positive_method(method), torch.from_numpy(np.ascontiguousarray(answers.unbiased, bool))
    )
    network = add_classifier(last_stages, examples, answers.labels.shape[1], seed, parallel)
    stopped = should_stop or (lambda: False)
    if checkpoint is None or not checkpoint.exists():
        pooled = None if parallel is None else partial(_gather_pooled_features, last_stages, examples, parallel)
        fit_linear_start(
            network,
            examples,
            answers.labels,
            answer_method,
            mask=answers.mask,
            seed=seed,
            should_stop=stopped,
            pooled=pooled,
        )
    return fit_network(
        network,
        examples,
        answers.labels,
        answer_method,
        settings,
        mask=answers.mask,
        seed=seed,
        resume=ResumePoint(checkpoint),
        should_stop=stopped,
        parallel=parallel,
    )


def _gather_pooled_features(last_stages: LastStages, examples: Examples, parallel: ParallelProcess) -> Tensor:
    """Return the pooled features of all images, each computed by the process that holds the image."""
    own = torch.from_numpy(compute_stage_features(last_stages, examples, lambda: False, parallel.own_images)).float()
    return parallel.gather(own).to(examples.device)


def add_classifier(
    last_stages: LastStages, examples: Examples, classes: int, seed: int, parallel: ParallelProcess | None = None
) -> WholeNetwork:
    """Append a randomly initialized classifier to the last stages."""
    last_stages.to(examples.device).eval()
    with torch.no_grad():
        first = torch.zeros(1, dtype=torch.int64) if parallel is None else parallel.own_images[:1]
        dimensions = last_stages(examples.batch(first, 1, False, torch.Generator())).shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return WholeNetwork(last_stages, nn.Linear(dimensions, classes))


@torch.no_grad()
def compute_stage_features(
    last_stages: LastStages,
    examples: Examples,
    should_stop: Callable[[], bool],
    rows: Tensor | None = None,
    *,
    as_backbone: bool = False,
) -> np.ndarray:
    """Return the features that the last stages pass to the classifier, (n, D) float16.

    Args:
        should_stop: Called per batch and may raise.
        rows: (n,), None selects all.
        as_backbone: Return backbone features instead.
    """
    last_stages.to(examples.device).eval()
    features: list[np.ndarray] = []
    forward = last_stages.compute_backbone_features if as_backbone else last_stages
    for part in (torch.arange(len(examples)) if rows is None else rows).split(FEATURE_BATCH_IMAGES):
        should_stop()
        features.append(forward(examples.batch(part, 1, False, torch.Generator())).cpu().numpy())
    return np.concatenate(features).astype(np.float16)
