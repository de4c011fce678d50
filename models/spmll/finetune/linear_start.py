"""Initial classifier weights from a linear head on pretrained features."""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from spmll.finetune.views import Examples, iterate_in_order
from spmll.linear.training import Array, Head, TrainingSettings, fit
from spmll.methods.base import Method

BATCH_IMAGES = 64  # images that pass through the frozen network at once
LINEAR_START_SETTINGS = TrainingSettings(epochs=25)


def fit_linear_start(
    network: nn.Module,
    examples: Examples,
    labels: Array,
    method: Method,
    settings: TrainingSettings = LINEAR_START_SETTINGS,
    *,
    mask: Array | None = None,
    seed: int = 0,
    score: Callable[[Head], float] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    pooled: Callable[[], Tensor] | None = None,
) -> list[Tensor]:
    """Initialize the classifier by training it with `method` on frozen pooled features.

    "LinearInit." of Cole et al. 2021, sec. 6.1 and table 1. Other arguments are those of
    `spmll.linear.training.fit`.

    Args:
        network: Its classifier is overwritten. Classes without positives keep theirs unless `settings.every_class`.
        score: Quality of a head, to select the best epoch. None selects the last.
        should_stop: Called per batch. True ends the training.
        pooled: Returns features computed by several processes. None computes them here.

    Returns:
        Learned tensors for ResumePoint.learned (ROLE: label estimates).
    """
    network.to(examples.device)
    features = pooled() if pooled is not None else compute_pooled_features(network, examples, should_stop, None)
    classifier = cast("nn.Linear", network.classifier)
    head = Head(features.shape[1], classifier.out_features)
    chosen: tuple[float, Tensor, Tensor, list[Tensor]] | None = None
    for _ in fit(head, features, labels, method, settings, mask=mask, seed=seed, should_stop=should_stop):
        value = score(head) if score is not None else 0.0
        if chosen is None or score is None or value > chosen[0]:
            learned = [tensor.detach().clone() for group in method.parameter_groups() for tensor in group["params"]]
            chosen = value, head.weight, head.bias, learned
    if chosen is None:
        return []
    _, weight, bias, learned = chosen
    known = torch.isfinite(bias)
    with torch.no_grad():
        device = classifier.weight.device
        classifier.weight[known.to(device)] = weight[known].to(device)
        classifier.bias[known.to(device)] = bias[known].to(device)
    return learned


@torch.no_grad()
def compute_pooled_features(
    network: nn.Module, examples: Examples, should_stop: Callable[[], bool], amp: torch.dtype | None
) -> Tensor:
    """Return `network.features` of all images, (N, D) float32, without augmentation.

    Args:
        should_stop: Called per batch and may raise.
        amp: Half-precision type, or None for float32.
    """
    network.eval()
    pooled = cast("Callable[[Tensor], Tensor]", network.features)
    features = []
    for images in iterate_in_order(examples, BATCH_IMAGES):
        should_stop()
        with torch.autocast(examples.device.type, amp or torch.float32, enabled=amp is not None):
            features.append(pooled(images).float())
    return torch.cat(features)
