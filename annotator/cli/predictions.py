"""The commands for predictions of other models, and for access tokens of programs that send predictions."""

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from annotator.cli.options import (
    AnnotatorOption,
    AsJson,
    DefaultListGroup,
    Match,
    ProjectArgument,
    format_examples,
    refuse_combined_options,
)
from annotator.cli.printing import escape_unprintable, print_table, show_progress
from annotator.errors import AnnotatorError
from annotator.humanize import format_count, format_local_minute, format_percent
from annotator.settings import get_login_name

commands = typer.Typer(rich_markup_mode=None)
tokens = typer.Typer(
    cls=DefaultListGroup,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List, make and revoke the tokens by which programs may send predictions, or read figures.",
    epilog=format_examples("annotator tokens birds", "annotator tokens make birds tagger --for predictions"),
)
MAX_CLASSES_SHOWN = 12  # classes that are named alike


class Scale(StrEnum):
    """Values of --scale: predictions are probabilities or uncalibrated scores."""

    PROBABILITY = "probability"
    SCORE = "score"


class TokenRight(StrEnum):
    """The rights that an access token may give."""

    PREDICTIONS = "predictions"
    METRICS = "metrics"


RIGHT_DESCRIPTIONS = {TokenRight.PREDICTIONS: "send predictions", TokenRight.METRICS: "read the figures of /metrics"}


@commands.command(
    epilog=format_examples(
        "annotator predictions birds yolo.csv --name yolo-world",
        "annotator predictions birds md.json --name MegaDetector --only-known",
        "annotator predictions birds clip.npy --name clip --scale score --images-file n.txt --classes-file c.txt",
        "annotator predictions birds",
        "annotator predictions birds --event-labels",
        "annotator predictions birds --remove yolo-world",
    )
)
def predictions(
    context: typer.Context,
    project: ProjectArgument,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, Parquet, .npy, COCO results, MegaDetector or SpeciesNet JSON, or Label Studio tasks.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="What the source is called.")] = None,
    format_: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="Format of the file [default: recognised].")
    ] = None,
    scale: Annotated[
        Scale, typer.Option(help="Probabilities in [0, 1], or scores of which only the order counts.")
    ] = Scale.PROBABILITY,
    class_map: Annotated[
        Path | None, typer.Option(help="CSV of two columns: name in the file, class (empty: left out).")
    ] = None,
    images_file: Annotated[Path | None, typer.Option(help="Names of the rows of a .npy array, one a line.")] = None,
    classes_file: Annotated[Path | None, typer.Option(help="Names of its columns, one a line.")] = None,
    only_known: Annotated[
        bool, typer.Option("--only-known", help="Leave out classes that the project does not have.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Forget what the source said before.")] = False,
    match: Match = None,
    of_events: Annotated[
        bool, typer.Option("--event-labels", help="Add the labels of events (bursts) as scores of their images.")
    ] = False,
    remove: Annotated[str | None, typer.Option(metavar="NAME", help="Remove this source.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be stored.")] = False,
    as_json: AsJson = False,
    by: AnnotatorOption = None,
) -> None:
    """Add predictions of another model, list models with their learned weights, or remove one."""
    from annotator.exchange.imports.class_map import read_class_map
    from annotator.exchange.predictions.prediction_import import PredictionOptions
    from annotator.store.database.database import Database
    from annotator.store.runs import prediction_sources

    of_file = "file name format_ scale class_map images_file classes_file only_known replace match dry_run"
    refuse_combined_options(context, of_file, "of_events", "remove")
    db = Database(project)
    if remove is not None:
        removed = prediction_sources.remove_source(db, remove)
        message = (
            f"The predictions {escape_unprintable(removed.name)} were removed. What they said of answered cells stays "
            "noted."
        )
        print(json.dumps({"removed": removed.name}) if as_json else message)
        return
    if of_events:
        from annotator.exchange.predictions import event_scores

        source = event_scores.store(db, by or get_login_name())
        _print_stored(source)
        return
    if file is None:
        _print_sources(db, as_json)
        return
    if name is None:
        raise AnnotatorError("Say what these predictions are called: --name yolo-world")
    names = read_class_map(class_map) if class_map else {}
    choices = PredictionOptions(format_, scale.value, names, images_file, classes_file, only_known, replace, match)
    _add_predictions(db, file, name, choices, by or get_login_name(), dry_run, as_json)


def _add_predictions(db: Any, file: Path, name: str, choices: Any, by: str, dry_run: bool, as_json: bool) -> None:
    from annotator.exchange.predictions.prediction_import import prepare_predictions
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.store.images.name_kinds import KIND_DESCRIPTIONS

    set_private_umask()
    with (
        show_progress("Reading") as show,
        prepare_predictions(db, file, name, choices, by, lambda done, of: show(done, done)) as plan,
    ):
        source = None if dry_run else plan.apply()
    found = plan.found
    if as_json:
        print(
            json.dumps(
                {"format": plan.format, "why": plan.why, "said": list(plan.sentences)}
                | {"images": found.images, "unknown_images": found.unknown_images.count}
                | {"scored_again": found.scored_again.count}
                | {"found_by": {kind: tally.count for kind, tally in found.found_by.items()}}
                | {"classes": dict(found.classes), "unknown_classes": list(found.unknown_classes)}
                | {"stored": source and asdict(source)},
                ensure_ascii=False,
            )
        )
        return
    print(f"Format: {plan.format} ({escape_unprintable(plan.why)}).")
    for sentence in plan.sentences:
        print(f"  {escape_unprintable(sentence)}")
    print(f"{format_count(found.images, 'image')} of this project.")
    for kind, tally in found.found_by.items():
        print(f"{format_count(tally.count, 'name')} found {KIND_DESCRIPTIONS[kind]}:")
        for example in tally.examples:
            print(f"  {escape_unprintable(example)}")
    if found.unknown_images.count:
        print(f"{format_count(found.unknown_images.count, 'image')} that nobody has, left out:")
        for example in found.unknown_images.examples:
            print(f"  {escape_unprintable(example)}")
    if found.scored_again.count:
        print(
            f"{format_count(found.scored_again.count, 'score')} of cells that it scored before, of which the highest "
            "counts:"
        )
        for example in found.scored_again.examples:
            print(f"  {escape_unprintable(example)}")
    for given, target in list(found.classes.items())[:MAX_CLASSES_SHOWN]:
        print(f"  {escape_unprintable(given)} -> {escape_unprintable(target)}")
    if found.unknown_classes:
        shown = ", ".join(map(escape_unprintable, found.unknown_classes[:MAX_CLASSES_SHOWN]))
        print(f"{format_count(len(found.unknown_classes), 'class', 'classes')} that nobody has, left out: {shown}")
    if source is None:
        print("Nothing was changed.")
        return
    _print_stored(source)


def _print_stored(source: Any) -> None:
    print(
        f"{escape_unprintable(source.name)}: a {source.scale} of {format_count(source.cells, 'cell')} on "
        f"{format_count(source.images, 'image')}. The next training uses it."
    )


def _print_sources(db: Any, as_json: bool) -> None:
    from annotator.exchange.predictions.known_sources import load_known_sources

    known = load_known_sources(db)
    if as_json:
        print(json.dumps([asdict(one.source) | one.to_json() for one in known], ensure_ascii=False))
        return
    if not known:
        print("There are no predictions of other models yet.")
        return
    rows = [
        (
            escape_unprintable(one.source.name),
            one.source.scale,
            f"{one.source.images:,} ({format_percent(one.covered)})",
            f"{len(one.source.class_ids):,}",
            format_local_minute(one.source.added_at),
            escape_unprintable(one.describe_weights()),
        )
        for one in known
    ]
    print_table(("source", "scale", "images", "classes", "added", "weight learned"), rows)


@tokens.command("list", epilog=format_examples("annotator tokens list birds", "annotator tokens birds --json"))
def list_tokens(project: ProjectArgument, as_json: AsJson = False) -> None:
    """List the access tokens. Their secrets are not stored."""
    from annotator.store.database.database import Database
    from annotator.store.people import access_tokens

    known = access_tokens.load_tokens(Database(project))
    if as_json:
        print(json.dumps([asdict(token) for token in known], ensure_ascii=False))
        return
    rows = [
        (
            escape_unprintable(token.name),
            token.right_to,
            escape_unprintable(token.annotator),
            format_local_minute(token.made_at),
            format_local_minute(token.used_at),
            "revoked" if token.revoked_at else "valid",
        )
        for token in known
    ]
    if rows:
        print_table(("token", "for", "made by", "made", "last used", ""), rows)
    else:
        print("There are no tokens yet.")


@tokens.command(
    epilog=format_examples(
        "annotator tokens make birds tagger --for predictions",
        "annotator tokens make birds prometheus --for metrics",
    )
)
def make(
    project: ProjectArgument,
    name: Annotated[str, typer.Argument(help="What the token is called.", show_default=False)],
    right: Annotated[TokenRight, typer.Option("--for", help="What it may do.")] = TokenRight.PREDICTIONS,
    by: AnnotatorOption = None,
) -> None:
    """Create an access token and print its secret, once."""
    from annotator.store.database.database import Database
    from annotator.store.people import access_tokens

    secret = access_tokens.make(Database(project), name, right.value, by or get_login_name())
    print(secret)
    typer.echo(
        "This is shown only now. Send it as a header: Authorization: Bearer SECRET. It may "
        f"{RIGHT_DESCRIPTIONS[right]} and do nothing else.",
        err=True,
    )


@tokens.command(epilog=format_examples("annotator tokens revoke birds tagger"))
def revoke(
    project: ProjectArgument,
    name: Annotated[str, typer.Argument(help="Of the token.", show_default=False)],
    by: AnnotatorOption = None,
) -> None:
    """Revoke an access token at once."""
    from annotator.store.database.database import Database
    from annotator.store.people import access_tokens

    access_tokens.revoke(Database(project), name, by or get_login_name())
    print(f"The token {escape_unprintable(name)} is not accepted any more.")
