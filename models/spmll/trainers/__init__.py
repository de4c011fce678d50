"""One trainer for each kind of input a method reads; the worker and every benchmark train by these.

A method with another input is one more class here and one entry in TRAINERS. Trainers join `methods` with `linear`,
`ensemble` and `finetune`, which import `methods.base`: inside `methods` they would close a circle. Nothing else in
models imports this package. Begin with base.py.
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
    """Return the class that trains methods with this input.

    Args:
        reads: "features", "regions" or "maps", as in `Method.reads`.

    Returns:
        The class; its module is imported now.

    Raises:
        ValueError: No trainer has this input; the message lists those that there are.
    """
    if reads not in TRAINERS:
        raise unknown_name_error("trainer for methods that read", reads, TRAINERS)
    return resolve_name(TRAINERS[reads])


def make_trainer(method: Method, images: TrainingInputs, labels: TrainingLabels, **options: Any) -> Trainer:
    """Return the trainer of a method on a frozen backbone, by the input of the method.

    Args:
        method: The method to train by.
        images: The inputs of all images.
        labels: The labels of some of them.
        **options: The other arguments of `Trainer`.

    Returns:
        The trainer, prepared.

    Raises:
        ValueError: The inputs do not fit together, or no trainer has the input of the method.
    """
    return get_trainer_class(method.reads)(method, images, labels, **options)
