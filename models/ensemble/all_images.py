"""Scoring all images of a collection by what a training has learned: block by block, here or on other machines.

What has been learned (`ImageModel`) holds no image, so it can be sent to where the features are. Whoever trains may
score elsewhere (`Scoring`); `score_here` is what is done otherwise. Blocks are of ROWS images wherever they are scored,
so that the same kind of processor gives the same probabilities.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from models.ensemble.fit_ensemble import ROWS, Ensemble
from models.ensemble.regions import RegionCodes, Regions
from models.ensemble.scoring import Scorer
from models.labels import UNSEEN
from models.linear.blocks import in_blocks
from models.linear.training import Features, Head
from models.statistics.stacker import Scores, Stacker, likely_others, sigmoid


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of n images beside their features.

    rows        (m,) int64, ascending: which of them have a label
    labels      (m, C) int8 of those
    unbiased    (m, C) bool, which of these labels are unbiased answers
    halves      (m,) int64, which half each belongs to (stacking.py)
    outside     inputs (n, C) of each model from elsewhere
    """

    rows: np.ndarray
    labels: np.ndarray
    unbiased: np.ndarray
    halves: np.ndarray
    outside: Sequence[np.ndarray] = ()

    @classmethod
    def nothing(cls, classes: int) -> "Known":
        """Of any number of images: no label."""
        none = np.zeros((0, classes), np.int8)
        return cls(np.zeros(0, np.int64), none, none.astype(bool), np.zeros(0, np.int64))

    def __getitem__(self, rows: slice) -> "Known":
        """What is known of some of the images: a slice with a beginning and an end."""
        some = slice(*np.searchsorted(self.rows, [rows.start, rows.stop]).tolist())
        outside = [inputs[rows] for inputs in self.outside]
        return Known(self.rows[some] - rows.start, self.labels[some], self.unbiased[some], self.halves[some], outside)


class ImageModel(Protocol):
    """Gives probabilities for any images, and holds none itself."""

    def probabilities(self, features: np.ndarray, region_codes: RegionCodes | None, known: Known) -> np.ndarray:
        """(n, C) float32, nan for a class without a model, of at most ROWS images.

        features (n, D) float16 and region_codes of the same images; None: without
        """
        ...


class Scoring(Protocol):
    """Scores all images of a collection."""

    def __call__(
        self,
        model: ImageModel,
        features: Features,
        region_codes: Regions | None,
        known: Callable[[slice], Known],
        classes: int,
        tell: Callable[[], None],
    ) -> np.ndarray:
        """Probabilities (N, C) float32.

        features, region_codes    of all N images, read by rows
        known                     rows -> what is known of these images
        tell                      called now and then; what it raises ends the scoring
        """
        ...


def score_here(
    model: ImageModel,
    features: Features,
    region_codes: Regions | None,
    known: Callable[[slice], Known],
    classes: int,
    tell: Callable[[], None],
    empty: Callable[[tuple[int, ...], type[np.generic]], np.ndarray] = np.empty,
) -> np.ndarray:
    """`Scoring` by this process.

    empty    makes the array of the result, such as one that lies on the disk
    """
    result = empty((len(features), classes), np.float32)

    def score(rows: slice) -> None:
        codes = None if region_codes is None else region_codes[rows]
        result[rows] = model.probabilities(np.asarray(features[rows]), codes, known(rows))

    in_blocks(len(features), ROWS, score, tell)
    return result


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A head on pooled features, as an ImageModel."""

    head: Head

    def probabilities(self, features: np.ndarray, region_codes: RegionCodes | None, known: Known) -> np.ndarray:
        return self.head.probabilities(features)


@dataclass(frozen=True, eq=False)
class EnsembleModel:
    """The two models of `auto`, before there are answers to stack them by."""

    ensemble: Ensemble

    def probabilities(self, features: np.ndarray, region_codes: RegionCodes | None, known: Known) -> np.ndarray:
        return self.ensemble.probabilities(features, region_codes)


@dataclass(frozen=True, eq=False)
class StackedScorer:
    """All models of a training of `auto` with enough answers (stacking.py).

    whole       the models of all images
    halves      those that have not seen one half; None where there was nothing to learn or to score
    stackers    of each round
    """

    whole: Scorer
    halves: Sequence[Scorer | None]
    stackers: Sequence[Stacker]

    def probabilities(self, features: np.ndarray, region_codes: RegionCodes | None, known: Known) -> np.ndarray:
        scores = self.whole.of_images(features, region_codes)
        scores = Scores(scores.auto, scores.known, known.outside)
        return self.of_scores(scores, lambda rows: features[rows], lambda rows: _some(region_codes, rows), known)

    def of_scores(
        self,
        scores: Scores,
        features: Callable[[np.ndarray], np.ndarray],
        region_codes: Callable[[np.ndarray], RegionCodes | None],
        known: Known,
    ) -> np.ndarray:
        """The same with the scores of the first models at hand; features and region_codes give those of some images."""
        labels = np.full(scores.known.shape, UNSEEN, np.int8)
        labels[known.rows] = known.labels
        others = likely_others(self.stackers[:-1], scores, labels)
        probabilities = sigmoid(self.stackers[-1].logits(scores, others))
        probabilities[np.isnan(scores.auto)] = np.nan
        # Answered cells get the probabilities of models that had not seen the answer. The others would only repeat
        # it, and wrong answers could not be found (Northcutt et al., "Confident Learning", JAIR 2021).
        answered = np.flatnonzero(known.unbiased.any(1))
        if len(answered):
            rows = known.rows[answered]
            held_out = self._held_out(rows, known.halves[answered], scores, features, region_codes)
            unseen = sigmoid(self.stackers[-1].logits(held_out, others[rows]))
            cells = known.unbiased[answered] & ~np.isnan(scores.auto[rows])
            probabilities[rows] = np.where(cells, unseen, probabilities[rows])
        return probabilities

    def _held_out(self, rows, halves, scores, features, region_codes) -> Scores:
        """Scores of these images, each by the models that have not seen its half; nan and 0 without any."""
        auto = np.full((len(rows), scores.auto.shape[1]), np.nan, np.float32)
        known = np.zeros_like(auto)
        for half, scorer in enumerate(self.halves):
            places = np.flatnonzero(halves == half)
            if scorer is not None and len(places):
                of_half = scorer.of_images(features(rows[places]), region_codes(rows[places]))
                auto[places], known[places] = of_half.auto, of_half.known
        return Scores(auto, known, [values[rows] for values in scores.outside])


def _some(region_codes: RegionCodes | None, rows: np.ndarray) -> RegionCodes | None:
    return None if region_codes is None else region_codes[rows]
