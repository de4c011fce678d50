"""How a paper trained a whole network: the settings that are not the method's own constants."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class EndToEnd:
    """One paper's settings for one data set, for ResNet-50 at 448 pixels unless it says otherwise.

    parameters      the method's constants that differ from its defaults
    lr              learning rate of the backbone
    head_lr_scale   how many times that the classifier gets
    batch           images a step
    epochs          passes over the training images
    optimiser       "adam", "sgd" or "adamw_onecycle"
    momentum        of sgd
    weight_decay    as the optimiser defines it
    """

    lr: float
    batch: int
    epochs: int
    parameters: dict[str, Any] = field(default_factory=dict)
    head_lr_scale: float = 1.0
    optimiser: str = "adam"
    momentum: float = 0.9
    weight_decay: float = 0.0
