"""Estimates of the time to repeat a paper's table, from steps measured on this device.

They are upper bounds, because early stopping and frozen epochs save time.
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
from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.finetune import Network, build_network_trainer, make_network_recipe
from annotator.benchmark.methods.task import Choice, make_task
from spmll.finetune.resume_point import ResumePoint
from spmll.methods import METHODS, make_method
from spmll.methods.training_recipes import BENCHMARK_SETS

TIMED_BATCHES = 4  # that are timed, after as many that warm up
TIMED_STEPS = 50  # of a linear classifier that are timed, after as many that warm up
FEATURE_WIDTH = 2048  # features of an image by ResNet-50, on which the papers train linear classifiers


@dataclass(frozen=True)
class Pace:
    """The speed of one network in training and prediction, in images per second."""

    train: float
    predict: float


class Duration:
    """An estimator of the seconds that comparisons on one data set take. It times each network once."""

    def __init__(
        self,
        dataset: DataSet,
        time_network: Callable[[DataSet, str, Choice, Network], Pace] | None = None,
        time_step: Callable[[DataSet, Options], float] | None = None,
    ):
        self._dataset, self._time_network, self._time_step = (
            dataset,
            time_network or measure_pace,
            time_step or measure_step_seconds,
        )
        self._images = {part: len(getattr(dataset, part)) for part in data.PART_NAMES}
        self._paces: dict[tuple, Pace] = {}
        self._with_features: set[str] = set()

    def estimate_seconds(self, options: Options) -> float:
        """Return the seconds to compare one method at one labeled share. `options` must be resolved.

        Raises ValueError for an invalid network or unreadable image.
        """
        network = Network.build(options, self._dataset.name if self._dataset.name in BENCHMARK_SETS else "voc")
        if options.protocol == "cole":
            return self._estimate_feature_seconds(network) + self._estimate_classifier_seconds(options)
        return self._estimate_network_seconds(options, network)

    def _estimate_network_seconds(self, options: Options, network: Network) -> float:
        name = options.methods[0]
        choice = Choice(parameters=options.parameters.get(name, {}))
        settings, speed = make_network_recipe(name, choice, network), self._get_pace(name, choice, network)
        trained = settings.epochs - _count_frozen_epochs(name, settings.parameters, settings.epochs)
        validated = self._images["val"] * settings.epochs if options.validate != "none" else 0
        predicted = validated + self._images["train"] + self._images["test"]
        return options.seeds * (trained * self._images["train"] / speed.train + predicted / speed.predict)

    def _estimate_feature_seconds(self, network: Network) -> float:
        """Return the seconds of embedding all images, 0 after the first call, because embeddings are kept."""
        if network.backbone in self._with_features:
            return 0.0
        self._with_features.add(network.backbone)
        return sum(self._images.values()) / self._get_pace("an", Choice(), network).predict

    def _estimate_classifier_seconds(self, options: Options) -> float:
        settings = [cole.make_linear_recipe(choice, options.epochs) for choice in cole.make_grid()]
        steps = [one.epochs * ceil(self._images["train"] / one.batch) for one in settings]
        return self._time_step(self._dataset, options) * (sum(steps) + options.seeds * max(steps))

    def _get_pace(self, name: str, choice: Choice, network: Network) -> Pace:
        own_network, batch = METHODS[name].reads == "maps", make_network_recipe(name, choice, network).batch
        key = (own_network and name, batch, network.backbone, network.size, network.device)
        if key not in self._paces:
            timed = (name, choice) if own_network else ("an", Choice())
            self._paces[key] = self._time_network(self._dataset, *timed, replace(network, epochs=2, batch=batch))
        return self._paces[key]


def measure_pace(dataset: DataSet, name: str, choice: Choice, network: Network) -> Pace:
    """Train on and predict a few batches, and return images per second.

    `network` must have a batch size and two epochs, the first of which is a warm-up. Raises ValueError from training.
    """
    count = TIMED_BATCHES * (network.batch or 1)
    parts = {
        part: getattr(dataset, part).rows(np.flatnonzero(getattr(dataset, part).truth.any(1))[:count])
        for part in data.PART_NAMES
    }
    few = replace(dataset, **parts, observed=np.zeros((0, 0), np.int8), official_rows=None, areas=None)
    task = make_task(few, 1.0, 0)
    trainer = build_network_trainer(name, choice, task, data.join_parts(few).paths, network, 0, ResumePoint())
    seconds = [epoch.seconds for epoch in trainer.epochs()]
    _wait_for_device(network.device)
    started = time.perf_counter()
    trainer.predict(task.test)
    return Pace(len(task.train) / seconds[-1], len(task.test) / (time.perf_counter() - started))


def measure_step_seconds(dataset: DataSet, options: Options) -> float:
    """Return the seconds of one linear training step.

    Labels are those of the whole set, because some methods learn a parameter per label.
    """
    (name,) = options.methods
    method, batch = make_method(name, **options.parameters.get(name, {})), max(cole.BATCH_SIZES)
    absences = method.known_absences
    given = make_task(dataset, 1.0, 0, absences={absences}).make_training_labels(method.full_labels, absences)
    labels = torch.from_numpy(given.labels).to(options.device)
    classifier = nn.Linear(FEATURE_WIDTH, labels.shape[1]).to(options.device)
    features, rows = torch.zeros(batch, FEATURE_WIDTH, device=options.device), torch.arange(batch) % len(labels)
    method.begin(labels, None, 1, torch.Generator())
    method.begin_epoch(1)
    optimiser = torch.optim.Adam(
        [{"params": list(classifier.parameters())}, *method.parameter_groups()], lr=cole.LEARNING_RATES[-1]
    )
    started = 0.0
    for step in range(2 * TIMED_STEPS):
        if step == TIMED_STEPS:
            _wait_for_device(options.device)
            started = time.perf_counter()
        optimiser.zero_grad()
        method.loss(classifier(features), rows.to(options.device)).backward()
        optimiser.step()
    _wait_for_device(options.device)
    return (time.perf_counter() - started) / TIMED_STEPS


def _count_frozen_epochs(name: str, parameters: dict, epochs: int) -> int:
    method = make_method(name, **parameters)
    method.begin(torch.zeros(1, 1, dtype=torch.int8), None, epochs, torch.Generator())
    return sum(method.freezes_backbone(epoch) for epoch in range(1, epochs + 1))


def _wait_for_device(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
