"""The linear experiments of Cole et al. (2021): `annotator bench methods --protocol cole`.

A linear classifier is trained on features of the frozen network, which see every image once, at 448 pixels and without
augmentation. Adam, 25 epochs, no weight decay; the learning rate and the batch are the best of 4 x 2 on validation mAP,
and so is the epoch. All classes are trained, those that nobody marked among them. Table 1 ("Linear") of the paper is
made this way, and the frozen epochs of its "LinearInit." rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.harness.processes import say
from annotator.benchmark.methods import data
from annotator.benchmark.methods.epochs import Best, best_file, follow, state_file
from annotator.benchmark.methods.options import Options
from annotator.benchmark.methods.task import Choice, Task, Trained
from annotator.benchmark.methods.work import Work
from annotator.store.pictures.decoding import open_rgb
from models.backbones.pretrained import pretrained
from models.finetune.linear_start import pooled_features
from models.finetune.views import FeatureExamples, ImageExamples
from models.finetune.whole_network import WholeNetwork, whole_network
from models.methods import METHODS, make_method
from models.methods.end_to_end import SETS, EndToEnd
from models.trainers.base import Resume
from models.trainers.network import WholeNetworkTrainer

EPOCHS = 25
RATES = (1e-2, 1e-3, 1e-4, 1e-5)
BATCHES = (8, 16)


def grid(fixed: Mapping[str, Any] | None = None) -> list[Choice]:
    """Return the settings among which validation mAP decides; Choice.lr is a factor on the first of RATES.

    Args:
        fixed: Constants of the method that every choice has; None: there are none.
    """
    return [Choice(rate / RATES[0], batch=batch, parameters=dict(fixed or {})) for rate in RATES for batch in BATCHES]


def settings_of(choice: Choice, epochs: int | None = None) -> EndToEnd:
    """Return the settings of one training.

    Args:
        choice: One of `grid`.
        epochs: The number of epochs; None: 25.
    """
    return EndToEnd(choice.lr * RATES[0], choice.batch or BATCHES[-1], epochs or EPOCHS, drop_last=True)


class FixedFeatures:
    """The pooled features of all images by the frozen network, kept in the work folder."""

    def __init__(self, dataset: DataSet, options: Options):
        """Compute the features that the work folder does not have yet.

        Raises:
            ValueError: The backbone does not exist, or images (named) cannot be read.
        """
        self.options, self.published = options, dataset.name if dataset.name in SETS else "voc"
        paths = data.everything(dataset).paths
        work = Work(
            options.work, {"data": data.fingerprint(dataset), "backbone": options.backbone, "size": options.size}
        )
        self.features = work.array("features-cole", lambda: _features(paths, options))

    def train(self, name: str, choice: Choice, task: Task, seed: int, state: Path) -> Trained:
        """Train a linear classifier, and keep the epoch that is best on the validation images.

        Args:
            name: A name in models.methods.METHODS, of a method that reads features.
            choice: One of `grid`, or the one that it chose.
            task: The labels, and the images that are trained on and scored.
            seed: Decides the weights and the order of images.
            state: The path from which the files are named that let a long training go on (epochs.py).

        Raises:
            ValueError: A parameter does not exist, or a loss is not finite.
        """
        published = METHODS[name].published
        constants = published[self.published].parameters if published else {}
        method = make_method(name, **(constants | choice.parameters))
        best = Best(best_file(state))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            classifier = nn.Linear(self.features.shape[1], task.truth.shape[1])
        trainer = WholeNetworkTrainer(
            method,
            WholeNetwork(nn.Identity(), classifier),
            lambda rows: FeatureExamples(self.features[rows], device=self.options.device),
            task.training_labels(method.full_labels, method.known_absences),
            settings_of(choice, self.options.epochs),
            seed=seed,
            resume=Resume(state_file(state), lambda: best.kept),
        )
        return follow(name, trainer, best, task)


def _features(paths: Sequence[Path], options: Options) -> np.ndarray:
    """Return (N, D) float32 of the images, each squashed to a square of options.size."""
    say(f"computing features of {len(paths):,} images at {options.size} pixels with {options.network}")
    source = replace(pretrained(options.network), input_size=options.size)
    network = whole_network(source, 1, make_method("an")).to(options.device)
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
    return pooled_features(network, examples, lambda: False, None).cpu().numpy()
