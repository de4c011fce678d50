"""Networks compared on a project's own answers: features computed beside those in use, then cross-validation.

A linear head is fitted to the answers of four fifths of the images, on the features of either network, and scores the
remaining fifth; so every answer is judged by a head that has not seen it, nor another image of its event. Only unbiased
answers are judged, and not those of images that an adapted network was fitted to.
"""

import time
from collections.abc import Callable

import numpy as np

from annotator.errors import AnnotatorError, NothingToLearn
from annotator.indexing import positions
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.events import membership
from annotator.store.features.cache import open_features
from annotator.store.networks import adapted, configuration
from annotator.store.networks import comparisons as candidates
from annotator.store.networks.comparisons import Compared
from annotator.store.networks.judged import figures
from annotator.worker.adapting.switching import DOWNLOADING, NextContext
from annotator.worker.features.backbone import fetch_weights, measure_speed
from annotator.worker.features.context import Context
from annotator.worker.features.missing_features import MissingFeatures
from annotator.worker.training.training_set import training_set

FOLDS = 5
MOST_IMAGES = 20_000  # with answers, that are compared on; a sample of more
LOOK_SECONDS = 5.0  # between two looks at what is missing, where another process or a bucket is waited for


class CandidateContext(NextContext):
    """A worker's context for a network that is to be compared."""

    def __init__(self, context: Context, name: str):
        super().__init__(context)
        self.name = name

    def backbone_name(self) -> str:
        """Return the network that is to be compared."""
        return self.name


class Candidates:
    """The duty of preparing and comparing networks; each worker has one instance."""

    def __init__(self, context: Context, between: Callable[[str, int, int], None]):
        """Make the duty.

        Args:
            context: The worker's context.
            between: Called after every batch with (state, done, of).
        """
        self._context, self._db, self._between = context, context.db, between
        self._now: tuple[CandidateContext, MissingFeatures] | None = None
        self._again_at = 0.0

    def measure_speed(self) -> bool:
        """Measure the first network whose speed was asked for; return False when there is none."""
        name = next(iter(candidates.speeds_wanted(self._db)), "")
        if not name:
            return False
        self._context.say("measuring a network")
        try:
            if adapted.folder(self._db, name) is None:
                fetch_weights(name, lambda done, of: self._context.say(DOWNLOADING, done >> 20, of >> 20))
            measure_speed(name, self._db)
        except AnnotatorError as error:
            heartbeat.note_error(self._db, f"The speed of {name} could not be measured: {error}")
        candidates.want_speed(self._db, name, wanted=False)
        return True

    def prepare(self, train: Callable[[], bool] | None = None) -> bool:
        """Compute missing features of the first network to be compared; compare it when all images have them.

        Args:
            train: As in MissingFeatures.embed.

        Returns:
            True when a comparison, or the error that prevented it, was stored.
        """
        name = next(iter(candidates.wanted(self._db)), "")
        if not name:
            self._now = None
            return False
        if time.monotonic() < self._again_at:
            return False
        self._again_at = time.monotonic() + LOOK_SECONDS
        if self._now is None or self._now[0].name != name:
            own = CandidateContext(self._context, name)
            self._now = own, MissingFeatures(own, self._between)
        own, missing = self._now
        try:
            missing.embed(train)
            own.features().refresh()
            if missing.missing():
                return False
            self._context.say("comparing networks")
            compared = compare_networks(self._db, configuration.backbone(self._db), name)
        except AnnotatorError as error:
            compared = Compared(name, configuration.backbone(self._db), time.time(), error=str(error))
        candidates.note(self._db, compared)
        self._now, self._again_at = None, 0.0
        return True


def compare_networks(db: Database, first: str, second: str) -> Compared:
    """Compare two networks on the images with features of both. Raises NothingToLearn with too few answers."""
    from models.finetune.probe import head_scores  # loads torch
    from models.statistics.paired import compare

    caches = [open_features(db, name) for name in (first, second)]
    known = training_set(db, caches[0])
    image_ids = caches[0].image_ids[known.rows]
    places, both = positions(image_ids, caches[1].image_ids, np.argsort(caches[1].image_ids, kind="stable"))
    chosen = np.flatnonzero(both)
    if len(chosen) > MOST_IMAGES:
        chosen = np.sort(np.random.default_rng(0).choice(chosen, MOST_IMAGES, replace=False))
    labels, mask, unbiased = known.labels[chosen], known.mask[chosen], known.unbiased[chosen]
    fitted = np.union1d(adapted.fitted_image_ids(db, first), adapted.fitted_image_ids(db, second))
    seen = np.isin(image_ids[chosen], fitted)
    judged = np.where(unbiased & mask & ~seen[:, None], labels, 0).astype(np.int8)
    features = [caches[0].features[known.rows[chosen]], caches[1].features[places[chosen]]]
    together = membership.kept_together(db, image_ids[chosen])
    groups = membership.numbered(together)
    fold = (np.random.default_rng(0).permutation(int(groups.max(initial=-1)) + 1) % FOLDS)[groups]
    scores = [np.zeros(labels.shape, np.float32) for _ in features]
    try:
        for number in range(FOLDS):
            rest, own = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            if not len(own) or not (labels[rest] > 0).any():
                continue
            for of_network, of_images in zip(scores, features, strict=True):
                of_network[own] = head_scores(of_images[rest], labels[rest], mask[rest], unbiased[rest], of_images[own])
        result = compare(scores[0], scores[1], judged, groups=groups)
    except ValueError as error:
        raise NothingToLearn(
            f"{second} could not be compared with {first}: {str(error).rstrip('.')}.\n    It takes unbiased answers: "
            "complete images, audits, exploration. Complete some more images, then compare again."
        ) from error
    return Compared(
        name=second,
        against=first,
        at=time.time(),
        log_loss_low=result.log_loss.low,
        log_loss_high=result.log_loss.high,
        images=result.images,
        answers=result.answers,
        classes=result.classes,
        **figures(result),
    )
