"""How long a table takes: measured steps of training and prediction on this device, times their number.

A few batches of each kind of network are trained and predicted, files read from the disk included, at the size and
precision of the comparison. What follows is an upper bound: trainings that their paper would end early end early, and
epochs with a frozen backbone cost next to nothing. Heads on cached features are not counted, the features are.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.methods import data
from annotator.benchmark.methods.finetune import Network, settings_of, whole_network_trainer
from annotator.benchmark.methods.options import Options
from annotator.benchmark.methods.task import Choice, task_of
from annotator.worker.features.embed import embed
from models.backbones.networks import load_backbone
from models.methods import METHODS, make_method
from models.methods.end_to_end import SETS
from models.trainers.base import Resume

BATCHES = 4  # that are timed, after as many that warm up
EMBEDDED = 64  # images that are analyzed to time it


@dataclass(frozen=True)
class Pace:
    """Images a second of one network on one device.

    Attributes:
        train: In training.
        predict: In prediction.
    """

    train: float
    predict: float


class Duration:
    """The expected seconds of comparisons on one data set; each kind of network is timed once."""

    def __init__(self, dataset: DataSet, timed: Callable[[DataSet, str, Choice, Network], Pace] | None = None):
        """Time nothing yet.

        Args:
            dataset: The data set.
            timed: Returns the pace of a network; None: `pace`, which measures it.
        """
        self._dataset, self._timed = dataset, timed or pace
        self._paces: dict[tuple, Pace] = {}
        self._embedded: set[str] = set()

    def seconds(self, options: Options) -> float:
        """Return how long a comparison of one method takes.

        Args:
            options: What Options.checked returned, for one share of labels.

        Raises:
            ValueError: The network cannot be built, or an image cannot be read.
        """
        if options.regime == "linear":
            return self._embedding(options)
        name, parts = options.methods[0], {part: len(getattr(self._dataset, part)) for part in data.PARTS}
        network = Network.build(options, self._dataset.name if self._dataset.name in SETS else "voc")
        choice = Choice(parameters=options.parameters.get(name, {}))
        settings = settings_of(name, choice, network)
        own_network = METHODS[name].reads == "maps"
        key = (own_network and name, settings.batch, options.backbone, options.size, options.device)
        if key not in self._paces:
            timed = (name, choice) if own_network else ("an", Choice())
            self._paces[key] = self._timed(self._dataset, *timed, replace(network, epochs=2, batch=settings.batch))
        speed = self._paces[key]
        trained = settings.epochs - _frozen_epochs(name, settings.parameters, settings.epochs)
        validated = parts["val"] * settings.epochs if options.validate != "none" else 0
        predicted = validated + parts["train"] + parts["test"]
        return options.seeds * (trained * parts["train"] / speed.train + predicted / speed.predict)

    def _embedding(self, options: Options) -> float:
        """Return the seconds until the features of all images are there, for the first comparison that needs them."""
        if options.network in self._embedded:
            return 0.0
        self._embedded.add(options.network)
        paths = data.everything(self._dataset).paths
        backbone = load_backbone(options.network, options.device)
        for some in (paths[:EMBEDDED], paths[-EMBEDDED:]):  # the first warms up
            started = time.perf_counter()
            list(embed(some, backbone, regions=True))
        return len(paths) * (time.perf_counter() - started) / len(some)


def pace(dataset: DataSet, name: str, choice: Choice, network: Network) -> Pace:
    """Train and predict a few batches of a set, and return how fast that was.

    Args:
        dataset: Its first images that show anything are read.
        name: The method that is trained.
        choice: Its settings.
        network: The network; with two epochs, the first of which warms up, and a batch size.

    Raises:
        ValueError: As the training does.
    """
    count = BATCHES * (network.batch or 1)
    parts = {
        part: getattr(dataset, part).rows(np.flatnonzero(getattr(dataset, part).truth.any(1))[:count])
        for part in data.PARTS
    }
    few = replace(dataset, **parts, observed=np.zeros((0, 0), np.int8), official_rows=None, areas=None)
    task = task_of(few, 1.0, 0)
    trainer = whole_network_trainer(name, choice, task, data.everything(few).paths, network, 0, Resume())
    seconds = [epoch.seconds for epoch in trainer.epochs()]
    _wait(network.device)
    started = time.perf_counter()
    trainer.predict(task.test)
    return Pace(len(task.train) / seconds[-1], len(task.test) / (time.perf_counter() - started))


def _frozen_epochs(name: str, parameters: dict, epochs: int) -> int:
    """Return in how many of its epochs a method trains the classifier alone."""
    method = make_method(name, **parameters)
    method.begin(torch.zeros(1, 1, dtype=torch.int8), None, epochs, torch.Generator())
    return sum(method.freezes_backbone(epoch) for epoch in range(1, epochs + 1))


def _wait(device: str) -> None:
    """Wait until the device has done all that it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
