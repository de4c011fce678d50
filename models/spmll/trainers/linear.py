"""Training of a linear head on pooled features."""

from collections.abc import Iterator

import numpy as np
from torch import Tensor
from typing_extensions import override

from spmll.ensemble.collection_scoring import KnownLabels, LinearModel
from spmll.linear.training import Epoch, Head, fit
from spmll.trainers.base import Trainer, TrainingOutcome
from spmll.trainers.evidence import compute_evidence


class LinearTrainer(Trainer):
    """A trainer that fits a linear head on pooled features (`spmll.linear.training.fit`)."""

    @override
    def prepare(self) -> None:
        features, labels = self.images.features, self.labels
        self.head = Head(features.shape[1], labels.labels.shape[1])
        self._epochs = fit(
            self.head,
            features[labels.rows],
            labels.labels,
            self.method,
            self.settings,
            mask=labels.mask,
            evidence=compute_evidence(self.method, self.images, labels),
            seed=self.seed,
        )

    @override
    def epochs(self) -> Iterator[Epoch]:
        for epoch in self._epochs:
            self.history.append(epoch)
            yield epoch

    @override
    def predict(self, rows: np.ndarray, which: str = "network") -> np.ndarray:
        return self.head.probabilities(self.images.features[rows])

    @override
    def build_outcome(self) -> TrainingOutcome:
        nothing = KnownLabels.empty(self.head.classes)
        scores = self.scoring(
            LinearModel(self.head),
            self.images.features,
            None,
            lambda _: nothing,
            self.head.classes,
            self._report_progress,
        )
        return TrainingOutcome(self.head, scores)

    @override
    def candidates(self) -> tuple[str, ...]:
        return ("network",)

    @override
    def copy_weights(self, which: str) -> dict[str, Tensor]:
        return {"weight": self.head.weight.clone(), "bias": self.head.bias.clone()}

    def _report_progress(self) -> None:
        self.progress("training", len(self.history), self.settings.epochs or self.method.epochs)

    @override
    def load_weights(self, weights: dict[str, Tensor]) -> None:
        self.head.weight, self.head.bias = weights["weight"], weights["bias"]
