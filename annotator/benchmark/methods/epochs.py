"""Following a training epoch by epoch: score it, keep the best weights, stop where its paper stops.

A long training that is killed goes on after its last finished epoch: spmll/finetune/fit_network.py keeps the state of
the training, this file beside it the scores and the best weights so far.
"""

from math import nan
from pathlib import Path

import numpy as np

from annotator.benchmark.methods.task import Task, Trained
from annotator.benchmark.scratch import print_progress
from spmll.finetune import checkpoints
from spmll.finetune.best_epoch import BestEpoch
from spmll.trainers.base import Trainer


def state_file(state: Path) -> Path:
    """Return the file in which spmll/finetune/fit_network.py keeps the training named `state`."""
    return state.with_name(f"{state.name}.state")


def best_file(state: Path) -> Path:
    """Return the file of the scores and the best weights of the training named `state`."""
    return state.with_name(f"{state.name}.best")


def delete_files(state: Path) -> None:
    """Delete the files of a training whose figures have been stored."""
    for path in (state_file(state), best_file(state)):
        path.unlink(missing_ok=True)


class Best:
    """The score of every epoch, and the best epoch of the stage, in a file that is replaced after every epoch.

    Stages are scored apart: an epoch with a frozen backbone is the start of the next stage, and no result.

    Attributes:
        scores: Validation mAP in [0, 1] of each epoch: of its network, or of the averaged weights if that is higher.
        first: The place in `scores` of the first epoch of the stage.
        epoch: The number of the best epoch of the stage; 0 before there is any.
        best_epoch: Its weights, and what the method had learned then.
    """

    def __init__(self, path: Path | None):
        """Read the scores of an earlier run from `path`, if it exists; None: keep them in memory only."""
        self.path = path
        self.reset_scores()
        if path is not None and (state := checkpoints.load(path, {})):
            self.scores, self.first, self.epoch = state["scores"], state["first"], state["epoch"]
            self.separations = state["separations"]
            self.best_epoch = BestEpoch(state["weights"], state["learned"])

    def reset_scores(self) -> None:
        """Reset to the state before the first epoch."""
        self.scores: list[float] = []
        self.separations: list[float] = []
        self.first, self.epoch = 0, 0
        self.best_epoch: BestEpoch | None = None

    @property
    def best_score(self) -> float:
        """Return the highest score of the stage."""
        return max(self.scores[self.first :])

    def score_epoch(self, trainer: Trainer, task: Task) -> float:
        """Score the finished epoch, and keep it if it is the best one of its stage (strictly, as in the papers)."""
        number = len(trainer.history)
        probabilities = {which: trainer.predict(task.val, which) for which in trainer.candidates()}
        scores = {which: task.val_map(predicted) for which, predicted in probabilities.items()}
        which = max(scores, key=lambda name: scores[name])
        begins = self.best_epoch is None or trainer.begins_stage(number)
        if begins or scores[which] > self.best_score:
            self.best_epoch, self.epoch = BestEpoch(trainer.copy_weights(which), trainer.copy_learned_tensors()), number
        if begins:
            self.first = len(self.scores)
        self.scores.append(scores[which])
        if (separation := task.measure_separation(probabilities[which])) is not None:
            self.separations.append(separation)
        if self.path is not None:
            state = {"identity": {}, "scores": self.scores, "first": self.first, "epoch": self.epoch}
            state["separations"] = self.separations
            kept = (
                {"weights": self.best_epoch.weights, "learned": list(self.best_epoch.learned)}
                if self.best_epoch
                else {}
            )
            checkpoints.save(self.path, state | kept)
        return scores[which]


def follow_training(name: str, trainer: Trainer, best: Best, task: Task) -> Trained:
    """Train to the end, or until the method's paper would stop, and return to the best epoch.

    Args:
        name: The name of the method, for the report.
        trainer: A trainer begun with `best=lambda: best.kept`. A trainer without candidates keeps its last epoch, as
            does every trainer if the task does not validate.
        best: Keeps the scores and the weights of the best epoch.
        task: The images and labels, with the validation images that are scored.

    Raises:
        ValueError: As the trainer does.
    """
    scored = bool(trainer.candidates()) and task.validates
    if len(best.scores) > len(trainer.history):  # of a training whose state is gone
        best.reset_scores()
    if scored and len(best.scores) < len(trainer.history):  # killed between the end of an epoch and its score
        best.score_epoch(trainer, task)
    epochs = trainer.epochs()
    # Asked before every epoch: what was given up before a kill stays given up.
    while (
        not (trainer.has_long_epochs and trainer.method.should_stop_early(best.scores))
        and (epoch := next(epochs, None)) is not None
    ):
        validation = f", validation mAP {100 * best.score_epoch(trainer, task):.1f}" if scored else ""
        if trainer.has_long_epochs:
            print_progress(f"    {name}: epoch {epoch.number} of {epoch.total}, {epoch.seconds:.1f} s{validation}")
    if best.best_epoch is not None:
        trainer.load_weights(best.best_epoch.weights)
    val_map = best.best_score if scored else task.val_map(trainer.predict(task.val)) if task.validates else nan
    seconds = float(np.mean([epoch.seconds for epoch in trainer.history]))
    return Trained(trainer.predict, best.epoch or len(trainer.history), val_map, seconds, tuple(best.separations))
