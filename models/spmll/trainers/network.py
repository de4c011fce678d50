"""Networks trained by `spmll.finetune.fit_network`, on images or feature maps."""

from collections.abc import Callable, Iterator

import numpy as np
from torch import Tensor, nn
from typing_extensions import override

from spmll.finetune.fit_network import NetworkTraining, fit_network
from spmll.finetune.resume_point import ResumePoint
from spmll.finetune.views import Examples
from spmll.linear.training import Epoch
from spmll.methods.base import Method
from spmll.methods.training_recipes import TrainingRecipe
from spmll.trainers.base import Trainer, TrainingLabels, TrainingOutcome


class NetworkTrainer(Trainer):
    """The base of trainers that run a NetworkTraining."""

    has_long_epochs = True
    training: NetworkTraining

    @override
    def epochs(self) -> Iterator[Epoch]:
        yield from self.training

    @override
    def candidates(self) -> tuple[str, ...]:
        return tuple(self.training.networks())

    @override
    def copy_weights(self, which: str) -> dict[str, Tensor]:
        return self.training.copy_weights(which)

    @override
    def copy_learned_tensors(self) -> list[Tensor]:
        return self.training.copy_learned_tensors()

    @override
    def begins_stage(self, epoch: int) -> bool:
        return self.method.restarts_optimizer(epoch)

    @override
    def load_weights(self, weights: dict[str, Tensor]) -> None:
        self.training.network.load_state_dict(weights)


class WholeNetworkTrainer(NetworkTrainer):
    """A trainer of backbone and classifier on image files, which comparisons of methods use."""

    def __init__(
        self,
        method: Method,
        network: nn.Module,
        examples: Callable[[np.ndarray], Examples],
        labels: TrainingLabels,
        settings: TrainingRecipe,
        *,
        seed: int = 0,
        resume: ResumePoint = ResumePoint(),
    ):
        """Set up `fit_network`.

        Args:
            network: Changed in place.
            examples: Function from rows to Examples.
        """
        self.method, self._examples = method, examples
        self.training = fit_network(
            network,
            examples(labels.rows),
            labels.labels,
            method,
            settings,
            mask=labels.mask,
            seed=seed,
            resume=resume,
        )
        self.history = self.training.history

    def prepare(self) -> None:
        """Do nothing, because the network is given."""

    @override
    def predict(self, rows: np.ndarray, which: str = "network") -> np.ndarray:
        return self.training.predict(self._examples(rows), which)

    def build_outcome(self) -> TrainingOutcome:
        """Raise ValueError, since a run needs a frozen backbone."""
        raise ValueError("A whole network is compared with others; a project trains on a frozen backbone.")
