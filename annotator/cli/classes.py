"""The commands that list and change classes. Every change is recorded with its author and can be undone."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from annotator.cli.options import (
    AnnotatorOption,
    AsJson,
    CommasOption,
    DefaultListGroup,
    ProjectArgument,
    format_examples,
)
from annotator.cli.printing import escape_unprintable, print_result, print_table
from annotator.errors import AnnotatorError, combine_problems, did_you_mean
from annotator.humanize import format_count, format_local_minute
from annotator.records import Class
from annotator.settings import get_login_name

if TYPE_CHECKING:
    from annotator.store.classes.class_history import ClassChange

ClassName = Annotated[str, typer.Argument(metavar="CLASS", help="Name or synonym of the class.", show_default=False)]
ClassNames = Annotated[list[str], typer.Argument(metavar="CLASS", help="Names or synonyms.", show_default=False)]

CHANGES_HELP = """
Every change of classes is kept in a history and can be undone as a whole. Other people can go on labeling meanwhile:
an answer that an open page still sends for a merged class counts for the class it was merged into.
"""


commands = typer.Typer(
    cls=DefaultListGroup,
    rich_markup_mode=None,
    no_args_is_help=True,
    help=f"List and change the classes.\n{CHANGES_HELP}",
    epilog=format_examples("annotator classes birds", 'annotator classes rename birds heron "grey heron"'),
)


@commands.command(
    "list",
    epilog=format_examples("annotator classes birds", "annotator classes birds --json"),
)
def list_classes(project: ProjectArgument, as_json: AsJson = False) -> None:
    """List the classes in page order: keys, label counts, headings, synonyms."""
    from annotator.store.classes import classes
    from annotator.store.database.database import Database
    from annotator.store.labels import project_counts

    db = Database(project)
    counts, known, archived = (
        project_counts.count_labels_by_class(db),
        classes.load_ordered_classes(db),
        classes.load_archived_classes(db),
    )
    rows = [
        asdict(class_) | dict(zip(("present", "absent", "unsure"), counts[class_.id], strict=True)) for class_ in known
    ]

    def text() -> None:
        titles = ("class", "key", "present", "absent", "unsure", "heading", "synonyms")
        print_table(titles, [_build_row(class_, counts[class_.id]) for class_ in known])
        if archived:
            print(f"Archived: {_join_names(archived)}")

    print_result({"classes": rows, "archived": [asdict(class_) for class_ in archived]}, as_json, text)


@commands.command(
    epilog=format_examples(
        'annotator classes rename birds heron "grey heron"',
        'annotator classes rename birds egret "little egret" --keep',
    )
)
def rename(
    project: ProjectArgument,
    name: ClassName,
    to: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.", show_default=False)],
    keep: Annotated[bool, typer.Option("--keep", help="Keep the former name as a synonym.")] = False,
    by: AnnotatorOption = None,
) -> None:
    """Rename a class. All its labels stay."""
    db, class_ = _open_class(project, name)
    synonyms = {*class_.synonyms, *([class_.name] if keep else [])} - {to.strip()}
    _edit_classes(db, by, {class_.id: {"name": to, "synonyms": sorted(synonyms)}})


@commands.command(
    epilog=format_examples(
        "annotator classes merge birds egret --into heron",
        "annotator classes merge birds egret heron --into wader --kinds --yes",
    )
)
def merge(
    project: ProjectArgument,
    names: ClassNames,
    into: Annotated[str, typer.Option(metavar="CLASS", help="The class that stays.", show_default=False)],
    kinds: Annotated[
        bool,
        typer.Option(
            "--kinds", help="They are kinds of it, not other names for it: their absent answers do not count."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    by: AnnotatorOption = None,
) -> None:
    """Merge classes into another one, which stays. They are archived, and their names become its synonyms.

    Where a merged class is present, the class that stays becomes present, even if it was labeled absent. Where it has
    no answer, it takes their absent (not with --kinds) or unsure. The number of changed images is printed first.
    """
    from annotator.store.classes import class_changes

    db, target = _open_class(project, into)
    merged = _find_classes(db, names)
    ids = [class_.id for class_ in merged]
    counts = class_changes.preview_merge(db, ids, target.id, same=not kinds)
    stays = escape_unprintable(target.name)
    print(f"New answers for {stays}: {counts.present:,} present, {counts.absent:,} absent, {counts.unsure:,} unsure.")
    if counts.conflicts:
        print(f"{format_count(counts.conflicts, 'image')} labeled absent for {stays} will be present.")
    if not yes and not typer.confirm(f"Merge {_join_names(merged)} into {stays}?"):
        print("Nothing was changed.")
        return
    class_changes.merge(db, by or get_login_name(), ids, target.id, same=not kinds)
    print(f"Merged. Undo with: annotator classes undo {project}")


@commands.command(epilog=format_examples('annotator classes split birds duck "tufted duck"'))
def split(
    project: ProjectArgument,
    name: ClassName,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Name of the new class.", show_default=False)],
    commas: CommasOption = None,
    by: AnnotatorOption = None,
) -> None:
    """Split a new class off another one. Prints the URL of a grid with the images of the other class."""
    from annotator.store.classes import class_changes, classes, name_lists

    db, class_ = _open_class(project, name)
    for one, _ in name_lists.resolve_lists([(new, "")], classes.load_classes_by_name(db), "the command", commas):
        class_id, selection = class_changes.split_class(db, by or get_login_name(), class_.id, one)
        undo = f"Undo with: annotator classes undo {project}"
        print(f"Added {escape_unprintable(one)}, split off from {escape_unprintable(class_.name)}. {undo}")
        print(
            f"Answer it for the images with {escape_unprintable(class_.name)} at this address of the app (annotator "
            "serve):"
        )
        print(f"  /grid?class={class_id}&selection={selection}")


@commands.command(epilog=format_examples("annotator classes archive birds duck"))
def archive(project: ProjectArgument, names: ClassNames, by: AnnotatorOption = None) -> None:
    """Archive classes: no more questions, exports or trainings include them. Their labels are kept."""
    from annotator.store.classes import class_changes
    from annotator.store.database.database import Database

    db = Database(project)
    archived = _find_classes(db, names)
    class_changes.archive(db, by or get_login_name(), [class_.id for class_ in archived])
    print(f"Archived: {_join_names(archived)}")


@commands.command(epilog=format_examples("annotator classes restore birds duck"))
def restore(
    project: ProjectArgument,
    names: Annotated[list[str], typer.Argument(metavar="CLASS", help="Their names.", show_default=False)],
    by: AnnotatorOption = None,
) -> None:
    """Restore archived or merged classes with all their labels."""
    from annotator.store.classes import class_changes, classes
    from annotator.store.database.database import Database

    db = Database(project)
    gone = {class_.name: class_.id for class_ in classes.load_archived_classes(db)}
    unknown = [
        f"no archived class is called {name!r}. {did_you_mean(name, gone)}" for name in names if name not in gone
    ]
    if unknown:
        raise combine_problems("These classes cannot be restored:", unknown)
    class_changes.restore(db, by or get_login_name(), [gone[name] for name in names])
    print(f"Restored: {', '.join(map(escape_unprintable, names))}")


@commands.command(epilog=format_examples('annotator classes note birds heron "grey, with a long neck"'))
def note(
    project: ProjectArgument,
    name: ClassName,
    text: Annotated[str, typer.Argument(help='What the class means; "" for nothing.', show_default=False)],
    by: AnnotatorOption = None,
) -> None:
    """Describe what a class means, as shown on its card."""
    db, class_ = _open_class(project, name)
    _edit_classes(db, by, {class_.id: {"description": text}})


@commands.command(
    epilog=format_examples(
        "annotator classes synonym birds heron egret", "annotator classes synonym birds heron egret --remove"
    )
)
def synonym(
    project: ProjectArgument,
    name: ClassName,
    synonyms: Annotated[list[str], typer.Argument(metavar="SYNONYM", help="Other names.", show_default=False)],
    remove: Annotated[bool, typer.Option("--remove", help="Remove them instead.")] = False,
    by: AnnotatorOption = None,
) -> None:
    """Add other names under which a class is found by search."""
    db, class_ = _open_class(project, name)
    if remove and (unknown := [repr(text) for text in synonyms if text not in class_.synonyms]):
        has = ", ".join(map(repr, class_.synonyms)) or "none"
        raise AnnotatorError(f"{class_.name!r} has no synonym {', '.join(unknown)}. Its synonyms: {has}.")
    changed = {*class_.synonyms} - {*synonyms} if remove else {*class_.synonyms, *synonyms}
    _edit_classes(db, by, {class_.id: {"synonyms": sorted(changed)}})


@commands.command(
    epilog=format_examples(
        "annotator classes order birds heron duck   (the others follow as they are)",
        "annotator classes order birds heron duck --heading waterfowl",
    )
)
def order(
    project: ProjectArgument,
    names: ClassNames,
    heading: Annotated[
        str | None, typer.Option(help='Put them under this heading; "" for none.', show_default=False)
    ] = None,
    by: AnnotatorOption = None,
) -> None:
    """Put classes first in lists, in this order. Arrays and exports keep the order in which classes were added."""
    from annotator.store.classes import class_changes
    from annotator.store.database.database import Database

    db = Database(project)
    ids = [class_.id for class_ in _find_classes(db, names)]
    _print_change(db, class_changes.reorder(db, by or get_login_name(), ids, heading=heading))


@commands.command(epilog=format_examples("annotator classes undo birds", "annotator classes undo birds 12"))
def undo(
    project: ProjectArgument,
    number: Annotated[
        int | None,
        typer.Argument(help="Number of the change in the history [default: the newest].", show_default=False),
    ] = None,
    by: AnnotatorOption = None,
) -> None:
    """Undo a change of classes in one step, also another person's."""
    from annotator.store.classes import change_descriptions, class_history
    from annotator.store.database.database import Database

    db = Database(project)
    undone = class_history.undo_change(db, by or get_login_name(), number).undoes
    [words] = [words for change, words in change_descriptions.describe_history(db) if change.id == undone]
    print(f"Undid: {escape_unprintable(words)}")


@commands.command(epilog=format_examples("annotator classes history birds", "annotator classes history birds --json"))
def history(project: ProjectArgument, as_json: AsJson = False) -> None:
    """Show the changes of classes with their authors, newest first."""
    from annotator.store.classes import change_descriptions
    from annotator.store.database.database import Database

    changes = list(change_descriptions.describe_history(Database(project)))

    def text() -> None:
        for change, words in changes:
            back = f" (undone by change {change.undone_by})" if change.undone_by else ""
            who = escape_unprintable(change.annotator) or "-"
            print(f"{change.id:>4}  {format_local_minute(change.changed_at)}  {who}: {escape_unprintable(words)}{back}")

    print_result([asdict(change) | {"words": words} for change, words in changes], as_json, text)


def _build_row(class_: Class, counts: tuple[int, int, int]) -> tuple[str, ...]:
    return (class_.name, class_.key, *(f"{count:,}" for count in counts), class_.heading, ", ".join(class_.synonyms))


def _open_class(project, name: str):
    from annotator.store.classes import classes
    from annotator.store.database.database import Database

    db = Database(project)
    return db, classes.find_class(db, name)


def _find_classes(db, names: list[str]) -> list[Class]:
    from annotator.store.classes import classes

    found = [classes.find_class(db, name) for name in names]
    return list({class_.id: class_ for class_ in found}.values())  # a name and a synonym may be given of one class


def _join_names(some: list[Class]) -> str:
    return ", ".join(escape_unprintable(class_.name) for class_ in some)


def _edit_classes(db, by: str | None, changes: dict[int, dict]) -> None:
    from annotator.store.classes import class_changes

    _print_change(db, class_changes.edit(db, by or get_login_name(), changes))


def _print_change(db, change: "ClassChange | None") -> None:
    from annotator.store.classes import change_descriptions, classes

    words = (
        change_descriptions.describe_change(change, classes.load_class_names(db)) if change else "Nothing was changed."
    )
    print(escape_unprintable(words))
