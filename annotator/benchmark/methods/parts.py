"""Training a method that reads regions, on features and parts of images as the worker keeps them
(worker/region_cache.py).

Such a method also learns from the training images that nobody has labelled. It is not stopped early and no epoch of it
is chosen: in a project there are no validation images either, and it has to do without.
"""

import time

import numpy as np

from annotator.benchmark.methods.task import Choice, Task, Trained
from models.ensemble.fit_ensemble import Ensemble, fit_ensemble
from models.ensemble.regions import RegionCodes, encode, learn_basis
from models.methods import make_method


def parts_of(features: np.ndarray, regions: np.ndarray, train: np.ndarray) -> RegionCodes:
    """The parts of all images, on a basis learned from the training images alone."""
    return encode(learn_basis(features[train], regions[train]), regions)


def train_on_parts(
    name: str,
    choice: Choice,
    task: Task,
    features: np.ndarray,
    parts: RegionCodes,
    seed: int,
    epochs: int | None = None,
) -> Trained:
    """Train on the training images, labelled and not.

    features    (N, D) float16, one row for every image of the collection
    parts       of the same images
    epochs      what choice.epochs is a multiple of; None: the method's own

    Raises ValueError for parameters there are not, or that make no sense.
    """
    method = make_method(name, **choice.parameters)
    model = Ensemble(method, features.shape[1], task.truth.shape[1])
    number, started = 0, time.perf_counter()
    for epoch in fit_ensemble(
        model,
        features[task.train],
        parts[task.train],
        task.labelled,
        task.labels_for(method.full_labels),
        epochs=max(1, round(choice.epochs * (epochs or method.epochs))),
        lr=choice.lr * method.lr,
        batch=choice.batch,
        seed=seed,
    ):
        number = epoch.number
    seconds = (time.perf_counter() - started) / number

    def probabilities(rows: np.ndarray) -> np.ndarray:
        return model.probabilities(features[rows], parts[rows])

    return Trained(probabilities, number, task.val_map(probabilities(task.val)), seconds)
