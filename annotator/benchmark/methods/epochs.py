"""Training epoch by epoch: validation scores, best weights and the paper's early stopping.

Killed trainings resume after their last finished epoch.
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
    """Return the path of the training state to resume from. `state` is its path prefix."""
    return state.with_name(f"{state.name}.state")


def best_file(state: Path) -> Path:
    """Return the path of the scores and best weights. `state` is its path prefix."""
    return state.with_name(f"{state.name}.best")


def delete_files(state: Path) -> None:
    """Delete the files of a training with the path prefix `state`."""
    for path in (state_file(state), best_file(state)):
        path.unlink(missing_ok=True)


class Best:
    """A record of all epochs' scores and the best weights, in a file that is replaced every epoch.

    Training stages are scored separately, because epochs with a frozen backbone only prepare the next stage.

    Attributes:
        scores: Validation mAP per epoch.
        first: Index in `scores` where the current stage starts.
        epoch: Number of the stage's best epoch, 0 before any.
    """

    def __init__(self, path: Path | None):
        """Load earlier scores from `path`. None keeps them in memory only."""
        self.path = path
        self.reset_scores()
        if path is not None and (state := checkpoints.load(path, {})):
            self.scores, self.first, self.epoch = state["scores"], state["first"], state["epoch"]
            self.separations = state["separations"]
            self.best_epoch = BestEpoch(state["weights"], state["learned"])

    def reset_scores(self) -> None:
        self.scores: list[float] = []
        self.separations: list[float] = []
        self.first, self.epoch = 0, 0
        self.best_epoch: BestEpoch | None = None

    @property
    def best_score(self) -> float:
        return max(self.scores[self.first :])

    def score_epoch(self, trainer: Trainer, task: Task) -> float:
        """Score the finished epoch, and keep its weights if it is strictly the best in its stage."""
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
    """Train until the end or the paper's early stop, then load the weights of the best epoch.

    Without validation images, or weights to score, the last epoch is kept. Raises ValueError from the trainer.
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
