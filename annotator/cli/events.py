"""The command that finds events, shows them in numbers, and changes them."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from annotator.cli.options import AsJson, By, Project, examples
from annotator.cli.printing import print_result, print_table, printable
from annotator.errors import AnnotatorError
from annotator.settings import login
from annotator.shares import counted, parse_time, time_in_units

commands = typer.Typer(rich_markup_mode=None)
BAR = 40  # letters of the longest bar


@commands.command(
    epilog=examples(
        "annotator events traps",
        "annotator events traps --gap 2min --json",
        "annotator events traps --split site1/0118.jpg",
        "annotator events traps --merge site1/0120.jpg",
        "annotator events traps --shift site2=+1h",
        "annotator events traps --undo",
    )
)
def events(
    project: Project,
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
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Find the images that belong together by time and place, and show how many events there are.

    What people split, merge or shift stays when events are found anew. Each change is undone as one.
    """
    from annotator.store.database.database import Database
    from annotator.store.events.summary import summary

    db = Database(project)
    found, said = _changed(db, {"gap": gap, "split": split, "merge": merge, "shift": shift, "undo": undo}, by)
    numbers = summary(found)

    def text() -> None:
        for line in said:
            print(line)
        _print(numbers)

    value = asdict(numbers) | {"sizes": {str(images): events for images, events in numbers.sizes}}
    print_result(value, as_json, text)


def _changed(db: Any, wanted: dict[str, Any], by: str | None) -> tuple[Any, list[str]]:
    """Make the one change that is wanted, or none; return the events after it, and what was done in words."""
    from annotator.store.events import events as store
    from annotator.store.images import images

    given = [name for name, value in wanted.items() if value not in (None, False)]
    if len(given) > 1:
        raise AnnotatorError(f"One change at a time, so that each can be undone: --{' or --'.join(given)}.")
    person = login() if by is None else by
    if wanted["gap"] is not None:
        return store.set_gap(db, parse_time(wanted["gap"]), person), []
    if wanted["split"] is not None:
        return store.split(db, images.find_image(db, wanted["split"]).id, person), ["Split."]
    if wanted["merge"] is not None:
        return store.merge(db, images.find_image(db, wanted["merge"]).id, person), ["Merged."]
    if wanted["shift"] is not None:
        folder, is_named, time = wanted["shift"].rpartition("=")
        if not is_named:
            raise AnnotatorError(f"--shift names a folder and a time, such as site2=+1h, not {wanted['shift']!r}.")
        seconds = parse_time(time)
        return store.shift(db, "" if folder == "." else folder, seconds, person), [
            f"Shifted by {time_in_units(seconds)}."
        ]
    if wanted["undo"]:
        undone = store.undo(db, person)
        assert undone  # None only for a uuid that is stored already
        return store.current(db), [f"Undid {printable(store.in_words(db, undone.change))}."]
    return store.find(db), []


def _print(numbers: Any) -> None:
    told = f"{counted(numbers.images, 'image')} in {counted(numbers.events, 'event')}"
    told += f", cut at {time_in_units(numbers.gap)}."
    if numbers.without_time:
        told += f" {counted(numbers.without_time, 'image')} without a time: each is an event of its own."
    if numbers.edits:
        told += f" {counted(numbers.edits, 'change')} by people; --undo undoes the newest."
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
            (_range(bar), f"{bar.pairs:,}", ("#" * max(1, round(BAR * bar.pairs / most))).ljust(BAR)) for bar in shown
        ]
        print_table(("time between neighbours", "pairs", ""), rows)


def _range(bar: Any) -> str:
    if bar.up_to is None:
        return f"more than {time_in_units(bar.above)}"
    return f"up to {time_in_units(bar.up_to)}" if bar.up_to else "the same time"
