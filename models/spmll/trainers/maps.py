"""Training of methods that read feature maps of a frozen backbone.

Heat maps use a linear approximation (surrogate_head.py).
"""

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from typing_extensions import override

from spmll.finetune.fit_network import fit_network
from spmll.finetune.views import MapExamples
from spmll.labels import PRESENT
from spmll.linear.surrogate_head import fit_surrogate_head
from spmll.linear.training import Epoch, one_thread
from spmll.methods.base import Method
from spmll.methods.training_recipes import TrainingRecipe
from spmll.trainers.base import Progress, TrainingOutcome
from spmll.trainers.network import NetworkTrainer

STEPS_PER_EPOCH = 32  # batches an epoch, where that makes them neither smaller nor larger than this
MIN_BATCH_IMAGES, MAX_BATCH_IMAGES = 4, 16
PROGRESS_INTERVAL_SECONDS = 0.2  # between two calls of progress, whose caller has other duties that training waits for


class MapTrainer(NetworkTrainer):
    """A trainer that fits a network to feature maps and skips unreadable images."""

    comparison_batch = MAX_BATCH_IMAGES

    @override
    def prepare(self) -> None:
        self.progress = _throttle_progress(self.progress)
        self.maps = self.images.maps()
        readable, maps = self.maps.views(self.labels.rows, self.progress)
        labels, mask = self.labels.labels[readable], self.labels.mask
        mask = np.ones(labels.shape, bool) if mask is None else mask[readable]
        self.known = ((labels == PRESENT) & mask).any(0) if len(labels) else np.zeros(labels.shape[1], bool)
        if not self.known.any():
            raise ValueError("Of no image with a label 'present' can the file be read any more. Were they moved?")
        self.training = fit_network(
            self.method.build_network(self.maps.channels, labels.shape[1], torch.Generator().manual_seed(self.seed)),
            self._make_examples(maps),
            labels,
            self.method,
            self._make_recipe(len(labels)),
            mask=mask if self.labels.mask is not None else None,
            seed=self.seed,
            resume=self.resume,
            should_stop=self._should_stop,
        )
        self.history = self.training.history

    @override
    def epochs(self) -> Iterator[Epoch]:
        while True:
            with one_thread():  # a second one gains little, and loses much while somebody else uses its core
                epoch = next(self.training, None)
            if epoch is None:
                return
            yield epoch

    def predict(self, rows: np.ndarray, which: str = "network") -> np.ndarray:
        """Return probabilities, nan for unreadable images."""
        probabilities = np.full((len(rows), len(self.known)), np.nan, np.float32)
        for places, maps in self.maps.plain(rows, self.progress):
            probabilities[places] = self.training.predict(self._make_examples(maps), which)
        return probabilities

    def build_outcome(self) -> TrainingOutcome:
        """Return the outcome, with probabilities of the linear head for unreadable images."""
        features = self.images.features
        probabilities = self.predict(np.arange(len(features)), self.candidates()[-1])
        probabilities[:, ~self.known] = np.nan
        head = fit_surrogate_head(features, probabilities, lambda: self.progress("training", 1, 1))
        unread = np.isnan(probabilities[:, self.known]).all(1)
        probabilities[unread] = head.probabilities(features[unread])
        return TrainingOutcome(head, probabilities)

    def _make_examples(self, maps) -> MapExamples:
        return MapExamples(maps, weak=self.maps.weak, device=self.maps.device)

    def _make_recipe(self, images: int) -> TrainingRecipe:
        chosen = self.settings
        own = make_map_recipe(self.method, images)
        lr = own.lr if chosen.lr is None else chosen.lr
        return replace(own, lr=lr, batch=chosen.batch or own.batch, epochs=chosen.epochs or own.epochs)

    def _should_stop(self) -> bool:
        self.progress("training", len(self.history), self.settings.epochs or self.method.epochs)
        return False


def make_map_recipe(method: Method, images: int) -> TrainingRecipe:
    """Return the settings for maps: AdamW with one cycle, as in LAGC."""
    batch = min(max(images // STEPS_PER_EPOCH, MIN_BATCH_IMAGES), MAX_BATCH_IMAGES)
    return TrainingRecipe(
        lr=method.lr,
        batch=batch,
        epochs=method.epochs,
        optimiser="adamw_onecycle",
        weight_decay=0.01,
        precision="auto",
    )


def _throttle_progress(progress: Progress) -> Progress:
    """Return a function that calls `progress` at most every PROGRESS_INTERVAL_SECONDS per state."""
    last_state, last_time = "", 0.0

    def sometimes(state: str, done: int, of: int) -> None:
        nonlocal last_state, last_time
        seconds = time.monotonic()
        if state != last_state or seconds - last_time >= PROGRESS_INTERVAL_SECONDS:
            last_state, last_time = state, seconds
            progress(state, done, of)

    return sometimes
