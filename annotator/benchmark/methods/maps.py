"""Training a method that reads feature maps on a frozen backbone, with maps as the worker makes them.

The images with a label have their views, all others the plain map only; both are made once and kept for all methods,
shares and seeds.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from annotator.benchmark.harness.processes import say
from annotator.benchmark.methods.epochs import Best, best_file, follow, state_file
from annotator.benchmark.methods.task import Choice, Task, Trained
from annotator.errors import several
from annotator.worker.map_cache import WEAK, Kept, MapFiles
from annotator.worker.train_maps import settings_of
from models.finetune.fit_network import fit_network
from models.finetune.views import MapExamples
from models.methods import METHODS, make_method


def train_on_maps(
    name: str,
    choice: Choice,
    task: Task,
    files: MapFiles,
    paths: Sequence[Path],
    seed: int,
    state: Path,
    epochs: int | None = None,
) -> Trained:
    """Train the method's own network on maps; after every epoch the validation images are scored, the best one is kept.

    files       where the maps are, or will be; the key of an image is its row
    paths       (N,) the files of the whole collection
    state       what the files are called in which this training can be taken up again (epochs.py)
    epochs      what choice.epochs is a multiple of; None: the method's own

    Raises ValueError for parameters there are not, AnnotatorError for images that cannot be read.
    """
    rows = task.train[task.labelled]
    _make(files, paths, rows, True)
    _make(files, paths, np.arange(len(paths)), False)
    method = make_method(name, **choice.parameters)
    own = settings_of(method)
    settings = replace(
        own,
        lr=choice.lr * own.lr,
        epochs=max(1, round(choice.epochs * (epochs or own.epochs))),
        batch=choice.batch or own.batch,
    )
    network = method.network(files.network.shape[0], task.truth.shape[1], torch.Generator().manual_seed(seed))
    device = files.network.backbone.device

    def examples(some: np.ndarray) -> MapExamples:
        return MapExamples(Kept(files, some.tolist()), weak=WEAK, device=device)

    best = Best(best_file(state))
    training = fit_network(
        network,
        examples(rows),
        task.labels_for(METHODS[name].full_labels),
        method,
        settings,
        seed=seed,
        best=lambda: best.weights,
        checkpoint=state_file(state),
    )
    return follow(name, training, best, task, examples)


def _make(files: MapFiles, paths: Sequence[Path], rows: np.ndarray, views: bool) -> None:
    """Makes what is missing. Raises AnnotatorError naming the images that cannot be read."""
    items = [(row, paths[row]) for row in rows.tolist() if not files.has(row, views)]
    if items:
        say(f"making feature maps of {len(items):,} images" + (", several views of each" if views else ""))
    failures: dict = {}
    for _, failed in files.make(items, views):
        failures |= failed
    if failures:
        raise several("Images that cannot be read:", [f"{paths[row]}: {why}" for row, why in failures.items()], 10)
