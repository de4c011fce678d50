"""The command that lists, declares, previews and undoes class relations."""

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
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
from annotator.errors import AnnotatorError, combine_problems
from annotator.humanize import format_count
from annotator.settings import get_login_name

commands = typer.Typer(rich_markup_mode=None)
MAX_CONTRADICTIONS_SHOWN = 20  # contradictions listed
NO_SUGGESTIONS_MESSAGE = (
    "No relation is suggested: at least 30 images with unbiased answers to both classes must speak for one, and none "
    "against it."
)


@commands.command(
    epilog=format_examples(
        "annotator relations pets",
        'annotator relations pets --is-a "spaniel=dog" --is-a "dog=animal" --dry-run',
        'annotator relations pets --at-most-one "pet=dog,cat" --exactly-one "time=day,night"',
        "annotator relations pets --from taxonomy.txt --dry-run",
        "annotator relations pets --suggest",
        "annotator relations pets --undo",
    )
)
def relations(
    context: typer.Context,
    project: ProjectArgument,
    is_a: Annotated[list[str] | None, typer.Option(metavar="CHILD=PARENT", help="CHILD is a kind of PARENT.")] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Read what is a kind of what: indented lines, COCO, Open Images, taxonomy paths, keywords of photos.",
        ),
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="With --from: add the classes that the project lacks.")] = False,
    at_most_one: Annotated[
        list[str] | None, typer.Option(metavar="NAME=A,B,...", help="At most one of these classes is present.")
    ] = None,
    exactly_one: Annotated[
        list[str] | None, typer.Option(metavar="NAME=A,B,...", help="Exactly one of these classes is present.")
    ] = None,
    remove: Annotated[int | None, typer.Option(metavar="NUMBER", help="Remove a relation, by its number.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Undo the newest change.")] = False,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="List relations that no answer contradicts, with what speaks for each.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would follow from existing answers, and change nothing.")
    ] = False,
    by: AnnotatorOption = None,
    as_json: AsJson = False,
) -> None:
    """Declare relations between classes, by which one label implies others.

    "spaniel" implies "dog", "no dog" implies "no spaniel", "day" implies "not night". Implied labels are not answers:
    they disappear with the answer, give way to a person's own, and have the source "implied" in exports.
    """
    from annotator.exchange.files.hierarchy import read_hierarchy
    from annotator.exchange.formats.keywords import recognize
    from annotator.quality import suggested_relations
    from annotator.store.classes import classes
    from annotator.store.database.database import Database
    from annotator.store.labels import implied_cells
    from annotator.store.relations import declared_relations

    declared = "is_a at_most_one exactly_one from_file add"
    one = "One change at a time, so that each can be undone"
    refuse_combined_options(context, declared, "remove", "undo", why=one)
    refuse_combined_options(context, "suggest", f"{declared} remove undo", why="--suggest changes nothing")
    db = Database(project)
    if add and from_file is None:
        raise AnnotatorError("--add goes with --from: it adds the classes that the file names.")
    read = []
    if from_file:
        has_keywords = from_file.is_dir() or bool(recognize(from_file))
        read = _read_keyword_pairs(db, from_file, add) if has_keywords else read_hierarchy(from_file)
    if read:
        _ensure_classes(db, read, add and not dry_run, by)
    given = {"is_a": is_a or [], "at_most_one": at_most_one or [], "exactly_one": exactly_one or []}
    wanted = [*_build_file_relations(db, read), *_parse_relations(db, given)]
    if dry_run and not wanted:
        raise AnnotatorError("--dry-run goes with --is-a, --at-most-one or --exactly-one: it shows what they would do.")
    said, person, effect = "", by or get_login_name(), None
    if wanted:
        effect = (
            declared_relations.preview_declaration(db, wanted)
            if dry_run
            else declared_relations.declare(db, wanted, person)
        )
        said = declared_relations.describe_effect(effect, "would be" if dry_run else "are")
    elif remove is not None:
        said = declared_relations.describe_effect(declared_relations.remove(db, remove, person), "are")
    elif undo:
        said = f"Undid {declared_relations.undo(db, person)}."
    names = classes.load_class_names(db)
    held = declared_relations.load_relations(db).made
    rows = [
        {
            "number": one.id,
            "kind": one.declared.kind,
            "name": one.declared.name,
            "classes": [names[class_id] for class_id in one.declared.class_ids],
            "annotator": one.annotator,
        }
        for one in held
    ]
    against = declared_relations.find_contradictions(db, MAX_CONTRADICTIONS_SHOWN + 1)
    told = ("image", "class", "because_of", "relation")
    value: dict[str, Any] = {
        "relations": rows,
        "implied": implied_cells.count_by_state(db),
        "contradictions": [dict(zip(told, one, strict=True)) for one in against[:MAX_CONTRADICTIONS_SHOWN]],
        "effect": effect and asdict(effect),
    }
    suggestions = suggested_relations.suggest_relations(db) if suggest else []
    if suggest:
        value["suggested"] = [
            {
                "kind": one.declared.kind,
                "classes": [names[class_id] for class_id in one.declared.class_ids],
                "images": one.images,
                "at_most": round(one.at_most, 4),
            }
            for one in suggestions
        ]

    def text() -> None:
        if said:
            print(escape_unprintable(said))
        if suggest:
            print("Suggested by answers:" if suggestions else NO_SUGGESTIONS_MESSAGE)
            for one in suggestions:
                print(escape_unprintable(f"  {suggested_relations.describe_suggestion(one, names)}"))
        if not rows:
            print("No relations of classes are declared.")
            return
        print_table(
            ("number", "relation", "by"),
            [
                (
                    str(one.id),
                    escape_unprintable(declared_relations.describe_relation(one.declared, names)),
                    escape_unprintable(one.annotator),
                )
                for one in held
            ],
        )
        counts = value["implied"]
        print(f"Implied by answers: {counts['present']:,} present, {counts['absent']:,} absent.")
        for image, class_, other, relation in against[:MAX_CONTRADICTIONS_SHOWN]:
            print(escape_unprintable(f"{image}: the answer to {class_} contradicts the one to {other} ({relation})."))
        if len(against) > MAX_CONTRADICTIONS_SHOWN:
            print(f"There are more than {MAX_CONTRADICTIONS_SHOWN} such answers.")

    print_result(value, as_json, text)


def _read_keyword_pairs(db: Any, path: Path, add: bool) -> list[tuple[str, str]]:
    """Return (child, parent) keywords above the project's classes. Without `add`, other keywords are passed over."""
    from annotator.exchange.formats.keywords import read_keyword_paths
    from annotator.store.classes import classes

    known = classes.load_classes_by_name(db)
    pairs: dict[tuple[str, str], None] = {}
    for names in read_keyword_paths(path):
        while names and names[-1] not in known:
            names.pop()
        chain = names if add else [name for name in names if name in known]
        pairs |= dict.fromkeys((child, parent) for parent, child in pairwise(chain) if child != parent)
    if not pairs:
        raise AnnotatorError(
            f"{path} has no keyword above a class of the project. Keywords with levels, such as Species|fox, say what "
            "is a kind of what. --add also adds the levels that are not classes yet."
        )
    return list(pairs)


def _ensure_classes(db: Any, pairs: list[tuple[str, str]], add: bool, by: str | None) -> None:
    """Add the classes of these (child, parent) pairs that are missing if `add`, else raise AnnotatorError."""
    from annotator.store.classes import classes

    known = classes.load_classes_by_name(db)
    missing = [name for name in dict.fromkeys(name for pair in pairs for name in pair) if name not in known]
    if missing and not add:
        shown = ", ".join(map(repr, missing[:MAX_CONTRADICTIONS_SHOWN])) + (
            " and more" if len(missing) > MAX_CONTRADICTIONS_SHOWN else ""
        )
        raise AnnotatorError(
            f"The file names {format_count(len(missing), 'class', 'classes')} that the project lacks: {shown}. Add "
            "them with --add: they have to be answered, too; or leave them out of the file."
        )
    if missing:
        classes.add_classes(db, [(name, "") for name in missing], by or get_login_name())


def _build_file_relations(db: Any, pairs: list[tuple[str, str]]) -> list[Any]:
    from annotator.store.classes import classes
    from annotator.store.relations.relation_edits import IS_A, Declaration

    known = classes.load_classes_by_name(db)
    return [Declaration(IS_A, (known[child].id, known[parent].id)) for child, parent in pairs]


def _parse_relations(db: Any, given: dict[str, list[str]]) -> list[Any]:
    from annotator.store.classes import classes
    from annotator.store.relations.relation_edits import IS_A, Declaration

    found: list[Any] = []
    problems: list[str] = []

    def find(name: str) -> int:
        try:
            return classes.find_class(db, name.strip()).id
        except AnnotatorError as error:
            problems.append(str(error))
            return 0

    for kind, texts in given.items():
        for text in texts:
            left, is_named, right = text.partition("=")
            if not is_named or not left.strip() or not right.strip():
                how = "CHILD=PARENT, such as spaniel=dog" if kind == IS_A else "NAME=A,B, such as time=day,night"
                problems.append(f"--{kind.replace('_', '-')} takes {how}, not {text!r}.")
            elif kind == IS_A:
                found.append(Declaration(kind, (find(left), find(right))))
            else:
                ids = tuple(dict.fromkeys(find(part) for part in right.split(",") if part.strip()))
                found.append(Declaration(kind, ids, left.strip()))
    if problems:
        raise combine_problems("These relations cannot be read:", problems)
    return found
