"""The commands that bring data in, list what was brought in, and take it back."""

import json
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.options import AsJson, ListsByDefault, Project, examples
from annotator.cli.printing import print_by_reason, print_table, printable, progress, show_steps
from annotator.errors import AnnotatorError
from annotator.exchange.imports.importing import Choices, Done, Plan
from annotator.settings import login
from annotator.shares import counted
from annotator.store.staged_cells import Preview, StagedClass, Tally

commands = typer.Typer(rich_markup_mode=None)
imports = typer.Typer(
    cls=ListsByDefault,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List what was imported, and take an import back as a whole.",
    epilog=examples("annotator imports birds", "annotator imports undo birds 3"),
)
By = Annotated[str | None, typer.Option("--annotator", help="Who does it [default: your login name].")]
SHOWN = 12  # classes that are not named alike


class Conflicts(StrEnum):
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
    ),
)
def import_(
    project: Project,
    source: Annotated[str, typer.Argument(help="File, folder, archive or address to import.", show_default=False)],
    format_: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="Its format [default: recognised].")
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
    conflicts: Annotated[
        Conflicts, typer.Option(help="Keep or replace answers here that differ from the source's.")
    ] = Conflicts.KEEP,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    as_json: AsJson = False,
    by: By = None,
) -> None:
    """Import images and labels from another tool or data set. What would change is shown first, and stored as one."""
    from annotator.exchange.imports.importing import prepare
    from annotator.store.private import files_for_owner_only

    files_for_owner_only()
    choices = Choices(format_, images, class_map, conflicts.value, exhaustive)
    done: Done | None = None
    with ExitStack() as stack:
        with progress("Reading") as show:
            plan = stack.enter_context(prepare(project, source, choices, by or login(), show_steps(show)))
        if not as_json:
            _print_preview(plan, conflicts.value)
        if not dry_run and (yes or (plan.changes and _is_confirmed())):
            with progress("Reading images") as show:
                done = plan.apply(show_steps(show))
    if as_json:
        print(json.dumps(_as_json(plan, done), ensure_ascii=False))
    elif done is None:
        print("Nothing was changed.")
    else:
        _print_done(project, done)


def _is_confirmed() -> bool:
    """Whether the person says yes. Raises AnnotatorError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise AnnotatorError(
            "Nothing was imported: there is no terminal to ask on. Add --yes to import without asking."
        )
    return typer.confirm("Import?")


@imports.command("list", epilog=examples("annotator imports list birds", "annotator imports birds --json"))
def listed(project: Project, as_json: AsJson = False) -> None:
    """Show what was imported, the newest first."""
    from annotator.store.database import Database
    from annotator.store.imports import imports as all_imports

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
    from annotator.store import imports as store
    from annotator.store.database import Database

    db = Database(project)
    if not yes and not typer.confirm(f"Take import {number} back?"):
        print("Nothing was changed.")
        return
    undone = store.undo(db, number, by or login())
    print(f"Import {number} taken back: {counted(undone.decisions, 'decision')}, {counted(undone.images, 'image')}.")
    if undone.images_kept:
        print(f"  {counted(undone.images_kept, 'image')} of it stay: people decided something about them.")
    if undone.archived:
        print(f"  archived: {', '.join(map(printable, undone.archived))}")
    if undone.kept:
        print(f"  classes that others use stay: {', '.join(map(printable, undone.kept))}")


def _print_preview(plan: Plan, conflicts: str) -> None:
    preview = plan.preview
    print(f"Format: {plan.format.name} ({printable(plan.why)}).")
    for sentence in plan.said:
        print(f"  {printable(sentence)}")
    people, earlier = preview.conflicts_with_people, preview.conflicts_with_imports
    stay = "they stay as they are" if conflicts == "keep" else "they are replaced"
    rows: list[tuple[str, int, Tally]] = [
        ("images of this project", preview.images_known, Tally()),
        ("new images", preview.images_new.count, Tally()),
        ("images that nobody has: left out", preview.images_unknown.count, preview.images_unknown),
        ("images whose file was skipped: left out", preview.images_skipped.count, preview.images_skipped),
        ("new answers", preview.answers_new, Tally()),
        ("answers already so", preview.answers_known, Tally()),
        (f"answers that people gave otherwise: {stay}", people.count, people),
        (f"answers that an import gave otherwise: {stay}", earlier.count, earlier),
        ("images of which all is said", preview.completed, Tally()),
        ("answers left out with their image or class", preview.left_out, Tally()),
        ("cells filled in by a model or assumed: left out", preview.filled, Tally()),
        ("facts of images", preview.attributes_new, Tally()),
        (f"facts that differ: {stay}", preview.attributes_other.count, preview.attributes_other),
        ("flags and comments", preview.remarks_new, Tally()),
        ("scores (not imported: annotator predictions)", preview.scores, Tally()),
    ]
    print_table(("", "count"), [(title, f"{count:,}") for title, count, _ in rows if count])
    for title, count, tally in rows:
        if tally.examples:
            more = f" and {count - len(tally.examples):,} more" if count > len(tally.examples) else ""
            print(f"{title}:")
            for example in tally.examples:
                print(f"  {printable(example)}")
            if more:
                print(f" {more}")
    _print_classes(preview)


def _print_classes(preview: Preview) -> None:
    known = sum(class_.how == "known" for class_ in preview.classes)
    others = [class_ for class_ in preview.classes if class_.how != "known"]
    print(f"{counted(len(preview.classes), 'class', 'classes')}: {known:,} known, {len(others):,} others.")
    for class_ in others[:SHOWN]:
        print(f"  {_class_in_words(class_)}")
    if len(others) > SHOWN:
        print(f"  and {len(others) - SHOWN:,} more")
    for warning in preview.warnings[:SHOWN]:
        print(f"  {printable(warning)}")


def _class_in_words(class_: StagedClass) -> str:
    name, target, answers = printable(class_.name), printable(class_.target), counted(class_.answers, "answer")
    if class_.how in ("new", "restored", "left out"):
        return f"{class_.how}: {name} ({answers})"
    why = {"synonym": "a synonym", "alike": "but for case and blanks", "mapped": "by your map"}[class_.how]
    return f"{name} -> {target} ({why}, {answers})"


def _print_done(project: Path, done: Done) -> None:
    from annotator.exchange.setup import registered_in_words

    if done.registered:
        print(f"{project}: {registered_in_words(done.registered)}.")
        print_by_reason(done.registered.bad, "skipped")
        print_by_reason(done.registered.missing, "missing")
    imported = done.imported
    replaced = f" ({imported.replaced:,} replaced others)" if imported.replaced else ""
    print(
        f"Import {imported.id}: {counted(imported.answers, 'answer')}{replaced}, "
        f"{counted(imported.completed, 'image')} completed, {counted(len(imported.classes), 'class', 'classes')} added."
    )
    print(f"Take it back with: annotator imports undo {project} {imported.id}")


def _as_json(plan: Plan, done: Done | None) -> dict:
    imported = asdict(done.imported) if done else None
    return {
        "format": plan.format.name,
        "why": plan.why,
        "said": list(plan.said),
        "preview": asdict(plan.preview),
        "imported": imported,
        "registered": asdict(done.registered) if done and done.registered else None,
    }
