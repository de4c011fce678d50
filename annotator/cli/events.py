"""The command that finds events (bursts of images), counts them, and changes them."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from annotator.cli.options import (
    AnnotatorOption,
    AsJson,
    ProjectArgument,
    format_examples,
    refuse_combined_options,
)
from annotator.cli.printing import escape_unprintable, print_result, print_table
from annotator.errors import AnnotatorError
from annotator.humanize import format_count, format_exact_duration, parse_duration
from annotator.settings import get_login_name

commands = typer.Typer(rich_markup_mode=None)
BAR_CHARACTERS = 40  # letters of the longest bar


@commands.command(
    epilog=format_examples(
        "annotator events traps",
        "annotator events traps --gap 2min --json",
        "annotator events traps --split site1/0118.jpg",
        "annotator events traps --merge site1/0120.jpg",
        "annotator events traps --shift site2=+1h",
        "annotator events traps --undo",
    )
)
def events(
    context: typer.Context,
    project: ProjectArgument,
    gap: Annotated[
        str | None, typer.Option(metavar="TIME", help="Images further apart are of different events [default: 60s].")
    ] = None,
    split: Annotated[str | None, typer.Option(metavar="IMAGE", help="Let an event begin with this image.")] = None,
    merge: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="Join the event of this image with the one before it.")
    ] = None,
    shift: Annotated[
        str | None,
        typer.Option(metavar="FOLDER=TIME", help="Put the clock of a folder right; . is the folder of all images."),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Undo the newest change.")] = False,
    by: AnnotatorOption = None,
    as_json: AsJson = False,
) -> None:
    """Group images into events by time and place, and show how many events there are.

    Splits, merges and clock shifts stay when events are computed again. Each change is undone in one step.
    """
    from annotator.store.database.database import Database
    from annotator.store.events.event_summary import summarize_events

    refuse_combined_options(
        context, "gap", "split", "merge", "shift", "undo", why="One change at a time, so that each can be undone"
    )
    db = Database(project)
    found, said = _apply_change(db, {"gap": gap, "split": split, "merge": merge, "shift": shift, "undo": undo}, by)
    numbers = summarize_events(found)

    def text() -> None:
        for line in said:
            print(line)
        _print_summary(numbers)

    value = asdict(numbers) | {"sizes": {str(images): events for images, events in numbers.sizes}}
    print_result(value, as_json, text)


def _apply_change(db: Any, wanted: dict[str, Any], by: str | None) -> tuple[Any, list[str]]:
    from annotator.store.events import project_events
    from annotator.store.images import images

    person = get_login_name() if by is None else by
    if wanted["gap"] is not None:
        return project_events.set_gap(db, parse_duration(wanted["gap"]), person), []
    if wanted["split"] is not None:
        return project_events.split_event(db, images.find_image(db, wanted["split"]).id, person), ["Split."]
    if wanted["merge"] is not None:
        return project_events.merge(db, images.find_image(db, wanted["merge"]).id, person), ["Merged."]
    if wanted["shift"] is not None:
        folder, is_named, time = wanted["shift"].rpartition("=")
        if not is_named:
            raise AnnotatorError(f"--shift names a folder and a time, such as site2=+1h, not {wanted['shift']!r}.")
        seconds = parse_duration(time)
        return project_events.shift_clock(db, "" if folder == "." else folder, seconds, person), [
            f"Shifted by {format_exact_duration(seconds)}."
        ]
    if wanted["undo"]:
        undone = project_events.undo(db, person)
        assert undone  # None only for a uuid that is stored already
        return project_events.derive_current(db), [
            f"Undid {escape_unprintable(project_events.describe_change(db, undone.change))}."
        ]
    return project_events.find_and_save(db), []


def _print_summary(numbers: Any) -> None:
    told = f"{format_count(numbers.images, 'image')} in {format_count(numbers.events, 'event')}"
    told += f", cut at {format_exact_duration(numbers.gap)}."
    if numbers.without_time:
        told += f" {format_count(numbers.without_time, 'image')} without a time: each is an event of its own."
    if numbers.edits:
        told += f" {format_count(numbers.edits, 'change')} by people; --undo undoes the newest."
    print(told)
    if not numbers.images:
        return
    print()
    print_table(("images of an event", "events"), [(f"{size:,}", f"{count:,}") for size, count in numbers.sizes])
    shown = [bar for bar in numbers.gaps if bar.pairs]
    if shown:
        print()
        most = max(bar.pairs for bar in shown)
        rows = [
            (
                _format_gap_range(bar),
                f"{bar.pairs:,}",
                ("#" * max(1, round(BAR_CHARACTERS * bar.pairs / most))).ljust(BAR_CHARACTERS),
            )
            for bar in shown
        ]
        print_table(("time between neighbours", "pairs", ""), rows)


def _format_gap_range(bar: Any) -> str:
    if bar.up_to is None:
        return f"more than {format_exact_duration(bar.above)}"
    return f"up to {format_exact_duration(bar.up_to)}" if bar.up_to else "the same time"
