"""The commands that list: suggestions, the state of a project, the methods."""

import inspect
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from annotator.cli import printing
from annotator.cli.options import AsJson, Project, examples
from models import catalogue
from models.catalogue import Entry

commands = typer.Typer(rich_markup_mode=None)


@commands.command(epilog=examples("annotator suggest birds --limit 20", "annotator suggest birds --class heron --json"))
def suggest(
    project: Project,
    class_name: Annotated[str | None, typer.Option("--class", help="Only this class.")] = None,
    limit: Annotated[int, typer.Option(help="Show at most so many.", min=1)] = 50,
    as_json: AsJson = False,
) -> None:
    """List the labels that are probably missing, likeliest first."""
    from annotator.snapshot.suggestions import missing_positives
    from annotator.store.classes import classes
    from annotator.store.database.database import Database
    from annotator.store.images import images
    from annotator.store.upkeep import array_health

    db = Database(project)
    for damage in array_health.of_suggestions(db, thorough=False):
        advice = f"See: annotator doctor {printing.printable(str(project))}"
        sys.stderr.write(f"{printing.printable(damage.what)}. {damage.lost} {advice}\n")
    class_id = classes.find_class(db, class_name).id if class_name else None
    likely = missing_positives(db, class_id, limit)
    names = {class_.id: class_.name for class_ in classes.all_classes(db)}
    files = images.images(db, {suggestion.image_id for suggestion in likely})
    rows = [
        {
            "image": files[suggestion.image_id].name,
            "class": names[suggestion.class_id],
            "probability": None if suggestion.probability is None else round(suggestion.probability, 4),
            "run": suggestion.run_id,
        }
        for suggestion in likely
    ]

    def text() -> None:
        for row in rows:
            print(f"{row['probability']:.3f}  {row['class']:<20}  {printing.printable(row['image'])}")
        if not rows:
            print(f"No suggestions yet. Label some images, then run: annotator worker {project} --once")

    printing.print_result(rows, as_json, text)


@commands.command(epilog=examples("annotator status birds", "annotator status birds --json"))
def status(project: Project, as_json: AsJson = False) -> None:
    """Show the progress, what the worker does, and all problems."""
    from annotator.snapshot.status import status as read
    from annotator.store.database.database import Database
    from annotator.store.images import images

    db = Database(project)
    with db.reading():  # files with a problem may be a million: they are read while they are printed
        state = read(db, with_files=False)
        if not as_json:
            return printing.print_status(state, images.each_kept_out(db), images.each_missing(db))
        state["files_kept_out_by_reason"] = images.kept_out_by_reason(db)
        printing.print_json(
            state,
            files_kept_out=({"file": file.path, "reason": file.reason} for file in images.each_kept_out(db)),
            images_missing=({"image": image.path, "reason": image.reason} for image in images.each_missing(db)),
        )
    return None


@commands.command(epilog=examples("annotator history birds site1/0118.jpg", "annotator history birds 0118.jpg --json"))
def history(
    project: Project,
    image: Annotated[str, typer.Argument(help="The image, by name or path.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Show who decided what about an image and when, what was undone by whom, its flags and comments."""
    from annotator.store.database.database import Database
    from annotator.store.gallery.image_history import history_of
    from annotator.store.images.images import find_image

    db = Database(project)
    events = history_of(db, find_image(db, image).id)
    printing.print_result([asdict(event) for event in events], as_json, lambda: printing.print_history(events))


@commands.command(epilog=examples("annotator methods", "annotator methods em_apl", "annotator methods --json"))
def methods(
    name: Annotated[str | None, typer.Argument(help="Show this method in detail.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """List the training methods: paper, what each assumes about unanswered labels, what it needs, its parameters.

    Of each it says whether the figures of its paper were reproduced with this program; with NAME, also why not, and
    what the paper leaves open.
    """
    from annotator.store.networks import configuration

    if name is None:
        listed = [asdict_of(entry) for entry in catalogue.methods().values()]
        printing.print_result(listed, as_json, lambda: printing.print_methods(listed, catalogue.default_method()))
        return
    method = with_details(configuration.about(name))
    printing.print_result(method, as_json, lambda: printing.print_method(method))


@commands.command(epilog=examples("annotator formats", "annotator formats --json"))
def formats(as_json: AsJson = False) -> None:
    """List the formats that are read and written, those of plug-ins too."""
    from annotator.exchange.formats import all_formats

    rows = [
        {"name": name, "reads": bool(format_.read), "writes": bool(format_.write), "about": format_.about}
        for name, format_ in all_formats().items()
    ]

    def text() -> None:
        for row in rows:
            ways = " and ".join(way for way in ("reads", "writes") if row[way])
            print(printing.printable(f"{row['name']:<15}  {ways:<16}  {row['about']}"))

    printing.print_result(rows, as_json, text)


def asdict_of(entry: Entry) -> dict:
    """Return what the table of methods says of one as JSON values."""
    keys = ("name", "title", "paper", "year", "url", "assumes", "full_labels", "needs_in_words", "reproduced")
    said = {key: getattr(entry, key) for key in keys} | {"needs": list(entry.all_needs)}
    return said | {"open_points": list(entry.open_points), "parameters": entry.defaults}


def with_details(entry: Entry) -> dict:
    """Return a method as JSON values, with everything that its class declares; loads torch."""
    from models.methods import METHODS

    method = METHODS[entry.name]
    return asdict_of(entry) | {
        "about": inspect.getdoc(method) or "",
        "about_parameters": about_parameters(method),
        "reads": method.reads,
        "views": method.views,
        "epochs": method.epochs,
        "lr": method.lr,
        "threshold": method.threshold,
        "tunable": {key: list(values) for key, values in method.tunable.items()},
        "published": {key: asdict(values) for key, values in method.published.items()},
    }


def about_parameters(method: type) -> str:
    """Return what the class says of its parameters in `__init__`, or in the dataclass above it that declares them."""
    if "__dataclass_fields__" not in dir(method):
        return inspect.getdoc(method.__init__) or ""
    declares = next(base for base in method.__mro__ if "__dataclass_fields__" in vars(base))
    return "" if declares is method else inspect.getdoc(declares) or ""
