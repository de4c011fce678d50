"""Papers' settings for training whole networks, apart from method constants."""

from dataclasses import dataclass, field, replace
from typing import Any

BENCHMARK_SETS = ("voc", "coco", "nus", "cub")


@dataclass(frozen=True)
class TrainingRecipe:
    """A paper's settings for one data set, usually for ResNet-50 at 448 pixels.

    Attributes:
        parameters: Method constants other than defaults.
        lr: Learning rate of the backbone.
        head_lr_scale: Relative learning rate of the classifier.
        optimiser: "adam", "sgd" or "adamw_onecycle".
        precision: "fp32", "bf16", "fp16", or "auto" for half precision on CUDA.
        drop_last: Whether to skip an incomplete last batch.
        linear_lr, linear_batch: For epochs with a frozen backbone, or None.
    """

    lr: float
    batch: int
    epochs: int
    parameters: dict[str, Any] = field(default_factory=dict)
    head_lr_scale: float = 1.0
    optimiser: str = "adam"
    momentum: float = 0.9
    weight_decay: float = 0.0
    precision: str = "fp32"
    drop_last: bool = False
    linear_lr: float | None = None
    linear_batch: int | None = None


def recipes_by_set(
    voc: TrainingRecipe, coco: TrainingRecipe, nus: TrainingRecipe, cub: TrainingRecipe
) -> dict[str, TrainingRecipe]:
    """Return a paper's settings by data set ("voc", "coco", "nus", "cub")."""
    return dict(zip(BENCHMARK_SETS, (voc, coco, nus, cub), strict=True))


def shared_protocol(**parameters: tuple) -> dict[str, TrainingRecipe]:
    """Return the settings that compare baselines, per data set.

    Cole et al. (2021) published no rates or batches, so these are from Zhou et al. (ECCV 2022): Adam, one
    learning rate, ten epochs.

    Args:
        parameters: Constants, each with four values, else ValueError.
    """
    for name, values in parameters.items():
        if len(values) != len(BENCHMARK_SETS):
            raise ValueError(f"{name} has {len(values)} values; it needs one for each of {', '.join(BENCHMARK_SETS)}.")
    rates, batches = (1e-5, 1e-5, 1e-5, 1e-4), (8, 16, 16, 8)
    constants = [{name: values[i] for name, values in parameters.items()} for i in range(len(BENCHMARK_SETS))]
    return recipes_by_set(
        *(TrainingRecipe(lr, batch, 10, own) for lr, batch, own in zip(rates, batches, constants, strict=True))
    )


def cole_protocol(**parameters: tuple) -> dict[str, TrainingRecipe]:
    """Return `shared_protocol` without incomplete last training batches, as in Cole et al.'s code."""
    return {name: replace(settings, drop_last=True) for name, settings in shared_protocol(**parameters).items()}


# The authors of OPML train with SGD; their learning rate, batch and epochs are lost. These are a guess from neighbours:
# the momentum SGD of Kim et al. (CVPR 2022), slower, because this loss is not divided by the number of classes.
OPML_RECIPES = recipes_by_set(*[TrainingRecipe(1e-3, 16, 10, head_lr_scale=10, optimiser="sgd")] * 4)
