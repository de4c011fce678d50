"""The commands that import data, list imports and undo them."""

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotator.cli.options import (
    AbsentWords,
    AcceptNames,
    AnnotatorOption,
    AsJson,
    ClassColumns,
    DefaultListGroup,
    EmptyLabel,
    EventColumn,
    FolderColumn,
    ImageColumn,
    KeptRows,
    LabelColumn,
    LabelsOption,
    Match,
    Numbers,
    PresentWords,
    ProjectArgument,
    ReadingFile,
    SaveReading,
    ScoreColumn,
    Separator,
    UnknownWords,
    UnsureWords,
    build_reading,
    format_examples,
    format_options,
    refuse_combined_options,
)
from annotator.cli.printing import escape_unprintable, make_step_callback, print_by_reason, print_table, show_progress
from annotator.errors import AnnotatorError
from annotator.humanize import format_count, format_local_minute
from annotator.settings import DATABASE_FILE, get_login_name

if TYPE_CHECKING:  # the formats would delay every command
    from annotator.exchange.imports.import_plan import ImportOptions, ImportOutcome, ImportPlan
    from annotator.exchange.reading.reading_options import ReadingOptions
    from annotator.store.database.database import Database
    from annotator.store.locations.addresses import Address

commands = typer.Typer(rich_markup_mode=None)
imports = typer.Typer(
    cls=DefaultListGroup,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List what was imported, and take an import back as a whole.",
    epilog=format_examples("annotator imports birds", "annotator imports undo birds 3"),
)
OPTIONS_OF_LABELS = (
    "labels image_column folder_column label_column class_columns separator present absent unsure unknown empty_label "
    "accept_names numbers score_column rows event_column match reading save_reading"
)
"""The parameters of `import` that say how labels are read."""
MAX_CLASSES_SHOWN = 12  # classes that are not named alike


class Conflicts(StrEnum):
    """Values of --conflicts: keep or replace project labels that differ from the imported ones."""

    KEEP = "keep"
    REPLACE = "replace"


@commands.command(
    "import",
    epilog=format_examples(
        "annotator import birds labels.csv",
        "annotator import birds instances.json --format coco --class-map classes.csv --yes",
        "annotator import new-project ~/data/imagefolder   (makes the project)",
        "annotator import birds photos.zip",
        "annotator import birds s3://bucket/birds   (again: what is new or has changed)",
        "annotator import birds s3://bucket/birds --in-place   (the images stay there)",
    ),
)
def import_(
    context: typer.Context,
    project: ProjectArgument,
    source: Annotated[str, typer.Argument(help="File, folder, archive or address to import.", show_default=False)],
    format_: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", help="Its format, as `annotator formats` lists them [default: recognised]."
        ),
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder with the images, where the source does not bring them.")
    ] = None,
    class_map: Annotated[
        Path | None, typer.Option(help="CSV of two columns: name in the source, class (empty: left out).")
    ] = None,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="The source names all that is present: its other classes are absent.")
    ] = False,
    labels: LabelsOption = None,
    image_column: ImageColumn = None,
    folder_column: FolderColumn = None,
    label_column: LabelColumn = None,
    class_columns: ClassColumns = None,
    separator: Separator = None,
    present: PresentWords = None,
    absent: AbsentWords = None,
    unsure: UnsureWords = None,
    unknown: UnknownWords = None,
    empty_label: EmptyLabel = None,
    accept_names: AcceptNames = None,
    numbers: Numbers = None,
    score_column: ScoreColumn = None,
    rows: KeptRows = None,
    event_column: EventColumn = None,
    match: Match = None,
    reading: ReadingFile = None,
    save_reading: SaveReading = None,
    scores_as: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Add the scores of the source as predictions of this name, as well."),
    ] = None,
    conflicts: Annotated[
        Conflicts, typer.Option(help="Keep or replace answers here that differ from the source's.")
    ] = Conflicts.KEEP,
    in_place: Annotated[
        bool,
        typer.Option("--in-place", help="Read the images of an address where they lie; labels are not imported."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    as_json: AsJson = False,
    by: AnnotatorOption = None,
) -> None:
    """Import images and labels from another tool or data set. A preview comes first, and all or nothing is stored."""
    from annotator.exchange.imports.import_messages import describe_unapplied_plan
    from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
    from annotator.exchange.imports.label_files import find_predictor
    from annotator.exchange.reading.reading_file import merge_interpretations, write_reading
    from annotator.store.database.database import Database
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.store.locations.addresses import parse_location

    set_private_umask()
    named = parse_location(source)
    refuse_combined_options(
        context,
        "in_place",
        f"format_ images class_map exhaustive {OPTIONS_OF_LABELS} scores_as conflicts dry_run",
        why="--in-place only adds images; import the labels after it",
    )
    if in_place:
        _register_in_place(project, named, as_json)
        return
    given = build_reading(locals())
    if scores_as and isinstance(named, Path) and find_predictor(named, format_):
        scored = ImportOptions(format_, class_map=class_map)
        _add_scores(Database(project), named, scores_as, scored, by or get_login_name(), dry_run)
        return
    choices = ImportOptions(format_, images, class_map, conflicts.value, exhaustive, reading=given)
    done: ImportOutcome | None = None
    plan: ImportPlan | None = None
    db = Database(project) if (project / DATABASE_FILE).exists() else None
    try:
        with ExitStack() as stack:
            with show_progress("Reading") as show:
                plan = stack.enter_context(
                    prepare_import(db or project, named, choices, by or get_login_name(), make_step_callback(show))
                )
            if plan.open_questions and not (yes or dry_run or as_json) and sys.stdin.isatty():
                choices = _ask_about_doubts(plan, choices)
                given = choices.reading
            if not as_json:
                _print_preview(plan, conflicts.value, given, dry_run)
            # Nobody is asked about an import that is refused.
            is_refused = bool(plan.preview.unclear or plan.open_questions or plan.has_no_answers)
            only_scores = bool(scores_as and plan.preview.scores and plan.has_no_answers and not plan.open_questions)
            if not dry_run and not only_scores and (is_refused or (plan.has_changes and (yes or _confirm_import()))):
                with show_progress("Reading images") as show:
                    done = plan.apply(make_step_callback(show))
            if save_reading:
                write_reading(save_reading, merge_interpretations(given, plan.interpretations))
        if scores_as and not dry_run:
            # While an import makes a project, its file has another name, which is closed before it gets its own.
            _add_scores(db or Database(project), named, scores_as, choices, by or get_login_name(), dry_run=False)
            if only_scores:
                return
        if as_json:
            print(json.dumps(_build_json(plan, done), ensure_ascii=False))
        elif done is None:
            print(escape_unprintable(describe_unapplied_plan(plan)))
        else:
            _print_done(project, done)
    except KeyboardInterrupt:
        raise _build_interrupted_error(project, plan) from None


def _add_scores(
    db: "Database", source: "Address | Path", name: str, choices: "ImportOptions", by: str, dry_run: bool
) -> None:
    from annotator.exchange.imports.class_map import read_class_map
    from annotator.exchange.predictions import prediction_import

    if not isinstance(source, Path):
        raise AnnotatorError(f"Predictions are read from one file, and {source} is an address. Download it first.")
    mapped = read_class_map(choices.class_map) if isinstance(choices.class_map, Path) else choices.class_map or {}
    wanted = prediction_import.PredictionOptions(choices.format, class_map=mapped)
    with prediction_import.prepare_predictions(db, source, name, wanted, by) as plan:
        count = plan.found.images if dry_run else plan.apply().images
    print(
        f"Predictions {escape_unprintable(name)}: "
        f"{format_count(count, 'image')}{' would have scores' if dry_run else ''}."
    )


def _register_in_place(project: Path, source: "Address | Path", as_json: bool) -> None:
    """Add the images at a URL or path without copying them, without a preview or questions."""
    from annotator.exchange.imports.import_messages import describe_registration
    from annotator.exchange.project_setup import set_up_project

    with show_progress("Listing") as show:
        done = set_up_project(project, images_folder=source, in_place=True, fetching=make_step_callback(show))
    if as_json:
        print(json.dumps({"registered": asdict(done.registered)}, ensure_ascii=False))
        return
    print(f"{project}: {describe_registration(done.registered)}.")
    print_by_reason(done.registered.bad, "skipped")
    print_by_reason(done.registered.missing, "missing")


def _build_interrupted_error(project: Path, plan: "ImportPlan | None") -> AnnotatorError:
    if plan is not None and plan.is_stored:
        return AnnotatorError(f"Interrupted after the import was stored. See: annotator imports {project}")
    return AnnotatorError(
        "Interrupted: nothing was imported, and the project is as it was. Give the same command again to import; "
        "images that were read already are not read again."
    )


def _ask_about_doubts(plan: "ImportPlan", choices: "ImportOptions") -> "ImportOptions":
    """Ask the user each open question about the source's meaning, and return `choices` with the answers added."""
    from dataclasses import replace

    from annotator.exchange.reading.interpretation_messages import format_value
    from annotator.exchange.reading.reading_file import check_reading, parse_option

    while plan.open_questions:
        one = plan.open_questions[0]
        print(escape_unprintable(f"{one.why}."))
        for number, value in enumerate((one.value, *one.others), start=1):
            print(escape_unprintable(f"  {number}  {format_value(one, value)}"))
        answer = typer.prompt("Number, or another value", type=str).strip()
        values = [one.value, *one.others]
        value = values[int(answer) - 1] if answer.isdecimal() and 0 < int(answer) <= len(values) else answer
        said = check_reading(replace(choices.reading, **{one.field: parse_option(one.field, value)}))
        choices = replace(choices, reading=said)
        with show_progress("Reading") as show:
            plan.change_options(choices, make_step_callback(show))
    return choices


def _confirm_import() -> bool:
    """Ask the user whether to import, and return the answer. Raises AnnotatorError without a terminal."""
    if not sys.stdin.isatty():
        raise AnnotatorError(
            "Nothing was imported: there is no terminal to ask on. Add --yes to import without asking."
        )
    try:
        return typer.confirm("Import?")
    except typer.Abort:  # Ctrl+C, or the end of the input
        print()
        return False


@imports.command("list", epilog=format_examples("annotator imports list birds", "annotator imports birds --json"))
def list_imports(project: ProjectArgument, as_json: AsJson = False) -> None:
    """List the imports, newest first."""
    from annotator.store.database.database import Database
    from annotator.store.imports.past_imports import load_imports

    known = load_imports(Database(project))
    if as_json:
        print(json.dumps([asdict(one) for one in known], ensure_ascii=False))
        return
    rows = [
        (
            f"{one.id}  {format_local_minute(one.imported_at)}  "
            f"{escape_unprintable(one.source)}"
            + (f" (taken back by {escape_unprintable(one.undone_by)})" if one.undone_at else ""),
            one.format,
            escape_unprintable(one.annotator),
            *(f"{one.counts.get(name, 0):,}" for name in ("images", "classes", "answers", "completed")),
        )
        for one in known
    ]
    if rows:
        print_table(("import", "format", "by", "images", "classes", "answers", "completed"), rows)
    else:
        print("Nothing was imported yet.")


@imports.command(epilog=format_examples("annotator imports undo birds 3", "annotator imports undo birds 3 --yes"))
def undo(
    project: ProjectArgument,
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="Of the import.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    by: AnnotatorOption = None,
) -> None:
    """Undo an import in one step. Importing the same source again restores it."""
    from annotator.exchange.imports.import_messages import describe_undone_import
    from annotator.store.database.database import Database
    from annotator.store.imports import past_imports

    db = Database(project)
    if not yes and not typer.confirm(f"Take import {number} back?"):
        print("Nothing was changed.")
        return
    for sentence in describe_undone_import(past_imports.undo(db, number, by or get_login_name())):
        print(escape_unprintable(sentence))


def _print_preview(plan: "ImportPlan", conflicts: str, reading: "ReadingOptions", is_last: bool) -> None:
    from annotator.exchange.imports import import_messages
    from annotator.exchange.reading.field_roles import shorten_roles
    from annotator.exchange.reading.interpretation_messages import describe_interpretation, describe_question

    preview = plan.preview
    print(escape_unprintable(import_messages.describe_format(plan)))
    for sentence in plan.sentences:
        print(f"  {escape_unprintable(sentence)}")
    for one in plan.interpretations:
        if one.is_sure:
            print(f"  {escape_unprintable(describe_interpretation(one))}")
    if plan.roles:
        rows = [(one.field, one.role, ", ".join(one.examples), one.why) for one in shorten_roles(plan.roles)]
        print_table(("field", "role", "examples", "because"), rows, left=4)
    if samples := plan.samples:
        print("Its first rows:")
        for sample in samples:
            print(f"  {escape_unprintable(sample)}")
    lines = import_messages.list_preview_lines(preview, conflicts)
    if lines:
        print_table(("", "count"), [(line.title, f"{line.count:,}") for line in lines])
    for line in lines:
        if line.examples:
            print(f"{line.title}:")
            for example in line.examples:
                print(f"  {escape_unprintable(example)}")
            if line.remaining:
                print(f"  and {line.remaining:,} more")
    print(import_messages.describe_classes(preview))
    others = [class_ for class_ in preview.classes if class_.how != "known"]
    for class_ in others[:MAX_CLASSES_SHOWN]:
        print(f"  {escape_unprintable(import_messages.describe_class(class_))}")
    if len(others) > MAX_CLASSES_SHOWN:
        print(f"  and {len(others) - MAX_CLASSES_SHOWN:,} more")
    for one in plan.open_questions if is_last else ():
        print(f"  Question: {escape_unprintable(describe_question(one))}")
    if plan.interpretations:
        print(f"The same reading again: {escape_unprintable(format_options(plan.interpretations, reading))}")
    for warning in [*preview.unclear.values(), *preview.warnings][:MAX_CLASSES_SHOWN]:
        print(f"  {escape_unprintable(warning)}")


def _print_done(project: Path, done: "ImportOutcome") -> None:
    from annotator.exchange.imports.import_messages import describe_result

    for sentence in describe_result(done):
        print(sentence)
    if done.registered:
        print_by_reason(done.registered.bad, "skipped")
        print_by_reason(done.registered.missing, "missing")
    print(f"Take it back with: annotator imports undo {project} {done.imported.id}")


def _build_json(plan: "ImportPlan", done: "ImportOutcome | None") -> dict:
    imported = asdict(done.imported) if done else None
    return {
        "format": plan.format.name,
        "why": plan.why,
        "said": list(plan.sentences),
        "kept": list(map(str, plan.kept_folders)),
        "decided": [one._asdict() for one in plan.interpretations],
        "roles": [one._asdict() for one in plan.roles],
        "samples": list(plan.samples),
        "preview": asdict(plan.preview),
        "imported": imported,
        "registered": asdict(done.registered) if done and done.registered else None,
        "unread_answers": done.unread if done else 0,
    }
