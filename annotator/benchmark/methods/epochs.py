"""Following the training of a network epoch by epoch: score it, keep the best weights, stop where its paper stops.

A training that is killed goes on after its last finished epoch: models/finetune/fit_network.py keeps the state of the
training,
this file beside it the scores and the best weights so far.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from annotator.benchmark.harness.processes import say
from annotator.benchmark.methods.task import Task, Trained
from models.finetune import checkpoints
from models.finetune.fit_network import NetworkTraining
from models.finetune.views import Examples


def state_file(state: Path) -> Path:
    """Where models/finetune/fit_network.py keeps a training that is called `state`."""
    return state.with_name(f"{state.name}.state")


def best_file(state: Path) -> Path:
    """Where the scores and the best weights of that training are."""
    return state.with_name(f"{state.name}.best")


def forget(state: Path) -> None:
    """Deletes what a training has kept, once its figures are written down."""
    for path in (state_file(state), best_file(state)):
        path.unlink(missing_ok=True)


class Best:
    """The score of every epoch, and the weights of the best, in a file that is replaced whenever there is a new one.

    scores      validation mAP in [0, 1] of each epoch: of its network, or the average of the weights if that is better
    epoch       the best one, from 1; 0 before there is any
    weights     of that epoch
    """

    def __init__(self, path: Path):
        self.path = path
        self.forget()
        if kept := checkpoints.load(path, {}):
            self.scores, self.epoch, self.weights = kept["scores"], kept["epoch"], kept["weights"]

    def forget(self) -> None:
        """As if no epoch had been scored."""
        self.scores: list[float] = []
        self.epoch = 0
        self.weights: dict[str, torch.Tensor] | None = None

    def score(self, training: NetworkTraining, task: Task, validation: Examples) -> float:
        """Scores the epoch that is over, and keeps its weights if it is the best one (strictly, as in the papers)."""
        found = {which: task.val_map(training.predict(validation, which)) for which in training.networks()}
        which = max(found, key=found.get)
        if not self.scores or found[which] > max(self.scores):
            self.weights, self.epoch = training.weights(which), len(training.history)
        self.scores.append(found[which])
        kept = {"identity": {}, "scores": self.scores, "epoch": self.epoch, "weights": self.weights}
        checkpoints.save(self.path, kept)
        return found[which]


def follow(
    name: str, training: NetworkTraining, best: Best, task: Task, examples: Callable[[np.ndarray], Examples]
) -> Trained:
    """Trains to the end, or as far as the method's paper would, and goes back to the best epoch.

    training    begun with `best=lambda: best.weights`
    examples    rows of the collection -> these images, as the network takes them

    Raises ValueError as fit_network does.
    """
    validation = examples(task.val)
    if len(best.scores) > len(training.history):  # of a training whose state is gone
        best.forget()
    if len(best.scores) < len(training.history):  # killed between the end of an epoch and its score
        best.score(training, task, validation)
    # Asked before every epoch: what was given up before a kill stays given up.
    while not training.method.gives_up(best.scores) and (epoch := next(training, None)) is not None:
        score = best.score(training, task, validation)
        say(f"    {name}: epoch {epoch.number} of {epoch.of}, {epoch.seconds:.1f} s, validation mAP {100 * score:.1f}")
    training.network.load_state_dict(best.weights)
    seconds = float(np.mean([epoch.seconds for epoch in training.history]))
    return Trained(lambda rows: training.predict(examples(rows), "network"), best.epoch, max(best.scores), seconds)
