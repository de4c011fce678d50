"""Initial weights of a network's classifier: a linear head trained on features of the pretrained backbone."""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from spmll.finetune.views import Examples, iterate_in_order
from spmll.linear.training import Array, Head, fit
from spmll.methods.base import Method

BATCH_IMAGES = 64  # images that pass through the frozen network at once


def fit_linear_start(
    network: nn.Module,
    examples: Examples,
    labels: Array,
    method: Method,
    *,
    mask: Array | None = None,
    epochs: int = 25,
    lr: float | None = None,
    batch: int | None = None,
    seed: int = 0,
    score: Callable[[Head], float] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    pooled: Callable[[], Tensor] | None = None,
    every_class: bool = False,
) -> list[Tensor]:
    """Initialise the network's classifier: train it with `method` on the pooled features of the frozen backbone.

    Other arguments are as in spmll.linear.training.fit.

    Args:
        network: With `features` and `classifier` (spmll/finetune/whole_network.py); its classifier is overwritten,
            except, unless `every_class`, for classes without a positive.
        examples: The images.
        labels: As in spmll.linear.training.fit.
        method: As in spmll.linear.training.fit.
        mask: As in spmll.linear.training.fit.
        epochs: The number of epochs.
        lr: As in spmll.linear.training.fit.
        batch: As in spmll.linear.training.fit.
        seed: As in spmll.linear.training.fit.
        score: Returns the quality of a head (validation mAP); the best epoch is used. None: the last epoch is used.
        should_stop: Called before every batch; once it returns True, the training ends.
        pooled: Returns the pooled features of all images, where several processes compute them; None: this process
            computes them.
        every_class: As in spmll.linear.training.fit.

    Returns:
        The tensors that the method learned beside the classifier (ROLE: the logits of its label estimates), for
            fit_network(learned=...).

    Source: "LinearInit." of Cole et al. 2021, sec. 6.1 and table 1: 25 epochs, as in their linear experiments, whose
    features are made without augmentation.
    """
    network.to(examples.device)
    features = pooled() if pooled is not None else compute_pooled_features(network, examples, should_stop, None)
    classifier = cast("nn.Linear", network.classifier)
    head = Head(features.shape[1], classifier.out_features)
    chosen: tuple[float, Tensor, Tensor, list[Tensor]] | None = None
    for _ in fit(
        head,
        features,
        labels,
        method,
        mask=mask,
        epochs=epochs,
        lr=lr,
        batch=batch,
        seed=seed,
        every_class=every_class,
        should_stop=should_stop,
    ):
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
    """Return `network.features` of each image without augmentation: (N, D) float32, on the device of the examples.

    Args:
        network: With `features` (spmll/finetune/whole_network.py).
        examples: The images.
        should_stop: Called before every batch; may raise to end the computation.
        amp: A half-precision type to compute in; None: float32.
    """
    network.eval()
    pooled = cast("Callable[[Tensor], Tensor]", network.features)
    features = []
    for images in iterate_in_order(examples, BATCH_IMAGES):
        should_stop()
        with torch.autocast(examples.device.type, amp or torch.float32, enabled=amp is not None):
            features.append(pooled(images).float())
    return torch.cat(features)
