"""One trainer per kind of method input. A new kind is one class and one entry.

Nothing else in spmll imports this package, to avoid import cycles.
"""

from pkgutil import resolve_name
from typing import Any

from spmll.losses.base import unknown_name_error
from spmll.methods.base import Method
from spmll.trainers.base import Trainer, TrainingInputs, TrainingLabels

# By name, loaded when first used: that of maps needs torchvision, which takes two seconds to import.
TRAINERS = {
    "features": "spmll.trainers.linear:LinearTrainer",
    "regions": "spmll.trainers.regions:RegionTrainer",
    "maps": "spmll.trainers.maps:MapTrainer",
}


def get_trainer_class(reads: str) -> type[Trainer]:
    """Return the trainer class for an input.

    Args:
        reads: Value of `Method.reads`.

    Returns:
        The class.

    Raises:
        ValueError: Unknown input.
    """
    if reads not in TRAINERS:
        raise unknown_name_error("trainer for methods that read", reads, TRAINERS)
    return resolve_name(TRAINERS[reads])


def make_trainer(method: Method, images: TrainingInputs, labels: TrainingLabels, **options: Any) -> Trainer:
    """Create a method's trainer.

    Args:
        method: The method.
        images: Inputs of all images.
        labels: Labels of some images.
        **options: Arguments of `Trainer`.

    Returns:
        The prepared trainer.

    Raises:
        ValueError: Inputs do not fit.
    """
    return get_trainer_class(method.reads)(method, images, labels, **options)
