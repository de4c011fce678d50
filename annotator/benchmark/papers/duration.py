"""How long a table takes: measured steps of training and prediction on this device, times their number.

A few batches of each kind of network are trained and predicted, files read from the disk included, at the size and
precision of the comparison. What follows is an upper bound: trainings that their paper would end early end early, and
epochs with a frozen backbone cost next to nothing. Of a linear classifier a few steps are timed in the same way, and
all that its protocol tries is counted, but not the scoring of its epochs.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import torch
from torch import nn

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.methods import cole, data
from annotator.benchmark.methods.finetune import Network, settings_of, whole_network_trainer
from annotator.benchmark.methods.options import Options
from annotator.benchmark.methods.task import Choice, task_of
from models.methods import METHODS, make_method
from models.methods.end_to_end import SETS
from models.trainers.base import Resume

BATCHES = 4  # that are timed, after as many that warm up
STEPS = 50  # of a linear classifier that are timed, after as many that warm up
WIDTH = 2048  # features of an image by ResNet-50, on which the papers train linear classifiers


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

    def __init__(
        self,
        dataset: DataSet,
        timed: Callable[[DataSet, str, Choice, Network], Pace] | None = None,
        step: Callable[[DataSet, Options], float] | None = None,
    ):
        """Time nothing yet.

        Args:
            dataset: The data set.
            timed: Returns the pace of a network; None: `pace`, which measures it.
            step: Returns the seconds of a step of a linear classifier; None: `step_seconds`, which measures it.
        """
        self._dataset, self._timed, self._step = dataset, timed or pace, step or step_seconds
        self._images = {part: len(getattr(dataset, part)) for part in data.PARTS}
        self._paces: dict[tuple, Pace] = {}
        self._with_features: set[str] = set()

    def seconds(self, options: Options) -> float:
        """Return how long a comparison of one method takes.

        Args:
            options: What Options.checked returned, for one share of labels: whole networks, or the linear protocol of
                Cole et al.

        Raises:
            ValueError: The network cannot be built, or an image cannot be read.
        """
        network = Network.build(options, self._dataset.name if self._dataset.name in SETS else "voc")
        if options.protocol == "cole":
            return self._features(network) + self._classifiers(options)
        return self._whole_networks(options, network)

    def _whole_networks(self, options: Options, network: Network) -> float:
        """Return the seconds of training a method end to end."""
        name = options.methods[0]
        choice = Choice(parameters=options.parameters.get(name, {}))
        settings, speed = settings_of(name, choice, network), self._pace(name, choice, network)
        trained = settings.epochs - _frozen_epochs(name, settings.parameters, settings.epochs)
        validated = self._images["val"] * settings.epochs if options.validate != "none" else 0
        predicted = validated + self._images["train"] + self._images["test"]
        return options.seeds * (trained * self._images["train"] / speed.train + predicted / speed.predict)

    def _features(self, network: Network) -> float:
        """Return the seconds until the features of all images are there, for the first comparison that needs them."""
        if network.backbone in self._with_features:
            return 0.0
        self._with_features.add(network.backbone)
        return sum(self._images.values()) / self._pace("an", Choice(), network).predict

    def _classifiers(self, options: Options) -> float:
        """Return the seconds of trying all settings of the linear protocol, and of the runs with the best one."""
        settings = [cole.settings_of(choice, options.epochs) for choice in cole.grid()]
        steps = [one.epochs * ceil(self._images["train"] / one.batch) for one in settings]
        return self._step(self._dataset, options) * (sum(steps) + options.seeds * max(steps))

    def _pace(self, name: str, choice: Choice, network: Network) -> Pace:
        """Return the pace of a method's network; all methods but those with a network of their own share one."""
        own_network, batch = METHODS[name].reads == "maps", settings_of(name, choice, network).batch
        key = (own_network and name, batch, network.backbone, network.size, network.device)
        if key not in self._paces:
            timed = (name, choice) if own_network else ("an", Choice())
            self._paces[key] = self._timed(self._dataset, *timed, replace(network, epochs=2, batch=batch))
        return self._paces[key]


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


def step_seconds(dataset: DataSet, options: Options) -> float:
    """Train a linear classifier for some steps, and return the seconds of one.

    Features are zeros; the labels are those of the whole set, because some methods learn a number for each of them.

    Args:
        dataset: The images.
        options: Those of a comparison of one method.
    """
    (name,) = options.methods
    method, batch = make_method(name, **options.parameters.get(name, {})), max(cole.BATCHES)
    absences = method.known_absences
    given = task_of(dataset, 1.0, 0, absences={absences}).training_labels(method.full_labels, absences)
    labels = torch.from_numpy(given.labels).to(options.device)
    classifier = nn.Linear(WIDTH, labels.shape[1]).to(options.device)
    features, rows = torch.zeros(batch, WIDTH, device=options.device), torch.arange(batch) % len(labels)
    method.begin(labels, None, 1, torch.Generator())
    method.begin_epoch(1)
    optimiser = torch.optim.Adam([{"params": list(classifier.parameters())}, *method.learned()], lr=cole.RATES[-1])
    started = 0.0
    for step in range(2 * STEPS):
        if step == STEPS:
            _wait(options.device)
            started = time.perf_counter()
        optimiser.zero_grad()
        method.loss(classifier(features), rows.to(options.device)).backward()
        optimiser.step()
    _wait(options.device)
    return (time.perf_counter() - started) / STEPS


def _frozen_epochs(name: str, parameters: dict, epochs: int) -> int:
    """Return in how many of its epochs a method trains the classifier alone."""
    method = make_method(name, **parameters)
    method.begin(torch.zeros(1, 1, dtype=torch.int8), None, epochs, torch.Generator())
    return sum(method.freezes_backbone(epoch) for epoch in range(1, epochs + 1))


def _wait(device: str) -> None:
    """Wait until the device has done all that it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
