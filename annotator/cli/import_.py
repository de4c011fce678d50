"""The commands that bring data in, list what was brought in, and take it back."""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotator.cli.options import (
    AbsentWords,
    AsJson,
    By,
    ClassColumns,
    EmptyLabel,
    EventColumn,
    FolderColumn,
    ImageColumn,
    LabelColumn,
    LabelsOption,
    ListsByDefault,
    Match,
    Numbers,
    PresentWords,
    Project,
    ReadingFile,
    SaveReading,
    ScoreColumn,
    Separator,
    UnknownWords,
    UnsureWords,
    examples,
    options_of,
    reading_of,
)
from annotator.cli.printing import print_by_reason, print_table, printable, progress, show_steps
from annotator.errors import AnnotatorError
from annotator.settings import DATABASE, login
from annotator.shares import counted

if TYPE_CHECKING:  # the formats would delay every command
    from annotator.exchange.imports.importing import Choices, Done, Plan
    from annotator.exchange.reading.reading import Reading
    from annotator.store.database.database import Database
    from annotator.store.locations.addresses import Address

commands = typer.Typer(rich_markup_mode=None)
imports = typer.Typer(
    cls=ListsByDefault,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List what was imported, and take an import back as a whole.",
    epilog=examples("annotator imports birds", "annotator imports undo birds 3"),
)
SHOWN = 12  # classes that are not named alike


class Conflicts(StrEnum):
    """Values of --conflicts: answers that differ from the source stay, or are replaced."""

    KEEP = "keep"
    REPLACE = "replace"


@commands.command(
    "import",
    epilog=examples(
        "annotator import birds labels.csv",
        "annotator import birds instances.json --format coco --class-map classes.csv --yes",
        "annotator import new-project ~/data/imagefolder   (makes the project)",
        "annotator import birds photos.zip",
        "annotator import birds s3://bucket/birds   (again: what is new or has changed)",
        "annotator import birds s3://bucket/birds --in-place   (the images stay there)",
    ),
)
def import_(
    project: Project,
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
    numbers: Numbers = None,
    score_column: ScoreColumn = None,
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
    by: By = None,
) -> None:
    """Import images and labels from another tool or data set. What would change is shown first, and stored as one."""
    from annotator.exchange.imports.importing import Choices, prepare
    from annotator.exchange.imports.in_words import unchanged_in_words
    from annotator.exchange.imports.label_files import predicted_by
    from annotator.exchange.reading.saved import save, settled
    from annotator.store.database.database import Database
    from annotator.store.disk.private import files_for_owner_only
    from annotator.store.locations.addresses import parse_location

    files_for_owner_only()
    named = parse_location(source)
    if in_place:
        given = {"--format": format_, "--images": images, "--class-map": class_map, "--exhaustive": exhaustive}
        given |= {"--conflicts": conflicts is Conflicts.REPLACE, "--dry-run": dry_run}
        _register_in_place(project, named, [option for option, value in given.items() if value], as_json)
        return
    given = reading_of(locals())
    if scores_as and isinstance(named, Path) and predicted_by(named, format_):
        scored = Choices(format_, class_map=class_map)
        _add_scores(Database(project), named, scores_as, scored, by or login(), dry_run)
        return
    choices = Choices(format_, images, class_map, conflicts.value, exhaustive, reading=given)
    done: Done | None = None
    plan: Plan | None = None
    db = Database(project) if (project / DATABASE).exists() else None
    try:
        with ExitStack() as stack:
            with progress("Reading") as show:
                plan = stack.enter_context(prepare(db or project, named, choices, by or login(), show_steps(show)))
            if plan.doubts and not (yes or dry_run or as_json) and sys.stdin.isatty():
                choices = _asked(plan, choices)
                given = choices.reading
            if not as_json:
                _print_preview(plan, conflicts.value, given, dry_run)
            # Nobody is asked about an import that is refused.
            is_refused = bool(plan.preview.unclear or plan.doubts or plan.has_no_answers)
            only_scores = bool(scores_as and plan.preview.scores and plan.has_no_answers and not plan.doubts)
            if not dry_run and not only_scores and (is_refused or (plan.changes and (yes or _is_confirmed()))):
                with progress("Reading images") as show:
                    done = plan.apply(show_steps(show))
            if save_reading:
                save(save_reading, settled(given, plan.decided))
        if scores_as and not dry_run:
            # While an import makes a project, its file has another name, which is closed before it gets its own.
            _add_scores(db or Database(project), named, scores_as, choices, by or login(), dry_run=False)
            if only_scores:
                return
        if as_json:
            print(json.dumps(_as_json(plan, done), ensure_ascii=False))
        elif done is None:
            print(printable(unchanged_in_words(plan)))
        else:
            _print_done(project, done)
    except KeyboardInterrupt:
        raise _interrupted(project, plan) from None


def _add_scores(
    db: "Database", source: "Address | Path", name: str, choices: "Choices", by: str, dry_run: bool
) -> None:
    """Add the scores of a source as predictions, once its labels are stored."""
    from annotator.exchange.imports.class_map import read_class_map
    from annotator.exchange.predictions import outside_predictions as predictions

    if not isinstance(source, Path):
        raise AnnotatorError(f"Predictions are read from one file, and {source} is an address. Download it first.")
    mapped = read_class_map(choices.class_map) if isinstance(choices.class_map, Path) else choices.class_map or {}
    wanted = predictions.Choices(choices.format, class_map=mapped)
    with predictions.prepare(db, source, name, wanted, by) as plan:
        count = plan.found.images if dry_run else plan.apply().images
    print(f"Predictions {printable(name)}: {counted(count, 'image')}{' would have scores' if dry_run else ''}.")


def _register_in_place(project: Path, source: "Address | Path", unused: Sequence[str], as_json: bool) -> None:
    """Add the images at an address without copying them; there is no preview and no question."""
    from annotator.exchange.imports.in_words import registered_in_words
    from annotator.exchange.setup import set_up

    if unused:
        raise AnnotatorError(
            f"--in-place only adds images, so {' and '.join(unused)} cannot be given with it. Import the labels after "
            f"it: annotator import {project} labels.csv"
        )
    with progress("Listing") as show:
        done = set_up(project, images_folder=source, in_place=True, fetching=show_steps(show))
    if as_json:
        print(json.dumps({"registered": asdict(done.registered)}, ensure_ascii=False))
        return
    print(f"{project}: {registered_in_words(done.registered)}.")
    print_by_reason(done.registered.bad, "skipped")
    print_by_reason(done.registered.missing, "missing")


def _interrupted(project: Path, plan: "Plan | None") -> AnnotatorError:
    if plan is not None and plan.is_stored:
        return AnnotatorError(f"Interrupted after the import was stored. See: annotator imports {project}")
    return AnnotatorError(
        "Interrupted: nothing was imported, and the project is as it was. Give the same command again to import; "
        "images that were read already are not read again."
    )


def _asked(plan: "Plan", choices: "Choices") -> "Choices":
    """Ask the person what the source means, question after question, and return the choices that settle it."""
    from dataclasses import replace

    from annotator.exchange.reading.in_words import word_of
    from annotator.exchange.reading.saved import checked, parsed

    while plan.doubts:
        one = plan.doubts[0]
        print(printable(f"{one.why}."))
        for number, value in enumerate((one.value, *one.others), start=1):
            print(printable(f"  {number}  {word_of(one, value)}"))
        answer = typer.prompt("Number, or another value", type=str).strip()
        values = [one.value, *one.others]
        value = values[int(answer) - 1] if answer.isdecimal() and 0 < int(answer) <= len(values) else answer
        said = checked(replace(choices.reading, **{one.field: parsed(one.field, value)}))
        choices = replace(choices, reading=said)
        with progress("Reading") as show:
            plan.choose(choices, show_steps(show))
    return choices


def _is_confirmed() -> bool:
    """Ask the person whether to import, and return the answer. Raises AnnotatorError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise AnnotatorError(
            "Nothing was imported: there is no terminal to ask on. Add --yes to import without asking."
        )
    try:
        return typer.confirm("Import?")
    except typer.Abort:  # Ctrl+C, or the end of the input
        print()
        return False


@imports.command("list", epilog=examples("annotator imports list birds", "annotator imports birds --json"))
def listed(project: Project, as_json: AsJson = False) -> None:
    """Show what was imported, the newest first."""
    from annotator.store.database.database import Database
    from annotator.store.imports.imports import imports as all_imports

    known = all_imports(Database(project))
    if as_json:
        print(json.dumps([asdict(one) for one in known], ensure_ascii=False))
        return
    rows = [
        (
            f"{one.id}  {time.strftime('%Y-%m-%d %H:%M', time.localtime(one.imported_at))}  {printable(one.source)}"
            + (f" (taken back by {printable(one.undone_by)})" if one.undone_at else ""),
            one.format,
            printable(one.annotator),
            *(f"{one.counts.get(name, 0):,}" for name in ("images", "classes", "answers", "completed")),
        )
        for one in known
    ]
    if rows:
        print_table(("import", "format", "by", "images", "classes", "answers", "completed"), rows)
    else:
        print("Nothing was imported yet.")


@imports.command(epilog=examples("annotator imports undo birds 3", "annotator imports undo birds 3 --yes"))
def undo(
    project: Project,
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="Of the import.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    by: By = None,
) -> None:
    """Take an import back as a whole. Importing the same again brings it back."""
    from annotator.exchange.imports.in_words import undone_in_words
    from annotator.store.database.database import Database
    from annotator.store.imports import imports as store

    db = Database(project)
    if not yes and not typer.confirm(f"Take import {number} back?"):
        print("Nothing was changed.")
        return
    for sentence in undone_in_words(store.undo(db, number, by or login())):
        print(printable(sentence))


def _print_preview(plan: "Plan", conflicts: str, reading: "Reading", is_last: bool) -> None:
    from annotator.exchange.imports import in_words
    from annotator.exchange.reading.in_words import decision_in_words, doubt_in_words

    preview = plan.preview
    print(printable(in_words.format_in_words(plan)))
    for sentence in plan.said:
        print(f"  {printable(sentence)}")
    for one in plan.decided:
        if one.is_sure:
            print(f"  {printable(decision_in_words(one))}")
    if samples := plan.samples:
        print("Its first rows:")
        for sample in samples:
            print(f"  {printable(sample)}")
    lines = in_words.lines(preview, conflicts)
    if lines:
        print_table(("", "count"), [(line.title, f"{line.count:,}") for line in lines])
    for line in lines:
        if line.examples:
            print(f"{line.title}:")
            for example in line.examples:
                print(f"  {printable(example)}")
            if line.remaining:
                print(f"  and {line.remaining:,} more")
    print(in_words.classes_in_words(preview))
    others = [class_ for class_ in preview.classes if class_.how != "known"]
    for class_ in others[:SHOWN]:
        print(f"  {printable(in_words.class_in_words(class_))}")
    if len(others) > SHOWN:
        print(f"  and {len(others) - SHOWN:,} more")
    for one in plan.doubts if is_last else ():
        print(f"  Question: {printable(doubt_in_words(one))}")
    if plan.decided:
        print(f"The same reading again: {printable(options_of(plan.decided, reading))}")
    for warning in [*preview.unclear.values(), *preview.warnings][:SHOWN]:
        print(f"  {printable(warning)}")


def _print_done(project: Path, done: "Done") -> None:
    from annotator.exchange.imports.in_words import done_in_words

    for sentence in done_in_words(done):
        print(sentence)
    if done.registered:
        print_by_reason(done.registered.bad, "skipped")
        print_by_reason(done.registered.missing, "missing")
    print(f"Take it back with: annotator imports undo {project} {done.imported.id}")


def _as_json(plan: "Plan", done: "Done | None") -> dict:
    imported = asdict(done.imported) if done else None
    return {
        "format": plan.format.name,
        "why": plan.why,
        "said": list(plan.said),
        "kept": list(map(str, plan.kept)),
        "decided": [one._asdict() for one in plan.decided],
        "samples": list(plan.samples),
        "preview": asdict(plan.preview),
        "imported": imported,
        "registered": asdict(done.registered) if done and done.registered else None,
    }
