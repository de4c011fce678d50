"""One training: what people decided + cached features -> probabilities for every image, published as a run."""

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from annotator.errors import AnnotatorError
from annotator.quality import auto_accept, guarantee
from annotator.queues import query_order
from annotator.records import Run
from annotator.settings import LEFT_OUT
from annotator.snapshot import rankings
from annotator.snapshot.predictions import Probabilities, damaged
from annotator.store import audits, configuration, odd_rows, runs
from annotator.store.arrays import FeatureCache, replacing, save_array
from annotator.store.database import Database
from annotator.worker import calibrate
from annotator.worker.training_set import TrainingSet, training_set
from models.linear.training import Head, fit
from models.methods import make_method

if TYPE_CHECKING:
    from annotator.worker.region_cache import RegionCache
    from models.backbones.networks import Backbone


log = logging.getLogger("annotator.worker")


def train(
    db: Database,
    cache: FeatureCache,
    method_name: str,
    parameters: dict,
    backbone: str,
    between: Callable[[str, int, int], None] = lambda state, done, of: None,
    load: Callable[[], "Backbone"] | None = None,
    parts: "RegionCache | None" = None,
) -> Run:
    """Train on everything decided so far and publish the result.

    between    called after every epoch, and more often where that takes long, with (state, done, of): the worker looks
               after its other duties there
    load       gives the backbone to a method that needs more of it than features; None: it is loaded by its name
    parts      where the parts of images are kept from one training to the next; None: nowhere

    Raises AnnotatorError when there is nothing to learn from, ValueError for an unknown method; DiskFull. What stands
    in the database and makes no sense is left out, and told in the status.
    """
    started = time.perf_counter()
    known = training_set(db, cache)
    if not known.positives:
        raise AnnotatorError(
            "There is nothing to learn from yet: no image with features has a label 'present'. Label some images first."
        )
    left_out = rows_left_out(db)
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
        last_decision_id=known.newest,
        threshold=method.threshold,
    )
    calibrated = False
    if method.reads == "maps":
        from annotator.worker.train_maps import train_on_maps
        from models.backbones.networks import load_backbone  # takes seconds, and only this kind of run needs it

        network = load() if load else load_backbone(backbone)
        about = (known.rows, known.labels, known.mask)
        head, probabilities, loss = train_on_maps(db, cache, *about, method, network, run_id, between)
    elif method.reads == "regions":
        from annotator.worker.region_cache import RegionCache
        from annotator.worker.train_regions import train_on_regions

        memory = parts or RegionCache()
        head, probabilities, loss, calibrated = train_on_regions(cache, known, method, memory, run_id, between)
    else:
        head, loss = Head(cache.features.shape[1], len(known.class_ids)), []
        for epoch in fit(head, cache.features[known.rows], known.labels, method, mask=known.mask, seed=run_id):
            loss.append(epoch.loss)
            between("training", epoch.number, epoch.of)
        probabilities = head.probabilities(cache.features)
    calibration, kept = None, calibrate.fitted_to_answers(len(known.class_ids), int(known.fair.sum()))
    if not calibrated:  # what has been fitted to fair answers is not bent once more by those that happened to be logged
        answers = calibrate.answered_before(db, method_name, backbone, known.class_ids)
        left_out += answers.left_out
        calibration = calibrate.calibration_of(answers, probabilities, known.unknown(len(probabilities)))
        kept = calibration
    _write(db, run_id, head, calibrate.calibrated(calibration, probabilities), cache, known)
    runs.publish(
        db,
        run_id,
        epochs=len(loss),
        seconds=time.perf_counter() - started,
        loss=loss,
        calibration=kept and kept.as_dict(),
        threshold=calibrate.threshold_of(calibration, method.threshold),
    )
    runs.forget_old(db)
    _tell(db, [*cache.left_out, *left_out])
    return runs.current_run(db)


def rows_left_out(db: Database) -> list[str]:
    """What stands in the database and cannot be used, one sentence each: nothing of it stops a training."""
    told = [
        *odd_rows.settings(db),
        *configuration.ignored(db),
        *guarantee.ignored(db),
        odd_rows.labels(db),
        odd_rows.accepted(db),
        *audits.damaged(db),
        *damaged(db),
    ]
    return [one for one in told if one]


def _tell(db: Database, left_out: list[str]) -> None:
    """Keep what this training left out for people to read; in the log, what the one before did not."""
    before = db.setting(LEFT_OUT, [])
    for one in left_out:
        if one not in before:
            log.warning("left out: %s", one)
    if left_out != before:
        db.set_setting(LEFT_OUT, left_out)


def _write(
    db: Database, run_id: int, head: Head, probabilities: np.ndarray, cache: FeatureCache, known: TrainingSet
) -> None:
    folder = db.paths.run(run_id)
    labels = np.zeros((len(cache.image_ids), len(known.class_ids)), np.int8)
    labels[known.rows] = known.labels
    query_order.save(folder, query_order.build(db, cache.image_ids, cache.features, probabilities, labels, seed=run_id))
    order = np.argsort(cache.image_ids, kind="stable")
    image_ids = cache.image_ids[order]
    # float16 tells apart what a person can: 0.998 and 0.999. Half the bytes to write after every run.
    probabilities = probabilities.astype(np.float16)[order]
    save_array(folder / "image_ids.npy", image_ids, sync=False)
    save_array(folder / "probabilities.npy", probabilities, sync=False)
    # Before the rankings, which leave out what is filled in.
    auto_accept.recheck(db, Probabilities(image_ids, np.array(known.class_ids), probabilities))
    rankings.save(folder, rankings.build(db, known.newest, image_ids, np.array(known.class_ids), probabilities))
    with replacing(folder / "head.safetensors") as part:
        head.save(part)
