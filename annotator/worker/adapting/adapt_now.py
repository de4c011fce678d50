"""The steps of `annotator adapt`: plan, estimate, train, judge, publish.

PROJECT/adapting holds all resumable state. One rename into PROJECT/adapted publishes the backbone.
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from annotator.cluster.connection import check_cluster_option
from annotator.errors import AlreadyRunning, AnnotatorError
from annotator.process_stop import stop_on_signals
from annotator.progress_callbacks import StepCallback, ignore_steps
from annotator.store.database.database import Database
from annotator.store.networks import adaptation, adapted_networks, configuration
from annotator.store.networks.adapted_networks import AdaptedNetwork
from annotator.worker.adapting.adaptation_plan import AdaptationPlan, make_plan, read_plan
from annotator.worker.adapting.adaptation_progress import (
    AdaptationEstimate,
    AdaptationProgress,
    Paused,
)


@dataclass(frozen=True)
class AdaptationResult:
    """The result of one `annotator adapt`."""

    estimate: AdaptationEstimate
    # None if stopped or only estimated
    network: AdaptedNetwork | None
    # whether the project uses the backbone now or once all images are embedded
    in_use: bool
    seconds: float
    epochs_done: int


def adapt_now(
    project: Path,
    on: str = "local",
    epochs: int | None = None,
    *,
    estimate_only: bool = False,
    anew: bool = False,
    storage: str | None = None,
    on_step: StepCallback = ignore_steps,
    notify: Callable[[str], None] = lambda sentence: None,
) -> AdaptationResult:
    """Fine-tune the last stages of a project's backbone on its labels, or resume an unfinished training.

    Args:
        on: "local", "ray" or "ray://HOST:PORT".
        epochs: Epochs of a new training. None selects the default.
        estimate_only: Only estimate the duration.
        anew: Delete an unfinished training and start again.
        storage: Checkpoint folder or URL that all machines of a cluster reach.
        on_step: Called with (current step, done, of).
        notify: Called with sentences for the terminal.

    SIGINT, SIGTERM or a pause on the Settings page stop it. The same command resumes after the last epoch.

    Raises:
        AnnotatorError: Too few labels, unsuitable backbone, another adaptation running, or disk full.
    """
    check_cluster_option(on)
    db = Database(project)
    db.check_writable()
    claim = adaptation.claim(db, on)
    work = AdaptationProgress(db, claim, on_step)
    if adaptation.get_request(db) == "pause":  # of an earlier one
        adaptation.set_request(db, "")
    try:
        with stop_on_signals(work.stop):
            work.report("starting")
            outcome = _adapt(db, work, on, epochs, estimate_only, anew, storage, notify)
        if (
            outcome.network or estimate_only or adaptation.get_request(db) == "pause"
        ):  # else the parent process has stopped it by a signal
            adaptation.set_request(db, "")
        return outcome
    except AnnotatorError as error:
        adaptation.set_request(db, "")
        adaptation.set_result(db, {"kind": "error", "error": str(error), "at": time.time()})
        raise
    finally:
        adaptation.release(db)


def _adapt(
    db: Database,
    work: AdaptationProgress,
    on: str,
    epochs: int | None,
    estimate_only: bool,
    anew: bool,
    storage: str | None,
    notify: Callable[[str], None],
) -> AdaptationResult:
    from annotator.worker.adapting.local_training import Training  # imports torch
    from spmll.finetune.adapt import DEFAULT_EPOCHS

    began = time.monotonic()
    folder = db.paths.unfinished_adaptation
    if anew and not estimate_only:
        shutil.rmtree(folder, ignore_errors=True)
    plan = read_plan(folder)
    if plan is not None and not estimate_only:  # it may have been killed when all was done
        finished = _finish_stored_network(db, plan, time.monotonic() - began)
        if finished is not None:
            return finished
    if plan is not None and epochs not in (None, plan.epochs):
        raise AnnotatorError(
            f"An adapting over {plan.epochs} epochs was begun, and is gone on with by the same command without "
            f"--epochs. To forget it: annotator adapt {db.paths.project} --epochs {epochs} --anew"
        )
    if plan is None:
        if not estimate_only:  # files left there are of another plan: inputs of another network, a checkpoint
            shutil.rmtree(folder, ignore_errors=True)
        plan = make_plan(db, configuration.get_backbone(db), DEFAULT_EPOCHS if epochs is None else epochs)
    elif not estimate_only:
        notify(f"Going on with {plan.name}, which was begun.")
    work.report("loading the network")
    training = Training(db, plan, folder, work)
    estimate = training.estimate(all_images=_count_images(db))
    adaptation.set_result(db, {"kind": "estimate", "at": time.time(), **_to_estimate_fields(estimate)})
    notify(describe_estimate(estimate))
    if estimate_only:
        return AdaptationResult(estimate, None, False, time.monotonic() - began, 0)
    work.set_remaining_seconds(estimate.total_seconds - estimate.features_seconds)
    try:
        if on != "local":
            from annotator.worker.adapting.cluster_training import train_on_cluster

            training.write_plan()
            train_on_cluster(on, training, storage, notify)
        else:
            training.make_inputs()
            training.train()
        work.report("judging by held-out answers")
        network = training.judge_and_publish(time.monotonic() - began)
    except Paused:
        adaptation.set_result(
            db, {"kind": "paused", "at": time.time(), "epoch": training.epochs_done, "of": plan.epochs}
        )
        return AdaptationResult(estimate, None, False, time.monotonic() - began, training.epochs_done)
    return _finish_adaptation(db, network, estimate, time.monotonic() - began)


def clean_up_after_kill(db: Database) -> None:
    """Finish an adaptation killed after storing its backbone, or delete files without a plan.

    Resumable and running adaptations are left alone.
    """
    folder = db.paths.unfinished_adaptation
    try:
        adaptation.claim(db, "local")
    except AlreadyRunning:
        return
    try:
        plan = read_plan(folder)  # under the claim: no other process can begin a plan that would be deleted here
        if plan is None:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            _finish_stored_network(db, plan, 0.0)
    finally:
        adaptation.release(db)


def _finish_stored_network(db: Database, plan: AdaptationPlan, seconds: float) -> AdaptationResult | None:
    if adapted_networks.find_folder(db, plan.name) is None:
        return None
    network = next(network for network in adapted_networks.load_networks(db) if network.name == plan.name)
    return _finish_adaptation(db, network, AdaptationEstimate(0, 0, 0, 0, plan.epochs, ""), seconds)


def _finish_adaptation(
    db: Database, network: AdaptedNetwork, estimate: AdaptationEstimate, seconds: float
) -> AdaptationResult:
    """Select a better backbone unless another was chosen, store the result, clean up."""
    is_used = network.is_better and configuration.get_backbone(db) == network.parent
    if is_used:
        adapted_networks.set_next_backbone(db, network.name)
    adaptation.set_result(db, {"kind": "adapted", "at": time.time(), "name": network.name, "in_use": is_used})
    shutil.rmtree(db.paths.unfinished_adaptation, ignore_errors=True)
    return AdaptationResult(estimate, network, is_used, seconds, network.epochs)


def describe_estimate(estimate: AdaptationEstimate) -> str:
    """Describe the estimated duration of an adaptation in words."""
    from annotator.humanize import format_count, format_duration

    return (
        f"This takes about {format_duration(estimate.total_seconds)} on {estimate.device}: "
        f"{format_duration(estimate.inputs_seconds)} to prepare {format_count(estimate.images, 'image')}, "
        f"{format_duration(estimate.training_seconds)} for {format_count(estimate.epochs, 'epoch')}, and if the "
        f"network is better, {format_duration(estimate.features_seconds)} to analyze all images with it. People can go "
        "on meanwhile."
    )


def _to_estimate_fields(estimate: AdaptationEstimate) -> dict[str, float | int | str]:
    return {
        "seconds": round(estimate.total_seconds, 1),
        "inputs_seconds": round(estimate.inputs_seconds, 1),
        "training_seconds": round(estimate.training_seconds, 1),
        "features_seconds": round(estimate.features_seconds, 1),
        "images": estimate.images,
        "epochs": estimate.epochs,
        "device": estimate.device,
    }


def _count_images(db: Database) -> int:
    return int(db.value("SELECT count(*) FROM image") or 0)
