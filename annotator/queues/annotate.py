"""The next images of the Annotate and Review pages, each with what is known about it, leased to the page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from annotator.errors import AnnotatorError, did_you_mean
from annotator.queues import query_order, review
from annotator.records import Image, Label, Run, Suggestion, Wanted, WantedActions, WantedGrids
from annotator.settings import REVIEW_THRESHOLD
from annotator.shares import counted
from annotator.snapshot.predictions import read_predictions
from annotator.snapshot.progress import Progress, progress_of
from annotator.snapshot.suggestions import (
    first_run_in_words,
    guessed_in_words,
    labels_until_first_run,
    probability_bytes,
)
from annotator.store.classes import classes
from annotator.store.database import heartbeat, versions
from annotator.store.database.database import Database
from annotator.store.images import images, sequences
from annotator.store.images.sequences import SEQUENCES
from annotator.store.labels import counts as overview
from annotator.store.labels import decisions, event_labels
from annotator.store.labels.comments import comment_counts
from annotator.store.people import assignment, blindness, leases
from annotator.store.runs import runs
from models.query_strategies.incomplete import INCOMPLETE

COMPLETE = "Every image is complete: each class has an answer."
BACK = "Unanswered ones come back within three minutes."  # of images that other pages have open
NOT_ALL = "Some images wait for blind answers or belong to other people."
FINISHED = ("review", "certificate", "export")  # pages to go to once everything is answered
MODES = ("annotate", "review")


@dataclass(frozen=True)
class WorkItem:
    """One image for a person to answer.

    Attributes:
        likely: The probability of every class (suggestions.probability_bytes); b"" without a model.
        note: The note of its flag, "" without one.
        class_version: Of the classes that `likely` is about (versions.class_version).
        comments: How many comments the image has.
        hidden: The person is still to answer the image blind: labels, suggestions and the rest are left empty.
        events: Sentences about the labels of the events (bursts) that it belongs to.
    """

    image: Image
    labels: list[Label]
    suggestions: list[Suggestion]
    likely: bytes = b""
    note: str = ""
    class_version: int = 0
    comments: int = 0
    hidden: bool = False
    events: Sequence[str] = ()


@dataclass(frozen=True)
class Work:
    """The answer to a page's request: images, grids or actions, and what the page shows around them.

    Attributes:
        progress: How far the project is.
        empty: Why there is nothing (more) to do; "" while there is.
        worker: The state of the worker, in one line.
        run: The current run's id, None before the first.
        fresh: The run and version that this was read from; what a page holds of another run or version is out of date.
        onward: Names of the pages to go to from an empty one, the best first.
        lost: Those of the page's own items that another page has leased by now, in the page's order.
        sequence: The order by name or time that the images come in, "" for any other.
        after: The last image in `sequence` that this person has left, 0 where there is none.
        class_version: versions.class_version: a page that knows another one asks for the classes.
    """

    items: list[Any]
    progress: Progress
    empty: str
    worker: str
    run: int | None
    fresh: str
    onward: tuple[str, ...] = ()
    lost: Sequence[Any] = ()
    sequence: str = ""
    after: int = 0
    class_version: int = 0


def next_work(db: Database, wanted: Wanted) -> Work:
    """Return the next images of a mode, leased to the page, and what the page shows around them.

    Raises:
        AnnotatorError: For an unknown mode, query order or kind of suggestions.
    """
    if wanted.mode not in MODES:
        raise AnnotatorError(f"There is no mode {wanted.mode!r}. {did_you_mean(wanted.mode, MODES)}")
    order = wanted.order or query_order.chosen(db)
    query_order.find_strategy(order)
    sequence = order if order in SEQUENCES and wanted.mode == "annotate" else ""
    after = _reached(db, wanted, sequence)
    resumed = bool(wanted.instead) and leases.take_over(db, wanted.holder, wanted.instead)
    run = runs.current_run(db)
    counts = overview.image_counts(db)
    nothing_whole = wanted.mode == "annotate" and assignment.has_classes(db, wanted.annotator)
    if wanted.want == 0 or nothing_whole:
        leases.hold(db, wanted.holder, wanted.annotator, wanted.have)
        work_items = []
    elif wanted.mode == "annotate":
        # At most half of what is free, so that another person finds something to do.
        free = counts["all"] - counts["complete"] - leases.held_by_others(db, wanted.holder)
        want = min(wanted.want, max(1, free // 2))
        incomplete_first = order == INCOMPLETE.name
        untouched = () if incomplete_first else query_order.load(db, order)
        incomplete = query_order.load(db, INCOMPLETE.name)
        image_ids = leases.take_next(
            db, wanted.holder, wanted.annotator, wanted.have, want, untouched, resumed, incomplete,
            incomplete_first=incomplete_first, sequence=sequence, after=after,
        )  # fmt: skip
        work_items = items(db, image_ids)
    else:
        chosen = review.next_to_review(db, wanted, _threshold(run))
        work_items = items(db, [image_id for image_id, _ in chosen], dict(chosen))
    empty, onward = ("", ()) if work_items or not wanted.want else _empty(db, wanted, counts, run)
    shown = hide_blind_items(db, work_items, "" if wanted.may_review else wanted.annotator)
    work = with_surroundings(db, wanted, shown, empty, counts, run, onward)
    return replace(work, sequence=sequence, after=after)


def with_surroundings(
    db: Database,
    wanted: Wanted | WantedGrids | WantedActions,
    work_items: list[Any],
    empty: str,
    counts: dict[str, int],
    run: Run | None,
    onward: tuple[str, ...] = (),
) -> Work:
    """Return work items together with what every page shows around them.

    Args:
        db: The project's database.
        wanted: The request of the page.
        work_items: The images, grids or actions to show.
        empty: Why there is nothing to show; "" where there is.
        counts: Of overview.image_counts.
        run: The current run; None before the first.
        onward: Pages to go to from an empty one; (): those with work, or FINISHED once every image is complete.
    """
    return Work(
        work_items,
        progress_of(db, wanted.annotator, counts),
        empty,
        worker_line(db, run),
        run.id if run else None,
        f"{run.id}.{run.version}" if run else "",
        _onward(counts, onward) if empty else (),
        leases.taken_by_others(db, wanted.holder, wanted.have) if wanted.have else (),
        class_version=versions.class_version(db),
    )


def _onward(counts: dict[str, int], onward: tuple[str, ...]) -> tuple[str, ...]:
    if not counts["all"]:
        return ("images",)
    return onward or (FINISHED if counts["complete"] == counts["all"] else ("autopilot", "annotate"))


def open_on_other_pages(count: int) -> str:
    """Return a clause that says how many images other pages have open."""
    return f"{counted(count, 'image is', 'images are')} open elsewhere"


def worker_line(db: Database, run: Run | None) -> str:
    """Return the state of the worker in one line: stopped, up to date, or its task and how far it is."""
    state = heartbeat.worker_state(db)
    if state.heartbeat_at is None and not state.last_error:
        return "Starting"  # for the first time: it takes some seconds
    if not state.alive:
        trouble = f": {state.last_error.splitlines()[-1]}" if state.last_error else ""
        return f"Worker not running{trouble}"
    idle = "Model up to date" if run else f"Model: {first_run_in_words(db)}"
    line = {"idle": idle, "embedding": "Analyzing images"}.get(state.state, state.state.capitalize())
    if state.of and state.state != "idle":
        line += f" {state.done:,} of {state.of:,}"
    if run:
        newer = overview.decisions_newer_than(db, run.last_decision_id)
        guessed = guessed_in_words(db, run)
        line += f" · {guessed}" if guessed else ""
        line += f" · {counted(newer, 'answer')} not yet learned" if newer else ""
    return line


def _reached(db: Database, wanted: Wanted, sequence: str) -> int:
    """Return the last image that this person has left in an order by name or time; 0 for any other order.

    Where the page reports a new one, it is stored first.
    """
    if not sequence:
        return 0
    if wanted.after is not None:
        sequences.set_reached(db, wanted.annotator, sequence, wanted.after)
    return sequences.reached(db, wanted.annotator, sequence)


def _threshold(run: Run | None) -> float:
    return run.threshold if run else REVIEW_THRESHOLD


def _empty(db: Database, wanted: Wanted, counts: dict[str, int], run: Run | None) -> tuple[str, tuple[str, ...]]:
    """Return why there is nothing to do, and the names of the pages that have work."""
    if not counts["all"]:
        return "No images yet. Add a folder on the Images page.", ()
    if wanted.mode == "annotate":
        return _nothing_to_annotate(db, wanted, counts)
    leased = review.open_elsewhere(db, wanted, _threshold(run))
    more = f" {open_on_other_pages(leased)}. {BACK}" if leased else ""
    onward = ("autopilot", "annotate") if counts["complete"] < counts["all"] else ("autopilot", "certificate")
    if wanted.only.kind == "annotator_disagreements":
        return f"{'No other disagreements.' if leased else 'No disagreements here.'}{more}", onward
    if run is None:
        missing = labels_until_first_run(db, counts)
        if missing:
            return f"No suggestions yet. Label about {counted(missing, 'more image')} on the Annotate page.", onward
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


def _nothing_to_annotate(db: Database, wanted: Wanted, counts: dict[str, int]) -> tuple[str, tuple[str, ...]]:
    if counts["complete"] == counts["all"]:
        return COMPLETE, FINISHED
    if assignment.has_classes(db, wanted.annotator):
        return "Autopilot and Grid ask about your classes, one at a time.", (
            "grid", "autopilot",
        )  # fmt: skip
    if wanted.have:  # answered on this page and not saved yet
        return "Saving your last answers...", ()
    if leased := leases.held_by_others(db, wanted.holder):
        return (
            f"Nothing left to label here: {open_on_other_pages(leased)}. {BACK}",
            ("autopilot", "grid", "review"),
        )
    if assignment.is_limited(db, wanted.annotator):
        return f"Nothing left to label here. {NOT_ALL}", ("autopilot", "grid", "review")
    return "Nothing left to label here: the remaining files cannot be read.", ("progress", "autopilot", "review")


def hide_blind_items(db: Database, work_items: Sequence[WorkItem], blind: str) -> list[WorkItem]:
    """Return the items, with only the image of those that this person is still to answer blind.

    Showing the other images to the person is recorded, so that they are not asked about these blind later.

    Args:
        db: The project's database.
        work_items: The items to show.
        blind: The person; "": nobody is to answer blind.
    """
    ids = blindness.show(db, blind, [item.image.id for item in work_items]) if blind else ()
    return [
        WorkItem(item.image, [], [], class_version=item.class_version, hidden=True) if item.image.id in ids else item
        for item in work_items
    ]


def shown_to(db: Database, image_ids: Sequence[int], blind: str) -> list[WorkItem]:
    """Return the images as `items` has them, with only the image of those that this person is still to answer blind.

    Of images to answer blind nothing else is read, so that the response time does not reveal it either. Showing the
    other images to the person is recorded, so that they are not asked about these blind later.

    Args:
        db: The project's database.
        image_ids: The ids of the images.
        blind: The person; "": nobody is to answer blind.
    """
    ids = blindness.show(db, blind, image_ids) if blind else set[int]()
    bare, class_version = images.images(db, sorted(ids)), versions.class_version(db)
    shown = {item.image.id: item for item in items(db, [image_id for image_id in image_ids if image_id not in ids])}
    shown |= {id_: WorkItem(bare[id_], [], [], class_version=class_version, hidden=True) for id_ in ids if id_ in bare}
    return [shown[image_id] for image_id in image_ids if image_id in shown]


def neighbours(db: Database, image_id: int, sequence: str, blind: str = "") -> tuple[WorkItem | None, WorkItem | None]:
    """Return the images before and after this one in its folder, by name or time, as `shown_to` this person.

    None where there is no such image. Nothing is leased.
    """
    ids = sequences.neighbours(db, image_id, sequence)
    asked = [image_id for image_id in ids if image_id is not None]
    known = {item.image.id: item for item in shown_to(db, asked, blind)}
    before, after = (known.get(image_id) if image_id is not None else None for image_id in ids)
    return before, after


def items(
    db: Database, image_ids: Sequence[int], suggestions: dict[int, list[Suggestion]] | None = None
) -> list[WorkItem]:
    """Return images with their labels, suggestions and notes, in the order of the ids; unknown ids are left out."""
    if not image_ids:
        return []
    records = images.images(db, image_ids)
    labels: dict[int, list[Label]] = {}
    for label in decisions.labels(db, image_ids):
        labels.setdefault(label.image_id, []).append(label)
    notes, comments = overview.notes(db, list(image_ids)), comment_counts(db, list(image_ids))
    events = event_labels.in_words(db, image_ids)
    with db.reading():
        class_version, known = versions.class_version(db), classes.all_classes(db)
    likely_classes = probability_bytes(read_predictions(db), image_ids, known)
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
