"""End-to-end training of a method's whole network with its paper's settings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.task import Choice, Task
from annotator.store.pictures.decoding import open_rgb
from spmll.backbones.pretrained import load_pretrained
from spmll.finetune.linear_start import compute_pooled_features, fit_linear_start
from spmll.finetune.resume_point import ResumePoint
from spmll.finetune.views import ImageExamples
from spmll.finetune.whole_network import build_whole_network
from spmll.linear.training import TrainingSettings
from spmll.methods import METHODS, make_method
from spmll.methods.training_recipes import TrainingRecipe, shared_protocol
from spmll.trainers.network import WholeNetworkTrainer

LINEAR_EPOCHS = 25  # of the linear start, as in Cole et al. 2021


@dataclass(frozen=True)
class Network:
    """The network of a comparison, with shared settings that papers leave open."""

    backbone: str
    # side of the square input in pixels
    size: int
    device: str
    # set whose published settings are used: "voc", "coco", "nus" or "cub"
    published_set: str = "voc"
    # epochs, batch: none selects the paper's
    epochs: int | None = None
    batch: int | None = None
    linear_init: bool = False
    # None selects the paper's, where a CPU replaces "fp16" by "fp32"
    precision: str | None = None

    @classmethod
    def build(cls, options: Options, published_set: str) -> "Network":
        chosen = (options.epochs, options.batch, options.linear_init, options.precision)
        return cls(options.network, options.size, options.device, published_set, *chosen)


def make_network_recipe(name: str, choice: Choice, network: Network) -> TrainingRecipe:
    """Return the paper's training settings, or else shared ones, changed by `choice` and `network`."""
    published = (METHODS[name].published or shared_protocol())[network.published_set]
    of_paper = "fp32" if torch.device(network.device).type == "cpu" else published.precision
    return replace(
        published,
        lr=choice.lr * published.lr,
        linear_lr=None if published.linear_lr is None else choice.lr * published.linear_lr,
        batch=choice.batch or network.batch or published.batch,
        epochs=max(1, round(choice.epochs * (network.epochs or published.epochs))),
        parameters=published.parameters | choice.parameters,
        precision=network.precision or of_paper,
    )


def build_network_trainer(
    name: str, choice: Choice, task: Task, paths: Sequence[Path], network: Network, seed: int, resume: ResumePoint
) -> WholeNetworkTrainer:
    """Return a trainer of the whole network, after a linear stage if `network.linear_init`."""
    settings = make_network_recipe(name, choice, network)
    method = make_method(name, **settings.parameters)
    source = load_pretrained(network.backbone)
    plain = getattr(method, "plain_pixels", False)  # LAGC gives its network pixels in [0, 1]

    def make_examples(rows: np.ndarray) -> ImageExamples:
        return ImageExamples(
            [paths[row] for row in rows],
            lambda path: open_rgb(path, at_least=(network.size, network.size)),
            network.size,
            mean=None if plain else source.mean,
            std=None if plain else source.std,
            interpolation=source.interpolation,
            device=network.device,
        )

    whole = build_whole_network(replace(source, input_size=network.size), task.truth.shape[1], method, seed)
    labels = task.make_training_labels(method.full_labels, method.known_absences)
    # A method with a linear stage of its own (role+linear_init) needs no other.
    alone_first = network.linear_init and method.reads == "features" and settings.linear_lr is None
    learned = None
    if alone_first and not (resume.checkpoint and resume.checkpoint.exists()):
        pooled = None
        if task.validates:
            pooled = compute_pooled_features(
                whole.to(network.device), make_examples(task.val), lambda: False, None
            ).cpu()
        learned = fit_linear_start(
            whole,
            make_examples(labels.rows),
            labels.labels,
            make_method(name, **settings.parameters),
            TrainingSettings(epochs=LINEAR_EPOCHS, every_class=task.empty_as_zero),
            seed=seed,
            score=None if pooled is None else lambda head: task.val_map(head.probabilities(pooled)),
        )
    resume = replace(resume, learned=learned or None)
    return WholeNetworkTrainer(method, whole, make_examples, labels, settings, seed=seed, resume=resume)
