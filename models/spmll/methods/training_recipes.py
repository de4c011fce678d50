"""How a paper trained a whole network: the settings that are not the method's own constants."""

from dataclasses import dataclass, field, replace
from typing import Any

BENCHMARK_SETS = ("voc", "coco", "nus", "cub")


@dataclass(frozen=True)
class TrainingRecipe:
    """One paper's settings for one data set, for ResNet-50 at 448 pixels unless noted otherwise.

    Attributes:
        parameters: The method's constants that differ from its defaults.
        lr: Learning rate of the backbone.
        head_lr_scale: Factor by which the classifier's learning rate is larger.
        batch: Images a step.
        epochs: Passes over the training images.
        optimiser: "adam", "sgd" or "adamw_onecycle".
        momentum: Momentum of "sgd".
        weight_decay: As the optimiser defines it.
        precision: "fp32"; "bf16" or "fp16" (with scaled gradients) where float32 is not needed; or "auto": bfloat16, or
            float16, where CUDA offers it, else float32. Losses are always computed in float32.
        drop_last: Whether the last batch of an epoch is left out of the training where it is not full.
        linear_lr, linear_batch: Learning rate and batch of the epochs in which the backbone is frozen
            (Method.freezes_backbone); None if there are no such epochs.
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
    """Return one paper's settings for each of the four data sets in BENCHMARK_SETS, by name."""
    return dict(zip(BENCHMARK_SETS, (voc, coco, nus, cub), strict=True))


def shared_protocol(**parameters: tuple) -> dict[str, TrainingRecipe]:
    """Return the settings under which the baselines of this literature are compared, for each of `BENCHMARK_SETS`.

    Cole et al. (2021) searched learning rates 1e-2 to 1e-5 and batches of 8 and 16, and did not publish what they
    found. These are the settings with which Zhou et al. (ECCV 2022) ran the same protocol again: Adam, one learning
    rate for all weights, ten epochs. ASL, Hill, SPLC and ZLPR come from papers with a protocol of their own; the tables
    of single-positive learning list them under this one.

    Args:
        parameters: Constants of the method, each with its four values in the order of `BENCHMARK_SETS`.

    Raises:
        ValueError: A constant does not have one value for each set.
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
    """Return `shared_protocol` for a loss of Cole et al. (2021), whose code leaves out a last batch that is not full.

    Theirs does so in validation and test as well, where up to 15 images then count for nothing; here all count.
    """
    return {name: replace(settings, drop_last=True) for name, settings in shared_protocol(**parameters).items()}


# The authors of OPML train with SGD; their learning rate, batch and epochs are lost. These are a guess from neighbours:
# the momentum SGD of Kim et al. (CVPR 2022), slower, because this loss is not divided by the number of classes.
OPML_RECIPES = recipes_by_set(*[TrainingRecipe(1e-3, 16, 10, head_lr_scale=10, optimiser="sgd")] * 4)
