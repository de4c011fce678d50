"""`annotator adapt`: plan, estimate, train, judge, keep; and use a better network once all images have its features.

Everything that a training needs to go on after a kill lies in PROJECT/adapting: the plan, the inputs of the trained
stages, a checkpoint of the last epoch. The new network is published by one rename into PROJECT/adapted.
"""

import contextlib
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from annotator.cluster.connection import check
from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.networks import adaptation as adapting
from annotator.store.networks import adapted, configuration
from annotator.store.networks.adapted import Adapted
from annotator.worker.adapting.plan import make_plan, read_plan
from annotator.worker.adapting.work import Estimate, Paused, Show, Work


@dataclass(frozen=True)
class Outcome:
    """The result of one `annotator adapt`.

    Attributes:
        estimate: How long it was expected to take; zeros where a finished training was only kept.
        network: None: the training was stopped, or only estimated.
        in_use: Whether the project uses the network now, or will when all images have its features.
    """

    estimate: Estimate
    network: Adapted | None
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
    show: Show = lambda done, of, what: None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Outcome:
    """Adapt the network of a project to its answers; go on with a training that was begun.

    Args:
        project: The project folder.
        on: "local", "ray" or "ray://HOST:PORT".
        epochs: The epochs of a new training; None: as the recipe says.
        estimate_only: Only estimate how long it would take, and train nothing.
        anew: Delete a training that was begun, and begin a new one.
        storage: For a cluster: a folder or address that all of its machines reach, for checkpoints.
        show: Called with (done, of, the present step in words).
        say: Called with sentences that deserve a line on the terminal.

    SIGINT and SIGTERM stop it, as a pause from the Settings page does: the same command goes on from the last epoch.
    Raises AnnotatorError: nothing to learn from, a network that cannot be adapted, another process at it, DiskFull.
    """
    check(on)
    db = Database(project)
    db.refuse_read_only()
    claim = adapting.claim(db, on)
    work = Work(db, claim, show)
    if adapting.wanted(db) == "pause":  # of an earlier one
        adapting.want(db, "")
    try:
        with _stopped_by_signals(work.stop):
            work.say("starting")
            outcome = _adapt(db, work, on, epochs, estimate_only, anew, storage, say)
        if (
            outcome.network or estimate_only or adapting.wanted(db) == "pause"
        ):  # else the parent process has stopped it by a signal
            adapting.want(db, "")
        return outcome
    except AnnotatorError as error:
        adapting.want(db, "")
        adapting.note_result(db, {"kind": "error", "error": str(error), "at": time.time()})
        raise
    finally:
        adapting.release(db)


def _adapt(
    db: Database,
    work: Work,
    on: str,
    epochs: int | None,
    estimate_only: bool,
    anew: bool,
    storage: str | None,
    say: Callable[[str], None],
) -> Outcome:
    from annotator.worker.adapting.local import Training  # imports torch
    from models.finetune.adapt import EPOCHS

    began = time.monotonic()
    folder = db.paths.adapting
    if anew and not estimate_only:
        shutil.rmtree(folder, ignore_errors=True)
    plan = read_plan(folder)
    if plan is not None and adapted.folder(db, plan.name) and not estimate_only:  # killed when all was done
        network = next(network for network in adapted.networks(db) if network.name == plan.name)
        return _ended(db, network, Estimate(0, 0, 0, 0, plan.epochs, ""), time.monotonic() - began)
    if plan is not None and epochs not in (None, plan.epochs):
        raise AnnotatorError(
            f"An adapting over {plan.epochs} epochs was begun, and is gone on with by the same command without "
            f"--epochs. To forget it: annotator adapt {db.paths.project} --epochs {epochs} --anew"
        )
    if plan is None:
        if not estimate_only:  # files left there are of another plan: inputs of another network, a checkpoint
            shutil.rmtree(folder, ignore_errors=True)
        plan = make_plan(db, configuration.backbone(db), EPOCHS if epochs is None else epochs)
    elif not estimate_only:
        say(f"Going on with {plan.name}, which was begun.")
    work.say("loading the network")
    training = Training(db, plan, folder, work)
    estimate = training.estimate(all_images=_images(db))
    adapting.note_result(db, {"kind": "estimate", "at": time.time(), **_facts(estimate)})
    say(in_words(estimate))
    if estimate_only:
        return Outcome(estimate, None, False, time.monotonic() - began, 0)
    work.ends_in(estimate.seconds - estimate.features)
    try:
        if on != "local":
            from annotator.worker.adapting.cluster_training import train_on_cluster

            training.settle()
            train_on_cluster(on, training, storage, say)
        else:
            training.make_inputs()
            training.train()
        work.say("judging by held-out answers")
        network = training.keep(time.monotonic() - began)
    except Paused:
        adapting.note_result(
            db, {"kind": "paused", "at": time.time(), "epoch": training.epochs_done, "of": plan.epochs}
        )
        return Outcome(estimate, None, False, time.monotonic() - began, training.epochs_done)
    return _ended(db, network, estimate, time.monotonic() - began)


def _ended(db: Database, network: Adapted, estimate: Estimate, seconds: float) -> Outcome:
    """Prepare the network if it is better and nobody has chosen another since; store the result and clean up."""
    is_used = network.is_better and configuration.backbone(db) == network.parent
    if is_used:
        adapted.prepare(db, network.name)
    adapting.note_result(db, {"kind": "adapted", "at": time.time(), "name": network.name, "in_use": is_used})
    shutil.rmtree(db.paths.adapting, ignore_errors=True)
    return Outcome(estimate, network, is_used, seconds, network.epochs)


def in_words(estimate: Estimate) -> str:
    """Return the estimate as one sentence."""
    from annotator.shares import counted, seconds_in_words

    return (
        f"This takes about {seconds_in_words(estimate.seconds)} on {estimate.device}: "
        f"{seconds_in_words(estimate.inputs)} to prepare {counted(estimate.images, 'image')}, "
        f"{seconds_in_words(estimate.training)} for {counted(estimate.epochs, 'epoch')}, and if the network is better, "
        f"{seconds_in_words(estimate.features)} to analyze all images with it. People can go on meanwhile."
    )


def _facts(estimate: Estimate) -> dict[str, float | int | str]:
    return {
        "seconds": round(estimate.seconds, 1),
        "inputs_seconds": round(estimate.inputs, 1),
        "training_seconds": round(estimate.training, 1),
        "features_seconds": round(estimate.features, 1),
        "images": estimate.images,
        "epochs": estimate.epochs,
        "device": estimate.device,
    }


def _images(db: Database) -> int:
    return int(db.value("SELECT count(*) FROM image") or 0)


@contextlib.contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Let SIGINT and SIGTERM set `stop` during the block; a second one ends the process as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, _frame: object) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)] or signal.SIG_DFL)

    for number in before:
        signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
