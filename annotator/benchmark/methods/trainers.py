"""How one method is trained in a comparison: the features, the maps or the files it is given, made once for all."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.harness.processes import say
from annotator.benchmark.methods import data
from annotator.benchmark.methods.finetune import Network, train_network
from annotator.benchmark.methods.linear import train_linear
from annotator.benchmark.methods.maps import train_on_maps
from annotator.benchmark.methods.options import Options
from annotator.benchmark.methods.parts import parts_of, train_on_parts
from annotator.benchmark.methods.task import Choice, Task, Trained
from annotator.benchmark.methods.work import Work
from annotator.worker.map_cache import MapFiles
from models.backbones.feature_maps import FeatureMaps
from models.backbones.networks import load_backbone
from models.ensemble.regions import RegionCodes
from models.methods import METHODS
from models.methods.published import SETS

Trainer = Callable[[str, Choice, Task, int, Path], Trained]  # method, how, on what, seed, what its state is called


def trainer(dataset: DataSet, options: Options) -> Trainer:
    """What trains a method as the options say. Raises ValueError for a backbone there is not, AnnotatorError."""
    paths = data.everything(dataset).paths
    if options.regime == "finetune":
        published = dataset.name if dataset.name in SETS else "voc"
        network = Network(
            options.backbone,
            options.size,
            options.device,
            published,
            options.epochs,
            options.batch,
            options.linear_init,
        )

        def end_to_end(name: str, choice: Choice, task: Task, seed: int, state: Path) -> Trained:
            return train_network(name, choice, task, paths, network, seed, state)

        return end_to_end

    kept = Work(options.work, {"data": data.fingerprint(dataset), "backbone": options.backbone})
    both = kept.array("features", lambda: data.embedded(dataset, options.backbone, options.device))
    features = np.ascontiguousarray(both[:, 0])

    @cache
    def maps() -> MapFiles:
        return MapFiles(kept.place("maps"), FeatureMaps(load_backbone(options.backbone, options.device)))

    @cache
    def parts() -> RegionCodes:
        say("looking at regions of images")
        return parts_of(features, both[:, 1:], np.arange(len(dataset.train)))

    def on_frozen(name: str, choice: Choice, task: Task, seed: int, state: Path) -> Trained:
        if METHODS[name].reads == "maps":
            return train_on_maps(name, choice, task, maps(), paths, seed, state, options.epochs)
        if METHODS[name].reads == "regions":
            return train_on_parts(name, choice, task, features, parts(), seed, options.epochs)
        return train_linear(name, choice, task, features, seed, options.epochs, options.batch)

    return on_frozen
