"""The linear experiments of Cole et al. (2021): `annotator bench methods --protocol cole`.

Linear classifiers on frozen embeddings at 448 pixels, without augmentation. Adam, 25 epochs, no weight
decay. Validation mAP selects learning rate and batch (4 x 2) and epoch. As in Table 1 ("Linear").
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.methods import data
from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.epochs import Best, best_file, follow_training, state_file
from annotator.benchmark.methods.finished_results import Work
from annotator.benchmark.methods.task import Choice, Task, Trained
from annotator.benchmark.scratch import print_progress
from annotator.store.pictures.decoding import open_rgb
from spmll.backbones.pretrained import load_pretrained
from spmll.finetune.linear_start import compute_pooled_features
from spmll.finetune.resume_point import ResumePoint
from spmll.finetune.views import FeatureExamples, ImageExamples
from spmll.finetune.whole_network import WholeNetwork, build_whole_network
from spmll.methods import METHODS, make_method
from spmll.methods.training_recipes import BENCHMARK_SETS, TrainingRecipe
from spmll.trainers.network import WholeNetworkTrainer

COLE_EPOCHS = 25
LEARNING_RATES = (1e-2, 1e-3, 1e-4, 1e-5)
BATCH_SIZES = (8, 16)


def make_grid(fixed: Mapping[str, Any] | None = None) -> list[Choice]:
    """Return all combinations of learning rate (Choice.lr, relative to LEARNING_RATES[0]) and batch size to try."""
    return [
        Choice(rate / LEARNING_RATES[0], batch=batch, parameters=dict(fixed or {}))
        for rate in LEARNING_RATES
        for batch in BATCH_SIZES
    ]


def make_linear_recipe(choice: Choice, epochs: int | None = None) -> TrainingRecipe:
    return TrainingRecipe(
        choice.lr * LEARNING_RATES[0], choice.batch or BATCH_SIZES[-1], epochs or COLE_EPOCHS, drop_last=True
    )


class FixedFeatures:
    """The pooled embeddings of all images by a frozen backbone, kept in the work folder."""

    def __init__(self, dataset: DataSet, options: Options):
        """Compute missing embeddings. Raises ValueError for an unknown backbone or unreadable images."""
        self.options, self.published_set = options, dataset.name if dataset.name in BENCHMARK_SETS else "voc"
        paths = data.join_parts(dataset).paths
        work = Work(
            options.work,
            {"data": data.compute_fingerprint(dataset), "backbone": options.backbone, "size": options.size},
        )
        self.features = work.get_array("features-cole", lambda: _compute_features(paths, options))

    def train(self, name: str, choice: Choice, task: Task, seed: int, state: Path) -> Trained:
        """Train a linear classifier and keep the best validation epoch. `state` is the path prefix of resumable files.

        Raises ValueError for an unknown parameter or infinite loss.
        """
        published = METHODS[name].published
        constants = published[self.published_set].parameters if published else {}
        method = make_method(name, **(constants | choice.parameters))
        best = Best(best_file(state))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            classifier = nn.Linear(self.features.shape[1], task.truth.shape[1])
        trainer = WholeNetworkTrainer(
            method,
            WholeNetwork(nn.Identity(), classifier),
            lambda rows: FeatureExamples(self.features[rows], device=self.options.device),
            task.make_training_labels(method.full_labels, method.known_absences),
            make_linear_recipe(choice, self.options.epochs),
            seed=seed,
            resume=ResumePoint(state_file(state), lambda: best.best_epoch),
        )
        return follow_training(name, trainer, best, task)


def _compute_features(paths: Sequence[Path], options: Options) -> np.ndarray:
    """Return embeddings, (N, D) float32, of images resized to a square of options.size pixels."""
    print_progress(f"computing features of {len(paths):,} images at {options.size} pixels with {options.network}")
    source = replace(load_pretrained(options.network), input_size=options.size)
    network = build_whole_network(source, 1, make_method("an")).to(options.device)
    examples = ImageExamples(
        paths,
        lambda path: open_rgb(path, at_least=(options.size, options.size)),
        options.size,
        mean=source.mean,
        std=source.std,
        interpolation=source.interpolation,
        device=options.device,
        keep_bytes=0,
    )
    return compute_pooled_features(network, examples, lambda: False, None).cpu().numpy()
