"""One trainer for each kind of input a method reads; the worker and every benchmark train by these.

A method with another input is one more class here and one entry in TRAINERS. Trainers join `methods` with `linear`,
`ensemble` and `finetune`, which import `methods.base`: inside `methods` they would close a circle. Nothing else in
models imports this package. Begin with base.py.
"""

from pkgutil import resolve_name
from typing import Any

from models.methods.base import Method
from models.trainers.base import Images, Trainer, TrainingLabels

# By name, loaded when first used: that of maps needs torchvision, which takes two seconds to import.
TRAINERS = {
    "features": "models.trainers.linear:LinearTrainer",
    "regions": "models.trainers.regions:RegionTrainer",
    "maps": "models.trainers.maps:MapTrainer",
}


def trainer_class(reads: str) -> type[Trainer]:
    """Return the trainer class of methods that read "features", "regions" or "maps"."""
    return resolve_name(TRAINERS[reads])


def make_trainer(method: Method, images: Images, labels: TrainingLabels, **options: Any) -> Trainer:
    """Return the trainer of a method on a frozen backbone, chosen by `method.reads`; options as in `Trainer`."""
    return trainer_class(method.reads)(method, images, labels, **options)
