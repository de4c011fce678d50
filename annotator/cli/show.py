"""The commands that list and write out: suggestions, the state of a project, the data set, the methods."""

import inspect
import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from annotator.cli import printing
from annotator.cli.options import AsJson, Project, examples
from annotator.errors import AnnotatorError
from annotator.shares import counted
from models import catalogue
from models.catalogue import Entry

commands = typer.Typer(rich_markup_mode=None)


class FormatName(StrEnum):
    csv = "csv"
    jsonl = "jsonl"


class UnknownName(StrEnum):
    keep = "keep"
    absent = "absent"
    model = "model"


@commands.command(epilog=examples("annotator suggest birds --limit 20", "annotator suggest birds --class heron --json"))
def suggest(
    project: Project,
    class_name: Annotated[str | None, typer.Option("--class", help="Only this class.")] = None,
    limit: Annotated[int, typer.Option(help="Show at most so many.", min=1)] = 50,
    as_json: AsJson = False,
) -> None:
    """List the labels that are probably missing, likeliest first."""
    from annotator.snapshot.suggestions import missing_positives
    from annotator.store import classes, images
    from annotator.store.database import Database

    db = Database(project)
    class_id = classes.find_class(db, class_name).id if class_name else None
    likely = missing_positives(db, class_id, limit)
    names = {class_.id: class_.name for class_ in classes.all_classes(db)}
    files = images.images(db, {suggestion.image_id for suggestion in likely})
    rows = [
        {
            "image": files[suggestion.image_id].name,
            "class": names[suggestion.class_id],
            "probability": None if suggestion.probability is None else round(suggestion.probability, 4),
            "run": suggestion.run_id,
        }
        for suggestion in likely
    ]
    if as_json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{row['probability']:.3f}  {row['class']:<20}  {printing.printable(row['image'])}")
    if not rows:
        print(f"No suggestions yet. Label some images, then run: annotator worker {project} --once")


@commands.command(epilog=examples("annotator status birds", "annotator status birds --json"))
def status(project: Project, as_json: AsJson = False) -> None:
    """Show the progress, what the worker does, and all problems."""
    from annotator.snapshot.status import status as read
    from annotator.store.database import Database

    state = read(Database(project))
    print(json.dumps(state)) if as_json else printing.print_status(state)


@commands.command(epilog=examples("annotator history birds site1/0118.jpg", "annotator history birds 0118.jpg --json"))
def history(
    project: Project,
    image: Annotated[str, typer.Argument(help="The image, by name or path.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Show who decided what about an image and when, what was undone by whom, its flags and comments."""
    from annotator.store.database import Database
    from annotator.store.image_history import history_of
    from annotator.store.images import find_image

    db = Database(project)
    events = history_of(db, find_image(db, image).id)
    if as_json:
        print(json.dumps([asdict(event) for event in events]))
        return
    printing.print_history(events)


@commands.command(
    epilog=examples(
        "annotator export birds labels.csv --format csv",
        "annotator export birds labels.jsonl --format jsonl --unknown model",
        "annotator export birds labels.csv --unknown model --expected-error 0.02",
        "annotator export birds labels.csv --unknown model --present-from 0.9 --absent-to 0.05",
    )
)
def export(
    project: Project,
    dest: Annotated[Path, typer.Argument(help="The file to write.")],
    kind: Annotated[FormatName, typer.Option("--format", help="File format.")] = FormatName.csv,
    unknown: Annotated[UnknownName, typer.Option(help="How to export unanswered pairs.")] = UnknownName.keep,
    expected_error: Annotated[float, typer.Option(help="For --unknown model: accepted share of wrong answers.")] = 0.01,
    present_from: Annotated[
        float | None,
        typer.Option(help="For --unknown model: present from this probability on [default: by --expected-error]."),
    ] = None,
    absent_to: Annotated[
        float | None,
        typer.Option(help="For --unknown model: absent up to this probability [default: by --expected-error]."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Both at once: present from here on, absent below."),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="CSV: keep = + - @ at the start of a name, which spreadsheets run as formulas."),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Also replace files that were not written by an export.")
    ] = False,
) -> None:
    """Write the data set: one row per image, one value per class, and the source of each label.

    Unanswered image-class pairs stay empty unless you choose otherwise. What the model fills in, and how much of it is
    expected to be wrong, is printed first. Flags and comments come along: in labels.notes.csv beside a CSV,
    in each image's object of JSON lines. Only files written by an export are replaced.
    """
    from annotator.exchange.export import prepare, write
    from annotator.exchange.thresholds import Limits
    from annotator.store.database import Database

    if unknown != "model" and {present_from, absent_to, threshold} != {None}:
        raise AnnotatorError("Thresholds need --unknown model.")
    if threshold is not None:
        if present_from is not None or absent_to is not None:
            raise AnnotatorError("--threshold sets both --present-from and --absent-to. Give it alone, or those two.")
        present_from = absent_to = threshold
    limits = Limits(expected_error, present_from, absent_to)
    prepared = prepare(Database(project), dest, kind, unknown, limits, raw=raw, overwrite=overwrite)
    for sentence in prepared.data.fill.sentences() if prepared.data.fill else ():
        print(sentence, flush=True)
    table, written = prepared.data.table, write(prepared)
    size = f"{counted(len(table.images), 'image')} x {counted(len(table.classes), 'class', 'classes')}"
    print(f"{size}: {', '.join(str(path) for path in written)}")


@commands.command(epilog=examples("annotator methods", "annotator methods em_apl", "annotator methods --json"))
def methods(
    name: Annotated[str | None, typer.Argument(help="Show this method in detail.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """List the training methods: paper, year, what each assumes about unanswered labels, and its parameters."""
    from annotator.store import configuration

    if name is None:
        listed = [asdict_of(entry) for entry in catalogue.methods().values()]
        print(json.dumps(listed)) if as_json else printing.print_methods(listed, catalogue.default_method())
        return
    method = in_full(configuration.about(name))
    print(json.dumps(method)) if as_json else printing.print_method(method)


def asdict_of(entry: Entry) -> dict:
    """A method as a JSON value."""
    keys = ("name", "title", "paper", "year", "url", "assumes", "full_labels")
    return {key: getattr(entry, key) for key in keys} | {"parameters": entry.defaults}


def in_full(entry: Entry) -> dict:
    """The same with everything that its class declares; loads torch."""
    from models.methods import METHODS

    method = METHODS[entry.name]
    return asdict_of(entry) | {
        "about": inspect.getdoc(method) or "",
        "about_parameters": inspect.getdoc(method.__init__) or "",
        "reads": method.reads,
        "views": method.views,
        "epochs": method.epochs,
        "lr": method.lr,
        "threshold": method.threshold,
        "tunable": {key: list(values) for key, values in method.tunable.items()},
        "published": {key: asdict(values) for key, values in method.published.items()},
    }
