"""Training a method on cached features, as the worker does it in projects: one epoch after another, the best one kept.

`train_linear` is the only place that knows how a method turns features into probabilities: a method that learns in a
way of its own (from images without a label, say, or with several heads) is given it here and nowhere else.
"""

import numpy as np
import torch

from annotator.benchmark.methods.task import Choice, Task, Trained
from models.linear.training import Head, fit
from models.methods import METHODS, make_method


def train_linear(
    name: str,
    choice: Choice,
    task: Task,
    features: np.ndarray,
    seed: int,
    epochs: int | None = None,
    batch: int | None = None,
) -> Trained:
    """Train on the images with a label; after every epoch the validation images are scored, and the best epoch is kept.

    name        of models.methods.METHODS
    features    (N, D) float16, one row for every image of the collection: those without a label may be used as well
    seed        decides the start and the order
    epochs      what choice.epochs is a multiple of; None: the method's own
    batch       where the choice says nothing; None: what `fit` takes for this many images

    Raises ValueError for parameters there are not, or that make no sense.
    """
    method = make_method(name, **choice.parameters)
    rows, validation = task.train[task.labelled], features[task.val]
    head = Head(features.shape[1], task.truth.shape[1])
    best, best_map, best_epoch, seconds = head_copy(head), -1.0, 0, []
    for epoch in fit(
        head,
        torch.from_numpy(features[rows]),
        task.labels_for(METHODS[name].full_labels),
        method,
        epochs=max(1, round(choice.epochs * (epochs or method.epochs))),
        lr=choice.lr * method.lr,
        batch=choice.batch or batch,
        seed=seed,
    ):
        seconds.append(epoch.seconds)
        score = task.val_map(head.probabilities(validation))
        if score > best_map:
            best, best_map, best_epoch = head_copy(head), score, epoch.number
    return Trained(lambda some: best.probabilities(features[some]), best_epoch, best_map, float(np.mean(seconds)))


def head_copy(head: Head) -> Head:
    """The head as it is now; the next epoch changes the original."""
    copy = Head(head.dimensions, head.classes)
    copy.weight, copy.bias = head.weight.clone(), head.bias.clone()
    return copy
