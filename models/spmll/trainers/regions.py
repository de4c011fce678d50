"""Training of two linear models on images and regions, stacked if answers allow.

Unlabeled images are used, and no epoch is selected.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np
from typing_extensions import override

from spmll.ensemble.portable import PortableEnsemble
from spmll.ensemble.stacking import AnsweredImages, fit_stacked
from spmll.ensemble.warm_start import WarmStart
from spmll.linear.surrogate_head import fit_surrogate_head
from spmll.linear.training import Epoch
from spmll.methods.auto import Auto
from spmll.trainers.base import Trainer, TrainingOutcome

SURROGATE_IMAGES = 3000  # from which the head for heat maps is fitted


class RegionTrainer(Trainer):
    """A trainer of the method `auto` (`spmll.ensemble.stacking.fit_stacked`)."""

    @override
    def prepare(self) -> None:
        labels = self.labels
        features, codes, rows = self.images.features, self.images.region_codes(self.progress), labels.rows
        self.codes = codes
        groups, context = labels.groups, labels.context
        if labels.pool is not None:
            groups = None if groups is None else groups[labels.pool]
            context = None if context is None else context.select(labels.pool)
            features, codes = features[labels.pool], codes[labels.pool]
            rows = np.searchsorted(labels.pool, rows)
        self.model = fit_stacked(
            cast(Auto, self.method),
            AnsweredImages(
                features,
                codes,
                rows,
                labels.labels,
                labels.mask,
                unbiased=np.zeros(labels.labels.shape, bool) if labels.unbiased is None else labels.unbiased,
                outside=self.outside,
                groups=groups,
                context=context,
            ),
            self.settings,
            seed=self.seed,
            tell=self._report_progress,
            warm_start=self.images.memory.setdefault("stacking", WarmStart()),
            scoring=self.scoring,
        )

    @override
    def epochs(self) -> Iterator[Epoch]:
        started = time.perf_counter()
        for epoch in self.model.epochs():
            # Most of the time is spent outside the epochs of the gradient-trained head.
            self.history.append(replace(epoch, seconds=time.perf_counter() - started))
            started = time.perf_counter()
            yield self.history[-1]

    def predict(self, rows: np.ndarray, which: str = "network") -> np.ndarray:
        """Return probabilities of the ensemble alone, after the epochs."""
        return self.model.ensemble.probabilities(self.images.features[rows], self.codes[rows])

    @override
    def build_outcome(self) -> TrainingOutcome:
        features, probabilities = self.images.features, self.model.probabilities
        if probabilities is None:
            raise ValueError("The training is not over: there are no probabilities yet.")
        some = np.sort(np.random.default_rng(self.seed).permutation(len(probabilities))[:SURROGATE_IMAGES])
        head = fit_surrogate_head(features[some], probabilities[some], self._report_progress)
        model = self.model.model
        portable = None if model is None else PortableEnsemble.build(model, self.codes.basis)
        return TrainingOutcome(head, probabilities, self.model.calibrated, self.model.outside_weights, portable)

    def _report_progress(self) -> None:
        self.progress("training", len(self.history), self.settings.epochs or self.method.epochs)
