"""What the models of one training say of images: the ensemble and the answered-cell head in one pass.

Regions are read once for all models, and nothing of a block is kept but its scores.
"""

from collections.abc import Callable
from copy import copy

import numpy as np

from models.ensemble.answered_head import REGIONS, AnsweredHead
from models.ensemble.basis import as_tensor, root
from models.ensemble.fit_ensemble import ROWS, Ensemble
from models.ensemble.regions import RegionCodes, Regions
from models.linear.blocks import in_blocks
from models.linear.training import Array, Features
from models.statistics.calibration import SUREST
from models.statistics.stacker import Scores

SUREST_LOGIT = float(np.log((1 - SUREST) / SUREST))


class Scorer:
    """An ensemble and an answered-cell head with the images that they score.

    features, region_codes    of all N images
    """

    def __init__(self, ensemble: Ensemble, head: AnsweredHead, features: Features, region_codes: Regions | None):
        self._ensemble, self._head = ensemble, head
        self._features: Features | None = features
        self._region_codes: Regions | None = region_codes
        self._gain = head.gain(features, region_codes, ensemble.centre)
        self._columns = ensemble.columns(head.weight)

    def without_images(self) -> "Scorer":
        """The same, for `of_images` only: small enough to be sent elsewhere."""
        alone = copy(self)
        alone._features = alone._region_codes = None
        return alone

    def of(self, rows: slice | np.ndarray) -> Scores:
        """Scores (m, C) float32 of a few hundred images."""
        assert self._features is not None  # it has its images
        return self.of_images(self._features[rows], None if self._region_codes is None else self._region_codes[rows])

    def of_images(self, features: Array, region_codes: RegionCodes | None) -> Scores:
        """The same of images whose features (m, D) and codes are given."""
        wholes, best = self._columns.of(root(as_tensor(features)), region_codes)
        auto = self._ensemble.logits(wholes, best).clamp_(-SUREST_LOGIT, SUREST_LOGIT)
        others = 2 * auto.shape[1]
        known = wholes[:, others:]
        if best is not None:
            known = known + REGIONS * (best[:, others:] - known - self._gain)
        return Scores(auto.numpy(), (known + self._head.bias).numpy())

    def of_many(self, rows: np.ndarray, tell: Callable[[], None] = lambda: None) -> Scores:
        """The same of any number of images; tell is called every few hundred."""
        auto = np.empty((len(rows), self._head.weight.shape[1]), np.float32)
        known = np.empty_like(auto)

        def score(places: slice) -> None:
            scores = self.of(rows[places])
            auto[places], known[places] = scores.auto, scores.known

        in_blocks(len(rows), ROWS, score, tell)
        return Scores(auto, known)
