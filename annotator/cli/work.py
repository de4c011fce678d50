"""The commands that script the work of annotators and of the worker: embed, train, decide, undo."""

import os
import sys
import uuid
from enum import StrEnum
from typing import Annotated

import typer

from annotator.cli.options import AsJson, MethodName, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, make_step_callback, print_result, show_progress
from annotator.errors import combine_problems
from annotator.humanize import format_count, format_duration
from annotator.records import STATES, Decision
from annotator.settings import get_login_name

commands = typer.Typer(rich_markup_mode=None)


class StateName(StrEnum):
    """The states that `annotator decide` can set."""

    present = "present"
    absent = "absent"
    unsure = "unsure"


@commands.command(epilog=format_examples("annotator worker birds --once", "annotator worker birds"))
def worker(
    project: ProjectArgument,
    once: Annotated[bool, typer.Option("--once", help="Analyze new images, train once, and exit.")] = False,
    watched: Annotated[bool, typer.Option("--watched", hidden=True)] = False,
    tagger_url: Annotated[list[str] | None, typer.Option("--tagger-url", hidden=True)] = None,
    listed_taggers_only: Annotated[bool, typer.Option("--listed-taggers-only", hidden=True)] = False,
) -> None:
    """Run the worker, which trains in the background, or train once. The app starts its own worker."""
    from annotator.exchange.tagging.allowed_taggers import AllowedTaggers, parse_taggers
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.worker.process import run_worker

    set_private_umask()
    problems: list[str] = []
    taggers = AllowedTaggers(parse_taggers(tagger_url or (), os.environ, problems), listed_taggers_only)
    if problems:
        raise combine_problems("The worker cannot run like this:", problems)
    run = run_worker(project, once=once, watched=watched, taggers=taggers)
    if run:
        print(
            f"Run {run.id}: {run.method}, {format_count(run.epochs, 'epoch')} in {run.seconds:.2f} s; probabilities of "
            f"{format_count(run.images, 'image')} published."
        )


@commands.command(
    epilog=format_examples(
        "annotator train birds",
        "annotator train birds --method em_apl",
        "annotator train birds --method em_apl --set alpha=0.1 --set warm_up=0.4",
        "annotator train birds --on ray://HEAD:10001",
    )
)
def train(
    project: ProjectArgument,
    method: MethodName = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a parameter of the method; may be repeated."),
    ] = None,
    on: Annotated[
        str, typer.Option("--on", metavar="local|ray|ray://HOST:PORT", help="Where all images are scored.")
    ] = "local",
) -> None:
    """Train now, and set the method and its parameters for this and later trainings.

    --method resets the parameters to the method's defaults, while --set alone changes the current method. With --on ray
    the training runs here, and a Ray cluster scores the images: the one in RAY_ADDRESS, else one that is started here
    (docs/scale.md).
    """
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.worker.train_now import train_now

    set_private_umask()
    notes: list[str] = []
    with show_progress("Waiting for the worker") as show:
        run = train_now(project, method, settings or (), on_progress=show, on=on, notify=notes.append)
    for sentence in notes:
        print(f"note: {sentence}", file=sys.stderr)
    print(f"Run {run.id}: {run.method}, {format_count(run.epochs, 'epoch')} in {run.seconds:.2f} s.")


@commands.command(
    epilog=format_examples(
        "annotator embed birds",
        "annotator embed birds --on ray",
        "annotator embed birds --on ray://10.0.0.5:10001 --json",
    )
)
def embed(
    project: ProjectArgument,
    on: Annotated[
        str,
        typer.Option(metavar="PLACE", help="local, ray (RAY_ADDRESS, else a cluster started here), ray://HOST:10001."),
    ] = "local",
    as_json: AsJson = False,
) -> None:
    """Compute embeddings of all images that lack one, on this machine or on a Ray cluster.

    The worker does the same on this machine, and pauses it while this command runs. Ctrl+C stops, and the same command
    resumes.
    """
    from annotator.store.disk.file_permissions import set_private_umask
    from annotator.worker.embedding.embed_now import embed_now

    set_private_umask()
    with show_progress("Reading the project") as show:
        done = embed_now(project, on, make_step_callback(show))

    def text() -> None:
        print(
            f"Analyzed {format_count(done.images, 'image')} in {format_duration(done.seconds)}, "
            f"{done.images_per_second:,.1f} a second, by {format_count(done.workers, 'worker')}."
        )
        if len(done.nodes) > 1:
            for node, rate in done.nodes.items():
                print(f"  {escape_unprintable(node)}: {rate:,.1f} a second")
        if done.failed:
            print(f"{format_count(done.failed, 'image')} could not be read: annotator status names them.")
        if done.unanswered:
            print(
                f"{format_count(done.unanswered, 'image')} could not be read, because the bucket or server did not "
                "answer. The same command tries again."
            )
        if done.remaining > done.unanswered:
            print(f"Stopped: {format_count(done.remaining, 'image')} remain. The same command goes on.")

    print_result(
        {
            "images": done.images,
            "seconds": round(done.seconds, 3),
            "images_a_second": round(done.images_per_second, 3),
            "workers": done.workers,
            "nodes": {node: round(rate, 3) for node, rate in done.nodes.items()},
            "failed": done.failed,
            "remaining": done.remaining,
            "unanswered": done.unanswered,
        },
        as_json,
        text,
    )
    if done.remaining:
        raise typer.Exit(130 if done.remaining > done.unanswered else 1)


@commands.command(
    epilog=format_examples(
        "annotator decide birds 2021/heron.jpg heron present", "annotator decide birds a.jpg fox absent --annotator Ann"
    )
)
def decide(
    project: ProjectArgument,
    image: Annotated[str, typer.Argument(help="Path of the image in its folder, or its file name if that is unique.")],
    class_name: Annotated[str, typer.Argument(metavar="CLASS", help="Name of the class.")],
    state: Annotated[StateName, typer.Argument(help="The answer.")],
    annotator: Annotated[str | None, typer.Option(help="Name of the annotator [default: your login name].")] = None,
) -> None:
    """Label one class of one image."""
    from annotator.store.classes import classes
    from annotator.store.database.database import Database
    from annotator.store.images import images
    from annotator.store.labels import decisions

    db = Database(project)
    image_found, class_ = images.find_image(db, image), classes.find_class(db, class_name)
    decision = Decision(
        str(uuid.uuid4()),
        "label",
        annotator or get_login_name(),
        "click",
        image_id=image_found.id,
        class_id=class_.id,
        state=STATES[state],
    )
    decisions.save(db, [decision])
    print(f"{escape_unprintable(image_found.name)}: {escape_unprintable(class_.name)} {state}")


@commands.command(
    epilog=format_examples(
        "annotator undo birds", "annotator undo birds --annotator Ann", "annotator undo birds --anyone"
    )
)
def undo(
    project: ProjectArgument,
    annotator: Annotated[str | None, typer.Option(help="Name of the annotator [default: your login name].")] = None,
    anyone: Annotated[bool, typer.Option("--anyone", help="Also undo decisions of other people.")] = False,
) -> None:
    """Undo your newest decision (a grid in one step). Repeat for earlier ones."""
    from annotator.store.database.database import Database
    from annotator.store.labels import decisions

    name = annotator or get_login_name()
    for row in decisions.undo(Database(project), None if anyone else name, by=name):
        state = next((name for name, value in STATES.items() if value == row["state"]), row["action"])
        print(
            f"Undid: {escape_unprintable(row['image'])}: {row['class'] or ''} {state} (by "
            f"{escape_unprintable(row['annotator'])})"
        )
