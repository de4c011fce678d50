"""The commands that export the data set, list export versions and compare them."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from annotator.cli.options import AsJson, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, print_result, show_progress
from annotator.errors import AnnotatorError
from annotator.exchange.exports.export_options import OPTIONS, OptionValues
from annotator.exchange.exports.option_types import ExportOption
from annotator.humanize import format_count, format_local_minute
from annotator.settings import get_login_name

commands = typer.Typer(rich_markup_mode=None)


def add_export_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the `**values` parameter of a command by one parameter per row of OPTIONS, after --format."""
    own = signature(command)
    *names, _ = own.parameters.values()
    place = list(own.parameters).index("kind") + 1
    parameters = [*names[:place], *map(_build_parameter, OPTIONS), *names[place:]]
    setattr(command, "__signature__", own.replace(parameters=parameters))  # noqa: B010 - functions declare no such field
    return command


def _build_parameter(option: ExportOption) -> Parameter:
    declared = typer.Option(option.flag, metavar=option.metavar or None, help=option.help)
    default = option.format_argument(None if option.abbreviates else OptionValues().get_value(option.field))
    annotation = Annotated[option.type, declared]
    return Parameter(option.parameter, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


@commands.command(
    epilog=format_examples(
        "annotator export birds labels.csv",
        "annotator export birds labels.jsonl --format jsonl --unknown model",
        "annotator export birds labels.csv --unknown model --expected-error 0.02",
        "annotator export birds labels.csv --unknown model --present-from 0.9 --absent-to 0.05",
        "annotator export birds labels.csv --splits train=0.8,val=0.1,test=0.1 --seed 1",
    )
)
@add_export_options
def export(
    project: ProjectArgument,
    dest: Annotated[Path, typer.Argument(help="The file to write; of some formats, a new folder.")],
    kind: Annotated[
        str, typer.Option("--format", metavar="NAME", help="The format; an unknown name lists them.")
    ] = "csv",
    tag: Annotated[str, typer.Option(help="Give this export a name, to compare it with others: annotator diff.")] = "",
    push_to: Annotated[
        str,
        typer.Option("--push", metavar="NAME", help="Of huggingface: upload it as this data set, such as you/birds."),
    ] = "",
    public: Annotated[bool, typer.Option("--public", help="With --push: everybody can see a new data set.")] = False,
    lossy: Annotated[bool, typer.Option("--lossy", help="Also write what the format cannot hold in full.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Also replace files that were not written by an export.")
    ] = False,
    croissant_facts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For --croissant: JSON with creator, uses, biases, ...; the project keeps it for later exports.",
        ),
    ] = None,
    **values: Any,
) -> None:
    """Export the data set with the source of each label and a data card, all from one moment.

    Unanswered labels stay empty unless you choose otherwise. The command first prints what the model fills in, how much
    of it is expected to be wrong, and what the format cannot hold. Formats without room for label sources, flags and
    comments get them in extra files. Only files that an export wrote are replaced.
    """
    from annotator.exchange.croissant.croissant_facts import read_facts, store_facts
    from annotator.exchange.exports.choices import build_choices
    from annotator.exchange.exports.export_writer import ExportJob, ExportTag, prepare_export, write_export
    from annotator.store.database.database import Database

    if push_to and kind != "huggingface":
        raise AnnotatorError("--push uploads what --format huggingface writes. Add that.")
    choices = build_choices(_read_option_values(values))
    if croissant_facts and not choices.croissant:
        raise AnnotatorError("--croissant-facts is for the description that --croissant writes. Add that.")
    db = Database(project)
    if croissant_facts:
        store_facts(db, read_facts(croissant_facts))
    named = ExportTag(tag, get_login_name()) if tag else None
    try:
        with (
            show_progress("Exporting") as show,
            prepare_export(
                db, dest, kind, choices, overwrite=overwrite, lossy=lossy, tag=named, job=ExportJob(show)
            ) as prepared,
        ):
            said = list(prepared.sentences)
            for sentence in said:
                print(sentence, flush=True)
            view, written = prepared.data.view, write_export(prepared)
    except KeyboardInterrupt:
        raise AnnotatorError(
            f"Interrupted: {dest} is as it was before, unless all of it had just been written. "
            "Give the same command again."
        ) from None
    for sentence in prepared.sentences[len(said) :]:
        print(sentence)
    size = f"{format_count(view.images, 'image')} x {format_count(len(view.classes), 'class', 'classes')}"
    print(f"{size}: {', '.join(str(path) for path in written)}")
    if push_to:
        from annotator.exchange.exports.hub_upload import create_hub_client, push_to_hub

        print(f"Uploaded: {push_to_hub(dest, push_to, create_hub_client(), public)}")


def _read_option_values(given: Mapping[str, Any]) -> dict[str, Any]:
    limits = {name: given[name] for name in ("present_from", "absent_to", "threshold") if given[name] is not None}
    if given["unknown"] != "model" and limits:
        raise AnnotatorError("Thresholds need --unknown model.")
    if "threshold" in limits and len(limits) > 1:
        raise AnnotatorError("--threshold sets both --present-from and --absent-to. Give it alone, or those two.")
    values: dict[str, Any] = {}
    for option in OPTIONS:
        value = given[option.parameter]
        if option.abbreviates:
            values |= {} if value is None else dict.fromkeys(option.abbreviates, value)
        else:
            values[option.field] = option.parse_argument(value)
    return values


@commands.command(epilog=format_examples("annotator tags birds", "annotator tags birds --json"))
def tags(project: ProjectArgument, as_json: AsJson = False) -> None:
    """List the tagged exports (annotator export --tag), oldest first."""
    from annotator.store.database.database import Database
    from annotator.store.labels.tagged_exports import load_tags

    tagged = load_tags(Database(project))
    names = ("name", "annotator", "tagged_at", "last_decision", "format", "target", "choices")

    def text() -> None:
        for tag in tagged:
            made = f"{format_local_minute(tag.tagged_at)} by {escape_unprintable(tag.annotator)}"
            size = (
                f"{format_count(tag.card['images'], 'image')} x "
                f"{format_count(len(tag.card['classes']), 'class', 'classes')}"
            )
            print(f"{escape_unprintable(tag.name)}: {made}, {tag.format}, {size}: {escape_unprintable(tag.target)}")
        if not tagged:
            print("No export is tagged yet: annotator export --tag NAME")

    print_result([{name: getattr(tag, name) for name in names} for tag in tagged], as_json, text)


@commands.command(
    epilog=format_examples(
        "annotator diff birds v1 v2",
        "annotator diff birds v1            (the export tagged v1 against the labels of now)",
        "annotator diff birds v1 v2 --csv changes.csv",
    )
)
def diff(
    project: ProjectArgument,
    tag: Annotated[str, typer.Argument(help="The tag of an export.", show_default=False)],
    other: Annotated[
        str | None, typer.Argument(help="A later one; without it, the labels of now.", show_default=False)
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write all changed pairs to this new file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what changed between two tagged exports: images, classes, and labels per class by old and new state."""
    from annotator.exchange.exports.choices import Choices
    from annotator.exchange.exports.diff import compare_exports
    from annotator.exchange.exports.tagged_cells import open_current_cells, open_tagged_cells
    from annotator.exchange.files.csv_cells import CsvWriter
    from annotator.exchange.files.text_output import open_text_output
    from annotator.store.database.database import Database
    from annotator.store.labels.tagged_exports import find_tag

    db = Database(project)
    first = find_tag(db, tag)
    with ExitStack() as stack:
        before = stack.enter_context(open_tagged_cells(db, tag))
        after = stack.enter_context(
            open_tagged_cells(db, other) if other else open_current_cells(db, Choices.from_json(first.choices))
        )
        write = None
        if csv is not None:
            rows = CsvWriter(stack.enter_context(open_text_output(csv)))
            rows.write_row(["image", "class", "before", "after"])
            write = lambda *change: rows.write_row(change)  # noqa: E731
        changes = compare_exports(db, before, after, write)

    def text() -> None:
        for sentence in changes.sentences():
            print(escape_unprintable(sentence))

    print_result(changes.as_json(), as_json, text)
