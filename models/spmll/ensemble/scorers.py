"""Scorers of images by the models of `auto`: the ensemble, the head of answered cells, the stackers."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from spmll.ensemble.answered_head import BEST_REGION_SHARE, AnsweredHead
from spmll.ensemble.basis import signed_sqrt, to_float_tensor
from spmll.ensemble.collection_scoring import IMAGES_PER_BLOCK, KnownLabels
from spmll.ensemble.fit_ensemble import Ensemble
from spmll.ensemble.regions import RegionCodes, Regions
from spmll.labels import UNSEEN
from spmll.linear.blocks import run_in_blocks
from spmll.linear.training import Array, Features
from spmll.statistics.calibration import PROBABILITY_EPS
from spmll.statistics.stacker import Scores, Stacker, estimate_other_classes, sigmoid

MAX_LOGIT = float(np.log((1 - PROBABILITY_EPS) / PROBABILITY_EPS))


class Scorer:
    """A scorer of images by an ensemble and a head trained on answered cells, in one pass over regions."""

    def __init__(self, ensemble: Ensemble, head: AnsweredHead, features: Features, region_codes: Regions | None):
        self._ensemble, self._head = ensemble, head
        self._features: Features | None = features
        self._region_codes: Regions | None = region_codes
        self._columns = ensemble.join_weights(head.weight)

    @property
    def parts(self) -> tuple[Ensemble, AnsweredHead]:
        """Return the two models: the ensemble, and the head of answered cells."""
        return self._ensemble, self._head

    def without_images(self) -> "Scorer":
        """Return a copy that holds the models without images, to send elsewhere."""
        alone = copy(self)
        alone._features = alone._region_codes = None
        return alone

    def score_rows(self, rows: slice | np.ndarray) -> Scores:
        """Return the scores (m, C) of the images in these rows."""
        assert self._features is not None  # it has its images
        return self.score_images(self._features[rows], None if self._region_codes is None else self._region_codes[rows])

    def score_images(self, features: Array, region_codes: RegionCodes | None) -> Scores:
        """Return scores (m, C) of any images."""
        wholes, best = self._columns.score(signed_sqrt(to_float_tensor(features)), region_codes)
        auto = self._ensemble.logits(wholes, best).clamp_(-MAX_LOGIT, MAX_LOGIT)
        classes = auto.shape[1]
        of_head = slice(2 * classes, 3 * classes)
        known = wholes[:, of_head]
        if best is not None:
            known = known + BEST_REGION_SHARE * (best[:, of_head] - known)
        return Scores(auto.numpy(), (known + self._head.bias).numpy())

    def score_many(self, rows: np.ndarray, tell: Callable[[], None] = lambda: None) -> Scores:
        """Return the scores (m, C) of many rows, computed in parallel (`tell` is called regularly)."""
        auto = np.empty((len(rows), self._head.weight.shape[1]), np.float32)
        known = np.empty_like(auto)

        def score(places: slice) -> None:
            scores = self.score_rows(rows[places])
            auto[places], known[places] = scores.auto, scores.known

        run_in_blocks(len(rows), IMAGES_PER_BLOCK, score, tell)
        return Scores(auto, known)


@dataclass(frozen=True, eq=False)
class EnsembleModel:
    """A trained `auto` model without stackers, used until there are enough answers."""

    ensemble: Ensemble

    def probabilities(self, features: np.ndarray, region_codes: RegionCodes | None, known: KnownLabels) -> np.ndarray:
        return self.ensemble.probabilities(features, region_codes)


@dataclass(frozen=True, eq=False)
class StackedScorer:
    """A trained `auto` model with stackers, used once there are enough answers (stacking.py).

    Attributes:
        halves: Per half of the images, a scorer trained on the other half, or None.
        stackers: One per stacking round.
    """

    whole: Scorer
    halves: Sequence[Scorer | None]
    stackers: Sequence[Stacker]

    def probabilities(self, features: np.ndarray, region_codes: RegionCodes | None, known: KnownLabels) -> np.ndarray:
        scores = self.whole.score_images(features, region_codes)
        scores = Scores(scores.auto, scores.known, known.outside)
        return self.combine_scores(
            scores, lambda rows: features[rows], lambda rows: _select_rows(region_codes, rows), known
        )

    def combine_scores(
        self,
        scores: Scores,
        features: Callable[[np.ndarray], np.ndarray],
        region_codes: Callable[[np.ndarray], RegionCodes | None],
        known: KnownLabels,
    ) -> np.ndarray:
        """Return probabilities from the scores of a block. Answered cells use models trained without the image.

        Args:
            features: Function from rows to features.
            region_codes: Function from rows to region codes or None.
        """
        labels = np.full(scores.known.shape, UNSEEN, np.int8)
        labels[known.rows] = known.labels
        others = estimate_other_classes(self.stackers[:-1], scores, labels)
        probabilities = sigmoid(self.stackers[-1].logits(scores, others))
        probabilities[np.isnan(scores.auto)] = np.nan
        # Answered cells get the probabilities of models that had not seen the answer. The others would only repeat
        # it, and wrong answers could not be found (Northcutt et al., "Confident Learning", JAIR 2021).
        answered = np.flatnonzero(known.unbiased.any(1))
        if len(answered):
            rows = known.rows[answered]
            held_out = self._score_held_out(rows, known.halves[answered], scores, features, region_codes)
            unseen = sigmoid(self.stackers[-1].logits(held_out, others[rows]))
            cells = known.unbiased[answered] & ~np.isnan(scores.auto[rows])
            probabilities[rows] = np.where(cells, unseen, probabilities[rows])
        return probabilities

    def _score_held_out(self, rows, halves, scores, features, region_codes) -> Scores:
        """Return scores of images by those models that were trained without them."""
        auto = np.full((len(rows), scores.auto.shape[1]), np.nan, np.float32)
        known = np.zeros_like(auto)
        for half, scorer in enumerate(self.halves):
            places = np.flatnonzero(halves == half)
            if scorer is not None and len(places):
                of_half = scorer.score_images(features(rows[places]), region_codes(rows[places]))
                auto[places], known[places] = of_half.auto, of_half.known
        return Scores(auto, known, [values[rows] for values in scores.outside])


def _select_rows(region_codes: RegionCodes | None, rows: np.ndarray) -> RegionCodes | None:
    return None if region_codes is None else region_codes[rows]
