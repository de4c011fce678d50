"""Comparison of backbones by 5-fold cross-validated linear heads on the project's labels.

Folds keep events together. Only unbiased labels are judged, on images no adapted backbone was trained on.
"""

import time
from collections.abc import Callable

import numpy as np

from annotator.errors import AnnotatorError, NothingToLearn
from annotator.indexing import find_positions
from annotator.progress_callbacks import StepCallback
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.events import membership
from annotator.store.features.feature_cache import open_features
from annotator.store.networks import adapted_networks, configuration, network_comparisons
from annotator.store.networks.network_comparisons import NetworkComparison
from annotator.store.networks.network_judgement import to_judgement_fields
from annotator.worker.adapting.backbone_switching import DOWNLOADING_STATE, NextBackboneContext
from annotator.worker.features.backbone import fetch_weights, measure_speed
from annotator.worker.features.image_embedder import ImageEmbedder
from annotator.worker.features.worker_context import WorkerContext
from annotator.worker.training.training_set import load_training_set

FOLD_COUNT = 5
MAX_COMPARED_IMAGES = 20_000  # with answers, that are compared on; a sample of more
CHECK_SECONDS = 5.0  # between two looks at what is missing, where another process or a bucket is waited for


class CandidateContext(NextBackboneContext):
    """A worker context in which the backbone is one that is compared with the project's."""

    def __init__(self, context: WorkerContext, name: str):
        super().__init__(context)
        self.name = name

    def get_backbone_name(self) -> str:
        """Return the name of the backbone that is being compared."""
        return self.name


class NetworkComparer:
    """The worker duty of comparing backbones."""

    def __init__(self, context: WorkerContext, on_step: StepCallback):
        """Create the duty. `on_step` is called per batch with (state, done, of)."""
        self._context, self._db, self._on_step = context, context.db, on_step
        self._current: tuple[CandidateContext, ImageEmbedder] | None = None
        self._retry_at = 0.0

    def measure_speed(self) -> bool:
        """Measure the first backbone whose speed was requested, and return False if there is none."""
        name = next(iter(network_comparisons.load_requested_speeds(self._db)), "")
        if not name:
            return False
        self._context.report_state("measuring a network")
        try:
            if adapted_networks.find_folder(self._db, name) is None:
                fetch_weights(
                    name, lambda done, of: self._context.report_state(DOWNLOADING_STATE, done >> 20, of >> 20)
                )
            measure_speed(name, self._db)
        except AnnotatorError as error:
            heartbeat.record_error(self._db, f"The speed of {name} could not be measured: {error}")
        network_comparisons.request_speed(self._db, name, wanted=False)
        return True

    def prepare_and_compare(self, train: Callable[[], bool] | None = None) -> bool:
        """Embed with the first requested backbone, calling `train` in between. Return True once it is compared."""
        name = next(iter(network_comparisons.load_requested(self._db)), "")
        if not name:
            self._current = None
            return False
        if time.monotonic() < self._retry_at:
            return False
        self._retry_at = time.monotonic() + CHECK_SECONDS
        if self._current is None or self._current[0].name != name:
            own = CandidateContext(self._context, name)
            self._current = own, ImageEmbedder(own, self._on_step)
        own, missing = self._current
        try:
            missing.embed_missing(train)
            own.get_features().refresh()
            if missing.find_missing():
                return False
            self._context.report_state("comparing networks")
            compared = compare_networks(self._db, configuration.get_backbone(self._db), name)
        except AnnotatorError as error:
            compared = NetworkComparison(name, configuration.get_backbone(self._db), time.time(), error=str(error))
        network_comparisons.save_comparison(self._db, compared)
        self._current, self._retry_at = None, 0.0
        return True


def compare_networks(db: Database, first: str, second: str) -> NetworkComparison:
    """Compare two backbones on the images embedded by both. Raises NothingToLearn for too few labels."""
    from spmll.finetune.linear_probe import score_with_probe  # loads torch
    from spmll.statistics.paired_bootstrap import compare_scorings

    caches = [open_features(db, name) for name in (first, second)]
    known = load_training_set(db, caches[0])
    image_ids = caches[0].image_ids[known.rows]
    places, both = find_positions(image_ids, caches[1].image_ids, np.argsort(caches[1].image_ids, kind="stable"))
    chosen = np.flatnonzero(both)
    if len(chosen) > MAX_COMPARED_IMAGES:
        chosen = np.sort(np.random.default_rng(0).choice(chosen, MAX_COMPARED_IMAGES, replace=False))
    labels, mask, unbiased = known.labels[chosen], known.mask[chosen], known.unbiased[chosen]
    fitted = np.union1d(
        adapted_networks.load_fitted_image_ids(db, first), adapted_networks.load_fitted_image_ids(db, second)
    )
    seen = np.isin(image_ids[chosen], fitted)
    judged = np.where(unbiased & mask & ~seen[:, None], labels, 0).astype(np.int8)
    features = [caches[0].features[known.rows[chosen]], caches[1].features[places[chosen]]]
    together = membership.load_split_groups(db, image_ids[chosen])
    groups = membership.number_events(together)
    fold = (np.random.default_rng(0).permutation(int(groups.max(initial=-1)) + 1) % FOLD_COUNT)[groups]
    scores = [np.zeros(labels.shape, np.float32) for _ in features]
    try:
        for number in range(FOLD_COUNT):
            rest, own = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            if not len(own) or not (labels[rest] > 0).any():
                continue
            for of_network, of_images in zip(scores, features, strict=True):
                of_network[own] = score_with_probe(
                    of_images[rest], labels[rest], mask[rest], unbiased[rest], of_images[own]
                )
        result = compare_scorings(scores[0], scores[1], judged, groups=groups)
    except ValueError as error:
        raise NothingToLearn(
            f"{second} could not be compared with {first}: {str(error).rstrip('.')}.\n    It takes unbiased answers: "
            "complete images, audits, exploration. Complete some more images, then compare again."
        ) from error
    return NetworkComparison(
        name=second,
        against=first,
        at=time.time(),
        log_loss_low=result.log_loss.low,
        log_loss_high=result.log_loss.high,
        images=result.images,
        answers=result.answers,
        classes=result.classes,
        **to_judgement_fields(result),
    )
