"""The next images of the Annotate and Review pages, leased (reserved for one page), with labels and suggestions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from annotator.errors import AnnotatorError, did_you_mean
from annotator.humanize import format_count
from annotator.queues import query_order, review_queue
from annotator.records import Image, Label, Run, Suggestion, WantedActions, WantedGrids, WantedImages
from annotator.settings import DEFAULT_REVIEW_THRESHOLD
from annotator.snapshot.project_progress import Progress, load_progress
from annotator.snapshot.run_predictions import read_predictions
from annotator.snapshot.suggestions import (
    count_labels_until_first_run,
    describe_first_run,
    describe_guess_sources,
    encode_probabilities,
)
from annotator.store.classes import classes
from annotator.store.database import heartbeat, versions
from annotator.store.database.database import Database
from annotator.store.database.heartbeat import WorkerCondition
from annotator.store.images import images, sequences
from annotator.store.images.sequences import SEQUENCES
from annotator.store.labels import decisions, event_labels, project_counts
from annotator.store.labels.comments import count_comments_by_image
from annotator.store.people import assignment, blindness, leases
from annotator.store.runs import runs
from annotator.training_extra import has_training
from spmll.query_strategies.incomplete import INCOMPLETE

ALL_COMPLETE_MESSAGE = "Every image is complete: each class has an answer."
COMING_BACK_MESSAGE = "Unanswered ones come back within three minutes."  # of images that other pages have open
LIMITED_MESSAGE = "Some images wait for blind answers or belong to other people."
PAGES_WHEN_FINISHED = ("review", "certificate", "export")  # pages to go to once everything is answered
WORK_MODES = ("annotate", "review")


@dataclass(frozen=True)
class WorkItem:
    """One image to label, with what the page shows about it."""

    image: Image
    labels: list[Label]
    suggestions: list[Suggestion]
    # encoded probability of every class, b"" without a model
    likely: bytes = b""
    note: str = ""
    # version of the classes in `likely`
    class_version: int = 0
    comments: int = 0
    # to be answered blind, so only the image is set
    hidden: bool = False
    # sentences about the labels of its events
    events: Sequence[str] = ()


@dataclass(frozen=True)
class LeasedWork:
    """The response to a page's request: work items and the page's context."""

    items: list[Any]
    progress: Progress
    empty_reason: str
    worker_line: str
    # current training, None before the first
    run_id: int | None
    # run and version of the probabilities. Work items with another version are outdated
    model_version: str
    # pages to go to from an empty one, best first
    next_pages: tuple[str, ...] = ()
    # the page's items that another page has leased
    lost_items: Sequence[Any] = ()
    # "name", "time" or ""
    sequence: str = ""
    # last image the annotator passed in `sequence`, or 0
    after: int = 0
    # A page with another version reloads the classes
    class_version: int = 0


def lease_next_work(db: Database, wanted: WantedImages) -> LeasedWork:
    """Lease the next images for a page, and return them with its context.

    Raises AnnotatorError for an unknown mode, query order or kind of suggestions.
    """
    if wanted.mode not in WORK_MODES:
        raise AnnotatorError(f"There is no mode {wanted.mode!r}. {did_you_mean(wanted.mode, WORK_MODES)}")
    order = wanted.order or query_order.get_default_name(db)
    query_order.find_strategy(order)
    sequence = order if order in SEQUENCES and wanted.mode == "annotate" else ""
    after = _update_sequence_position(db, wanted, sequence)
    resumed = bool(wanted.instead) and leases.take_over(db, wanted.holder, wanted.instead)
    run = runs.load_current_run(db)
    counts = project_counts.count_images_by_stage(db)
    nothing_whole = wanted.mode == "annotate" and assignment.has_assigned_classes(db, wanted.annotator)
    if wanted.want == 0 or nothing_whole:
        leases.renew_images(db, wanted.holder, wanted.annotator, wanted.have)
        work_items = []
    elif wanted.mode == "annotate":
        # At most half of what is free, so that another person finds something to do.
        free = counts["all"] - counts["complete"] - leases.count_held_by_others(db, wanted.holder)
        want = min(wanted.want, max(1, free // 2))
        incomplete_first = order == INCOMPLETE.name
        request = leases.LeaseRequest(wanted.holder, wanted.annotator, wanted.have, want)
        lease_order = leases.LeaseOrder(
            first=() if incomplete_first else query_order.load(db, order),
            ahead=query_order.load(db, INCOMPLETE.name),
            resumed=resumed,
            incomplete_first=incomplete_first,
            sequence=sequence,
            after=after,
        )
        image_ids = leases.lease_next_images(db, request, lease_order)
        work_items = load_items(db, image_ids)
    else:
        chosen = review_queue.lease_next_images(db, wanted, _get_threshold(run))
        work_items = load_items(db, [image_id for image_id, _ in chosen], dict(chosen))
    empty, onward = ("", ()) if work_items or not wanted.want else _explain_empty(db, wanted, counts, run)
    shown = hide_blind_items(db, work_items, "" if wanted.may_review else wanted.annotator)
    work = build_work(db, wanted, shown, empty, counts, run, onward)
    return replace(work, sequence=sequence, after=after)


def build_work(
    db: Database,
    wanted: WantedImages | WantedGrids | WantedActions,
    work_items: list[Any],
    empty_reason: str,
    counts: dict[str, int],
    run: Run | None,
    next_pages: tuple[str, ...] = (),
) -> LeasedWork:
    """Return work items with the context of the page.

    Args:
        empty_reason: Why there is no work, or "".
        counts: Number of images by stage.
        next_pages: () selects them by the counts.
    """
    return LeasedWork(
        work_items,
        load_progress(db, wanted.annotator, counts),
        empty_reason,
        format_worker_line(db, run),
        run.id if run else None,
        f"{run.id}.{run.version}" if run else "",
        _choose_next_pages(counts, next_pages) if empty_reason else (),
        leases.find_taken_by_others(db, wanted.holder, wanted.have) if wanted.have else (),
        class_version=versions.get_class_version(db),
    )


def _choose_next_pages(counts: dict[str, int], next_pages: tuple[str, ...]) -> tuple[str, ...]:
    if not counts["all"]:
        return ("images",)
    return next_pages or (PAGES_WHEN_FINISHED if counts["complete"] == counts["all"] else ("autopilot", "annotate"))


def describe_open_elsewhere(count: int) -> str:
    """Return a clause such as "2 images are open elsewhere"."""
    return f"{format_count(count, 'image is', 'images are')} open elsewhere"


def format_worker_line(db: Database, run: Run | None) -> str:
    state = heartbeat.load_worker_state(db)
    if state.condition is WorkerCondition.NOT_STARTED and not state.last_error:
        return "Starting"  # for the first time: it takes some seconds
    if state.condition is WorkerCondition.NOT_INSTALLED:
        return state.reason
    if state.condition is WorkerCondition.HUNG:
        return f"Worker hangs ({state.state}, {state.delay}). Restart the app."
    if not state.alive:
        return f"Worker not running{state.reason and f': {state.reason}'}"
    idle = "Model up to date" if run else f"Model: {describe_first_run(db)}"
    line = {"idle": idle, "embedding": "Analyzing images"}.get(state.state, state.state.capitalize())
    if state.of and state.state != "idle":
        line += f" {state.done:,} of {state.of:,}"
    line += state.delay and f" ({state.delay})"
    if run:
        newer = project_counts.count_decisions_after(db, run.last_decision_id)
        guessed = describe_guess_sources(db, run)
        line += f" · {guessed}" if guessed else ""
        line += f" · {format_count(newer, 'answer')} not yet learned" if newer else ""
    return line


def _update_sequence_position(db: Database, wanted: WantedImages, sequence: str) -> int:
    """Store the position that the page reports, and return the last image passed in `sequence`, or 0."""
    if not sequence:
        return 0
    if wanted.after is not None:
        sequences.set_reached(db, wanted.annotator, sequence, wanted.after)
    return sequences.get_reached(db, wanted.annotator, sequence)


def _get_threshold(run: Run | None) -> float:
    return run.threshold if run else DEFAULT_REVIEW_THRESHOLD


def _explain_empty(
    db: Database, wanted: WantedImages, counts: dict[str, int], run: Run | None
) -> tuple[str, tuple[str, ...]]:
    if not counts["all"]:
        return "No images yet. Add a folder on the Images page.", ()
    if wanted.mode == "annotate":
        return _explain_nothing_to_annotate(db, wanted, counts)
    leased = review_queue.count_open_elsewhere(db, wanted, _get_threshold(run))
    more = f" {describe_open_elsewhere(leased)}. {COMING_BACK_MESSAGE}" if leased else ""
    onward = ("autopilot", "annotate") if counts["complete"] < counts["all"] else ("autopilot", "certificate")
    if wanted.only.kind == "annotator_disagreements":
        return f"{'No other disagreements.' if leased else 'No disagreements here.'}{more}", onward
    if run is None and not has_training():
        return "No suggestions: training is not installed. Progress shows how to install it.", onward
    if run is None:
        missing = count_labels_until_first_run(db, counts)
        if missing:
            return (
                f"No suggestions yet. Label about {format_count(missing, 'more image')} on the Annotate page.",
                onward,
            )
        return (
            "No suggestions yet. The first training starts soon.",
            onward,
        )
    if wanted.only.kind == "likely_mistakes":
        none = "No other" if leased else "No"
        return f"{none} likely mistakes here.{more or ' The next training may find some.'}", onward
    if more:
        return f"No other suggestions.{more}", onward
    return ("No more suggestions. Lower the probability, choose other classes, or label more images."), onward


def _explain_nothing_to_annotate(
    db: Database, wanted: WantedImages, counts: dict[str, int]
) -> tuple[str, tuple[str, ...]]:
    if counts["complete"] == counts["all"]:
        return ALL_COMPLETE_MESSAGE, PAGES_WHEN_FINISHED
    if assignment.has_assigned_classes(db, wanted.annotator):
        return "Autopilot and Grid ask about your classes, one at a time.", (
            "grid", "autopilot",
        )  # fmt: skip
    if wanted.have:  # answered on this page and not saved yet
        return "Saving your last answers...", ()
    if leased := leases.count_held_by_others(db, wanted.holder):
        return (
            f"Nothing left to label here: {describe_open_elsewhere(leased)}. {COMING_BACK_MESSAGE}",
            ("autopilot", "grid", "review"),
        )
    if assignment.has_withheld_images(db, wanted.annotator):
        return f"Nothing left to label here. {LIMITED_MESSAGE}", ("autopilot", "grid", "review")
    return "Nothing left to label here: the remaining files cannot be read.", ("progress", "autopilot", "review")


def hide_blind_items(db: Database, work_items: Sequence[WorkItem], blind: str) -> list[WorkItem]:
    """Return the items, with only the image in those that the annotator `blind` ("" for none) must still answer blind.

    The other items are recorded as shown to this annotator.
    """
    ids = blindness.reveal_visible_images(db, blind, [item.image.id for item in work_items]) if blind else ()
    return [
        WorkItem(item.image, [], [], class_version=item.class_version, hidden=True) if item.image.id in ids else item
        for item in work_items
    ]


def load_items_for(db: Database, image_ids: Sequence[int], blind: str) -> list[WorkItem]:
    """Load items, with only the image in those that the annotator `blind` ("" for none) must still answer blind.

    Nothing else of these is read, so response times do not reveal it. Showing the others is recorded.
    """
    ids = blindness.reveal_visible_images(db, blind, image_ids) if blind else set[int]()
    bare, class_version = images.load_images(db, sorted(ids)), versions.get_class_version(db)
    shown = {
        item.image.id: item for item in load_items(db, [image_id for image_id in image_ids if image_id not in ids])
    }
    shown |= {id_: WorkItem(bare[id_], [], [], class_version=class_version, hidden=True) for id_ in ids if id_ in bare}
    return [shown[image_id] for image_id in image_ids if image_id in shown]


def load_neighbors(
    db: Database, image_id: int, sequence: str, blind: str = ""
) -> tuple[WorkItem | None, WorkItem | None]:
    """Return the previous and the next image in its folder by `sequence` (name or time), or None. Leases nothing."""
    ids = sequences.find_neighbors(db, image_id, sequence)
    asked = [image_id for image_id in ids if image_id is not None]
    known = {item.image.id: item for item in load_items_for(db, asked, blind)}
    before, after = (known.get(image_id) if image_id is not None else None for image_id in ids)
    return before, after


def load_items(
    db: Database, image_ids: Sequence[int], suggestions: dict[int, list[Suggestion]] | None = None
) -> list[WorkItem]:
    """Return images with labels, suggestions and notes, in the order of the ids, without unknown ids."""
    if not image_ids:
        return []
    records = images.load_images(db, image_ids)
    labels: dict[int, list[Label]] = {}
    for label in decisions.load_labels(db, image_ids):
        labels.setdefault(label.image_id, []).append(label)
    notes, comments = project_counts.load_flag_notes(db, list(image_ids)), count_comments_by_image(db, list(image_ids))
    events = event_labels.describe_by_image(db, image_ids)
    with db.reading():
        class_version, known = versions.get_class_version(db), classes.load_active_classes(db)
    likely_classes = encode_probabilities(read_predictions(db), image_ids, known)
    return [
        WorkItem(
            records[image_id],
            labels.get(image_id, []),
            (suggestions or {}).get(image_id, []),
            likely_classes.get(image_id, b""),
            notes.get(image_id, ""),
            class_version,
            comments.get(image_id, 0),
            events=events.get(image_id, ()),
        )
        for image_id in image_ids
        if image_id in records
    ]
