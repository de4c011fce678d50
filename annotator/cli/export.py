"""The commands that write the data set out, and compare what was written."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotator.cli.options import AsJson, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, print_result, show_progress
from annotator.errors import AnnotatorError
from annotator.humanize import format_count
from annotator.settings import get_login_name

if TYPE_CHECKING:
    from annotator.exchange.exports.thresholds import Limits

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=format_examples(
        "annotator export birds labels.csv",
        "annotator export birds labels.jsonl --format jsonl --unknown model",
        "annotator export birds labels.csv --unknown model --expected-error 0.02",
        "annotator export birds labels.csv --unknown model --present-from 0.9 --absent-to 0.05",
        "annotator export birds labels.csv --splits train=0.8,val=0.1,test=0.1 --seed 1",
    )
)
def export(
    project: ProjectArgument,
    dest: Annotated[Path, typer.Argument(help="The file to write; of some formats, a new folder.")],
    kind: Annotated[
        str, typer.Option("--format", metavar="NAME", help="The format; an unknown name lists them.")
    ] = "csv",
    unknown: Annotated[
        str, typer.Option(metavar="HOW", help="How to export unanswered pairs: keep, absent or model.")
    ] = "keep",
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
    with_set_aside: Annotated[bool, typer.Option("--with-set-aside", help="Images that were set aside, too.")] = False,
    only_complete: Annotated[
        bool, typer.Option("--only-complete", help="Only images without an unanswered pair.")
    ] = False,
    only_labeled: Annotated[bool, typer.Option("--only-labeled", help="Only images with a present class.")] = False,
    classes: Annotated[
        list[str] | None, typer.Option("--class", help="Only this class; may be repeated, in the order wanted.")
    ] = None,
    states: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only such answers (present, absent, unsure); others count as unanswered."),
    ] = None,
    annotators: Annotated[
        list[str] | None,
        typer.Option("--annotator", help="Only answers of this person; others and auto-accepted labels are left out."),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option("--source", help="Only answers from this source (click, grid, ...), no auto-accepted labels."),
    ] = None,
    differing: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="Pairs on which people differ and nobody has settled: label, leave-out, majority or estimate.",
        ),
    ] = "label",
    no_accepted: Annotated[bool, typer.Option("--no-accepted", help="Leave out auto-accepted labels.")] = False,
    accepted_precision: Annotated[
        float, typer.Option(help="Only auto-accepted labels with at least this guaranteed precision.")
    ] = 0.0,
    accepted_confidence: Annotated[
        float, typer.Option(help="Only auto-accepted labels with a guarantee of at least this confidence.")
    ] = 0.0,
    splits: Annotated[
        str, typer.Option(help="train=0.8,val=0.1,test=0.1, stratified; or existing, existing:ATTRIBUTE.")
    ] = "",
    split_by: Annotated[
        str, typer.Option(help="What stays together in one split: folder, similar (near-duplicates), or an attribute.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Of the splits: the same seed makes the same ones.")] = 0,
    images: Annotated[
        str, typer.Option(help="Of a folder: none, link, copy or resize [default: as the format needs].")
    ] = "",
    pixels: Annotated[int, typer.Option(help="For --images resize: the longer side at most.")] = 1024,
    long: Annotated[bool, typer.Option("--long", help="CSV: one row per answer instead of one per image.")] = False,
    columns: Annotated[
        str, typer.Option(help="CSV: the columns in their order, such as image=file,fox,heron=grey_heron.")
    ] = "",
    seconds: Annotated[bool, typer.Option("--seconds", help="Also how long each answer took.")] = False,
    pseudonyms: Annotated[bool, typer.Option("--pseudonyms", help="Write 'annotator 1' for a name.")] = False,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="CSV: keep = + - @ at the start of a name, which spreadsheets run as formulas."),
    ] = False,
    license_: Annotated[str, typer.Option("--license", help="For the data card.")] = "",
    cite: Annotated[str, typer.Option(help="For the data card: how to cite.")] = "",
    of_events: Annotated[
        bool,
        typer.Option(
            "--event-labels",
            help="Also give each image of an event (burst) the event's classes, where nobody has answered.",
        ),
    ] = False,
    deployments: Annotated[
        Path | None,
        typer.Option(help="Of camtrap-dp: a table with deploymentID (the folder), latitude and longitude."),
    ] = None,
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
) -> None:
    """Write the data set, the source of each label, and a data card, all of one moment.

    Unanswered image-class pairs stay empty unless you choose otherwise. What the model fills in, and how much of it is
    expected to be wrong, is printed first; so is what the format cannot hold. Where a format has no room for the source
    of each label, flags and comments, they stand in files beside it. Only what an export wrote is replaced.
    """
    from annotator.exchange.exports.choices import Choices, parse_columns
    from annotator.exchange.exports.export_writer import prepare_export, write_export
    from annotator.exchange.formats.export_view import TableColumns
    from annotator.store.database.database import Database

    if push_to and kind != "huggingface":
        raise AnnotatorError("--push uploads what --format huggingface writes. Add that.")
    choices = Choices(
        unknown=unknown,
        limits=_build_limits(unknown, expected_error, (present_from, absent_to), threshold),
        only_complete=only_complete,
        set_aside=with_set_aside,
        only_labeled=only_labeled,
        classes=tuple(classes or ()),
        states=tuple(states or ()),
        annotators=tuple(annotators or ()),
        sources=tuple(sources or ()),
        differing=differing,
        auto_accepted=not no_accepted,
        accepted_precision=accepted_precision,
        accepted_confidence=accepted_confidence,
        splits=splits,
        split_by=split_by,
        seed=seed,
        images=images,
        pixels=pixels,
        raw=raw,
        columns=TableColumns(long, parse_columns(columns), seconds),
        pseudonyms=pseudonyms,
        license=license_,
        cite=cite,
        event_labels=of_events,
        deployments=str(deployments or ""),
    )
    options = {"overwrite": overwrite, "lossy": lossy, "tag": tag, "by": get_login_name() if tag else ""}
    try:
        with (
            show_progress("Exporting") as show,
            prepare_export(Database(project), dest, kind, choices, **options, progress=show) as prepared,
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


def _build_limits(unknown: str, error: float, each: tuple[float | None, float | None], both: float | None) -> "Limits":
    """Return the limits from which --unknown model fills cells in. Raises AnnotatorError where options contradict.

    Args:
        unknown: The value of --unknown.
        error: The share of mistakes that is allowed.
        each: The values of --present-from and --absent-to.
        both: The value of --threshold.
    """
    from annotator.exchange.exports.thresholds import Limits

    if unknown != "model" and {*each, both} != {None}:
        raise AnnotatorError("Thresholds need --unknown model.")
    if both is not None and each != (None, None):
        raise AnnotatorError("--threshold sets both --present-from and --absent-to. Give it alone, or those two.")
    return Limits(error, *(each if both is None else (both, both)))


@commands.command(epilog=format_examples("annotator tags birds", "annotator tags birds --json"))
def tags(project: ProjectArgument, as_json: AsJson = False) -> None:
    """List the exports that got a name (annotator export --tag), the oldest first."""
    from annotator.store.database.database import Database
    from annotator.store.labels.tagged_exports import load_tags

    tagged = load_tags(Database(project))
    names = ("name", "annotator", "tagged_at", "last_decision", "format", "target", "choices")

    def text() -> None:
        for tag in tagged:
            made = (
                f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(tag.tagged_at))} by "
                f"{escape_unprintable(tag.annotator)}"
            )
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
    """Show what changed between two tagged exports: images, classes, and each class's pairs by old and new state."""
    from annotator.exchange.exports.choices import Choices
    from annotator.exchange.exports.diff import compare_exports
    from annotator.exchange.exports.tagged_cells import open_current_cells, open_tagged_cells
    from annotator.exchange.files.csv_cells import CsvWriter
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
            try:
                rows = CsvWriter(stack.enter_context(csv.open("x", newline="", encoding="utf-8")))
            except OSError as error:
                raise AnnotatorError(f"{csv} cannot be written: {error.strerror}. Name a new file.") from error
            rows.write_row(["image", "class", "before", "after"])
            write = lambda *change: rows.write_row(change)  # noqa: E731
        changes = compare_exports(db, before, after, write)

    def text() -> None:
        for sentence in changes.sentences():
            print(escape_unprintable(sentence))

    print_result(changes.as_json(), as_json, text)
