"""What a person does next: which image, with what is known about it."""

from collections.abc import Sequence
from dataclasses import dataclass

from annotator.errors import AnnotatorError, did_you_mean
from annotator.queues import query_order, review
from annotator.records import Image, Label, Run, Suggestion, Wanted, WantedActions, WantedGrids
from annotator.settings import REVIEW_THRESHOLD
from annotator.snapshot.predictions import read_predictions
from annotator.snapshot.suggestions import labels_until_first_run, likely
from annotator.store import classes, decisions, heartbeat, images, leases, overview, runs
from annotator.store.database import Database
from models.query_strategies.incomplete import INCOMPLETE

COMPLETE = "Every image is complete: each class has an answer."
FINISHED = ("review", "certificate", "export")  # the pages for whom everything is answered
MODES = ("annotate", "review")


@dataclass(frozen=True)
class WorkItem:
    """One image in a person's hands.

    likely    the model's probability of every class, as bytes (suggest.likely); b"" where there is none
    note      what somebody noted about it, "" without a flag
    """

    image: Image
    labels: list[Label]
    suggestions: list[Suggestion]
    likely: bytes = b""
    note: str = ""


@dataclass(frozen=True)
class Work:
    """What a page gets: images or grids, and what it shows around them.

    left      images without a label, whoever has them open
    incomplete    images with an answer and an open class
    mine      decisions of this person that hold
    empty     why there is nothing (more) to do, "" while there is
    onward    then: the pages that have something, by name, the best first
    lost      of what the page has in hand, what another page has open by now; named as the page named it
    worker    what the worker does, in one line
    run       the current run's id, None before the first
    fresh     which version of which run this was looked up in: what a page holds of another one is out of date
    of        images in all
    """

    items: list
    left: int
    mine: int
    empty: str
    worker: str
    run: int | None
    fresh: str
    of: int
    incomplete: int = 0
    onward: tuple[str, ...] = ()
    lost: Sequence = ()


def next_work(db: Database, wanted: Wanted) -> Work:
    """The next images of a mode with everything around them.

    Raises AnnotatorError for an unknown mode or order, or an unknown kind of suggestions.
    """
    if wanted.mode not in MODES:
        raise AnnotatorError(f"There is no mode {wanted.mode!r}. {did_you_mean(wanted.mode, MODES)}")
    order = wanted.order or query_order.chosen(db)
    query_order.about(order)
    resumed = bool(wanted.instead) and leases.take_over(db, wanted.holder, wanted.instead)
    run = runs.current_run(db)
    counts = overview.image_counts(db)
    if wanted.want == 0:
        leases.hold(db, wanted.holder, wanted.annotator, wanted.have)
        found = []
    elif wanted.mode == "annotate":
        # Never more than half of what is free: the next person to come finds something to do.
        free = counts["all"] - counts["complete"] - leases.held_by_others(db, wanted.holder)
        want = min(wanted.want, max(1, free // 2))
        partly = order == INCOMPLETE.name
        first, ahead = () if partly else query_order.ahead(db, order), query_order.ahead(db, INCOMPLETE.name)
        taken = leases.take_next(
            db, wanted.holder, wanted.annotator, wanted.have, want, first, resumed, ahead, incomplete_first=partly
        )
        found = items(db, taken)
    else:
        chosen = review.next_to_review(db, wanted, _threshold(run))
        found = items(db, [image_id for image_id, _ in chosen], dict(chosen))
    empty, onward = ("", ()) if found or not wanted.want else _empty(db, wanted, counts, run)
    return with_surroundings(db, wanted, found, empty, counts, run, onward)


def with_surroundings(
    db: Database,
    wanted: Wanted | WantedGrids | WantedActions,
    found: list,
    empty: str,
    counts: dict[str, int],
    run: Run | None,
    onward: tuple[str, ...] = (),
) -> Work:
    """What was found with what every page shows around it.

    counts    as overview.image_counts gives them
    onward    where to go from an empty page; without it where there is work, or a look at what was done
    """
    complete = counts["complete"] == counts["all"]
    return Work(
        found,
        counts["without_decision"],
        overview.decided_by(db, wanted.annotator),
        empty,
        worker_line(db, run),
        run.id if run else None,
        f"{run.id}.{run.version}" if run else "",
        counts["all"],
        counts["incomplete"],
        (onward or (FINISHED if complete else ("autopilot", "annotate"))) if empty and counts["all"] else (),
        leases.lost(db, wanted.holder, wanted.have) if wanted.have else (),
    )


def elsewhere(count: int) -> str:
    """That something is open on other pages, in words."""
    return f"{count:,} {'image is' if count == 1 else 'images are'} open elsewhere"


def worker_line(db: Database, run: Run | None) -> str:
    """What the worker does, in one quiet line."""
    state = heartbeat.worker_state(db)
    if not state.alive:
        trouble = f": {state.last_error.splitlines()[-1]}" if state.last_error else ""
        return f"the worker is not running{trouble}"
    idle = "model up to date" if run else "the model waits for more labels"
    line = {"idle": idle, "embedding": "looking at the images"}.get(state.state, state.state)
    if state.of and state.state != "idle":
        line += f" {state.done:,} of {state.of:,}"
    if run:
        newer = overview.decisions_newer_than(db, run.last_decision_id)
        line += f" - run {run.id} ({run.method})" + (f", {newer:,} decisions newer" if newer else "")
    return line


def _threshold(run: Run | None) -> float:
    return run.threshold if run else REVIEW_THRESHOLD


def _empty(db: Database, wanted: Wanted, counts: dict[str, int], run: Run | None) -> tuple[str, tuple[str, ...]]:
    """Why there is nothing, and the pages that have something."""
    if not counts["all"]:
        return f"There are no images yet. Add some: annotator init {db.paths.project} --images FOLDER", ()
    if wanted.mode == "annotate":
        return _nothing_to_annotate(db, wanted, counts)
    still = review.open_elsewhere(db, wanted, _threshold(run))
    more = f" {elsewhere(still)}: what is not answered there comes here within three minutes." if still else ""
    onward = ("annotate", "autopilot") if counts["complete"] < counts["all"] else ("autopilot", "certificate")
    if wanted.only.kind == "annotator_disagreements":
        return f"People disagree on {'no other' if still else 'none'} of these answers.{more}", onward
    if run is None:
        missing = labels_until_first_run(counts["without_decision"], counts["all"])
        if missing:
            return f"No suggestions yet: label about {missing:,} more images on the Annotate page.", onward
        return (
            "No suggestions yet: the first training is on its way, it takes a few seconds once images are embedded.",
            onward,
        )
    if wanted.only.kind == "likely_mistakes":
        none = "no other" if still else "none"
        return f"The model contradicts {none} of these answers.{more or ' The next run may find others.'}", onward
    if more:
        return f"No other suggestion is left here.{more}", onward
    return (
        "No suggestion is left here. Lower the probability, choose other classes, or label more images: "
        "every run brings new ones."
    ), onward


def _nothing_to_annotate(db: Database, wanted: Wanted, counts: dict[str, int]) -> tuple[str, tuple[str, ...]]:
    if counts["complete"] == counts["all"]:
        return COMPLETE, FINISHED
    if wanted.have:  # answered on this page, and not saved yet
        return "Saving your last answers...", ()
    if open_there := leases.held_by_others(db, wanted.holder):
        return (
            f"Nothing is left here. {elsewhere(open_there)}; what is not completed there comes back here within three "
            "minutes.",
            ("autopilot", "grid", "review"),
        )
    return "Nothing is left here: the remaining files cannot be read.", ("progress", "autopilot", "review")


def items(
    db: Database, image_ids: Sequence[int], suggestions: dict[int, list[Suggestion]] | None = None
) -> list[WorkItem]:
    """These images as a page needs them, in this order; ids that do not exist are left out."""
    if not image_ids:
        return []
    found = images.images(db, image_ids)
    labels: dict[int, list[Label]] = {}
    for label in decisions.labels(db, image_ids):
        labels.setdefault(label.image_id, []).append(label)
    notes = overview.notes(db, list(image_ids))
    likely_classes = likely(read_predictions(db), image_ids, classes.all_classes(db))
    return [
        WorkItem(
            found[image_id],
            labels.get(image_id, []),
            (suggestions or {}).get(image_id, []),
            likely_classes.get(image_id, b""),
            notes.get(image_id, ""),
        )
        for image_id in image_ids
        if image_id in found
    ]
