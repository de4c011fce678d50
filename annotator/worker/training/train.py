"""One training, from decisions and embeddings to a published run."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from annotator.errors import NothingToLearn
from annotator.progress_callbacks import StepCallback, ignore_steps
from annotator.records import Run
from annotator.store.database.arrays import create_scratch_array
from annotator.store.database.database import Database
from annotator.store.events import membership
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.networks import adapted_networks
from annotator.store.runs import runs
from annotator.worker.features.region_cache import RegionCache
from annotator.worker.training import capture_context, external_predictions, fitted_images, publish
from annotator.worker.training.project_images import ProjectImages
from annotator.worker.training.training_set import load_training_set
from spmll.ensemble.collection_scoring import ScoringFunction, score_locally
from spmll.methods import make_method
from spmll.trainers import make_trainer
from spmll.trainers.base import TrainingLabels

if TYPE_CHECKING:
    from spmll.backbones.frozen_backbone import Backbone


def train(
    db: Database,
    cache: FeatureCache,
    method_name: str,
    parameters: dict,
    backbone: str,
    on_step: StepCallback = ignore_steps,
    load: Callable[[], "Backbone"] | None = None,
    regions: RegionCache | None = None,
    scoring: ScoringFunction | None = None,
) -> Run:
    """Train on all decisions and publish the result.

    Args:
        parameters: Overrides of the method's defaults.
        on_step: Called at least per epoch with (state, done, of), to run other duties.
        regions: Keeps region codes between trainings.
        scoring: None scores in this process.

    Raises NothingToLearn without a positive label, ValueError, DiskFull. Invalid rows are skipped.
    """
    started = time.perf_counter()
    answers = load_training_set(db, cache)
    fitted = np.isin(cache.image_ids[answers.rows], adapted_networks.load_fitted_image_ids(db, backbone))
    known = fitted_images.mark_biased(answers, fitted)
    others = (
        external_predictions.load(db, cache, known.class_ids)
        if external_predictions.are_used_by(method_name)
        else external_predictions.NO_PREDICTIONS
    )
    before = runs.load_current_run(db)
    # sources that were removed since
    is_to_forget = before is not None and runs.load_source_versions(db, before.id) != ()
    if not known.positive_count and not (
        others.can_guess or (is_to_forget and external_predictions.are_used_by(method_name))
    ):
        raise NothingToLearn(
            "There is nothing to learn from yet: no image with features has a label 'present', and there are no "
            "probabilities of another model (annotator predictions). Label some images first."
        )
    left_out = publish.describe_invalid_rows(db, known)
    try:
        method = make_method(method_name, **parameters)
    except (ValueError, TypeError) as error:
        method = make_method(method_name)
        left_out.append(f"parameters {parameters!r}: {error} The defaults of {method_name!r} are used.")
    run_id = runs.begin(
        db,
        method=method_name,
        parameters=method.parameters,
        backbone=backbone,
        class_ids=known.class_ids,
        images=len(cache.image_ids),
        last_decision_id=known.newest_decision_id,
        threshold=method.threshold,
    )
    images = ProjectImages(db, cache, backbone, load, regions or RegionCache(), known.class_ids)
    mask = None if known.mask.all() else known.mask
    events = membership.load_event_ids(db, cache.image_ids)
    surroundings = capture_context.load(db, cache.image_ids, events)
    labels = TrainingLabels(known.rows, known.labels, mask, known.unbiased, groups=events, context=surroundings)
    scores = [of_source for _, of_source in others.scores]
    scoring = scoring or partial(score_locally, empty=partial(create_scratch_array, cache.folder))
    trainer = make_trainer(method, images, labels, seed=run_id, progress=on_step, outside=scores, scoring=scoring)
    for epoch in trainer.epochs():
        on_step("training", epoch.number, epoch.total)
    outcome = trainer.build_outcome()
    if fitted.any() and outcome.calibrated:
        tell = partial(on_step, "scoring images that the network was fitted to", 0, 0)
        fitted_images.score_unseen(db, cache, backbone, answers, fitted, outcome.probabilities, tell)
    losses = [epoch.loss for epoch in trainer.history]
    used = others.build_source_weights(known.class_ids, outcome.outside_weights)
    training = publish.FinishedTraining(
        run_id, known, method, backbone, outcome, losses, started, left_out=left_out, sources=used
    )
    return publish.publish_run(db, cache, training)
