"""The commands that do in a script what people and the worker do in the app: train, decide, undo."""

import getpass
import uuid
from enum import StrEnum
from typing import Annotated

import typer

from annotator.cli.options import MethodName, Project, examples
from annotator.cli.printing import printable, progress
from annotator.records import STATES, Decision

commands = typer.Typer(rich_markup_mode=None)


class StateName(StrEnum):
    present = "present"
    absent = "absent"
    unsure = "unsure"


@commands.command(epilog=examples("annotator worker birds --once", "annotator worker birds"))
def worker(
    project: Project,
    once: Annotated[bool, typer.Option("--once", help="Embed what is missing, train, publish, end.")] = False,
    watched: Annotated[bool, typer.Option("--watched", hidden=True)] = False,
) -> None:
    """Train in the background (the app starts its own worker), or once."""
    from annotator.store.private import files_for_owner_only
    from annotator.worker.process import main

    files_for_owner_only()
    run = main(project, once=once, watched=watched)
    if run:
        print(
            f"Run {run.id}: {run.method}, {run.epochs} epochs in {run.seconds:.2f} s, "
            f"probabilities of {run.images:,} images published."
        )


@commands.command(
    epilog=examples(
        "annotator train birds",
        "annotator train birds --method em_apl",
        "annotator train birds --method em_apl --set alpha=0.1 --set warm_up=0.4",
    )
)
def train(
    project: Project,
    method: MethodName = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the method from now on; may be given again."),
    ] = None,
) -> None:
    """Train now, and choose the method and its parameters for this and later runs.

    --method begins with the method's own defaults; --set without it changes the method in use.
    """
    from annotator.store.private import files_for_owner_only
    from annotator.worker.train_now import train_now

    files_for_owner_only()
    with progress("Waiting for the worker") as show:
        run = train_now(project, method, settings or (), progress=show)
    print(f"Run {run.id}: {run.method}, {run.epochs} epochs in {run.seconds:.2f} s.")


@commands.command(
    epilog=examples(
        "annotator decide birds 2021/heron.jpg heron present", "annotator decide birds a.jpg fox absent --annotator Ann"
    )
)
def decide(
    project: Project,
    image: Annotated[
        str, typer.Argument(help="Path of the image in its folder, or its file name if it is the only one.")
    ],
    class_name: Annotated[str, typer.Argument(metavar="CLASS", help="Name of the class.")],
    state: Annotated[StateName, typer.Argument(help="Is it on the image?")],
    annotator: Annotated[str | None, typer.Option(help="Who decides [default: your login name].")] = None,
) -> None:
    """Give one image one label."""
    from annotator.store import classes, decisions, images
    from annotator.store.database import Database

    db = Database(project)
    image_found, class_ = images.find_image(db, image), classes.find_class(db, class_name)
    decision = Decision(
        str(uuid.uuid4()),
        "label",
        annotator or login(),
        "click",
        image_id=image_found.id,
        class_id=class_.id,
        state=STATES[state],
    )
    decisions.decide(db, [decision])
    print(f"{printable(image_found.name)}: {printable(class_.name)} {state}")


@commands.command(
    epilog=examples("annotator undo birds", "annotator undo birds --annotator Ann", "annotator undo birds --anyone")
)
def undo(
    project: Project,
    annotator: Annotated[str | None, typer.Option(help="Who takes it back [default: your login name].")] = None,
    anyone: Annotated[bool, typer.Option("--anyone", help="Also what other people decided.")] = False,
) -> None:
    """Take your newest decision back (a whole grid as one); again for the one before it."""
    from annotator.store import decisions
    from annotator.store.database import Database

    name = annotator or login()
    for row in decisions.undo(Database(project), None if anyone else name, by=name):
        state = next((name for name, value in STATES.items() if value == row["state"]), row["action"])
        print(f"undone: {printable(row['image'])}: {row['class'] or ''} {state} (by {printable(row['annotator'])})")


def login() -> str:
    """The login name, or "somebody" where the machine has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
