"""The commands that list suggestions, project state, image history, methods and formats."""

import inspect
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from annotator.cli import printing
from annotator.cli.options import AsJson, ProjectArgument, format_examples
from spmll import catalog
from spmll.catalog import MethodEntry

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=format_examples("annotator suggest birds --limit 20", "annotator suggest birds --class heron --json")
)
def suggest(
    project: ProjectArgument,
    class_name: Annotated[str | None, typer.Option("--class", help="Only this class.")] = None,
    limit: Annotated[int, typer.Option(help="Show at most so many.", min=1)] = 50,
    as_json: AsJson = False,
) -> None:
    """List the labels that are probably missing, most probable first."""
    from annotator.snapshot.suggestions import find_missing_positives
    from annotator.store.classes import classes
    from annotator.store.database.database import Database
    from annotator.store.images import images
    from annotator.store.upkeep import array_health

    db = Database(project)
    for damage in array_health.find_suggestion_damages(db, thorough=False):
        advice = f"See: annotator doctor {printing.escape_unprintable(str(project))}"
        sys.stderr.write(f"{printing.escape_unprintable(damage.what)}. {damage.lost} {advice}\n")
    class_id = classes.find_class(db, class_name).id if class_name else None
    likely = find_missing_positives(db, class_id, limit)
    names = {class_.id: class_.name for class_ in classes.load_active_classes(db)}
    files = images.load_images(db, {suggestion.image_id for suggestion in likely})
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
            print(f"{row['probability']:.3f}  {row['class']:<20}  {printing.escape_unprintable(row['image'])}")
        if not rows:
            print(f"No suggestions yet. Label some images, then run: annotator worker {project} --once")

    printing.print_result(rows, as_json, text)


@commands.command(epilog=format_examples("annotator status birds", "annotator status birds --json"))
def status(project: ProjectArgument, as_json: AsJson = False) -> None:
    """Show the progress, the worker's state, and all problems."""
    from annotator.snapshot.project_status import collect_status
    from annotator.store.database.database import Database
    from annotator.store.images import images

    db = Database(project)
    with db.reading():  # files with a problem may be a million: they are read while they are printed
        state = collect_status(db, with_files=False)
        if not as_json:
            return printing.print_status(state, images.iterate_rejected_files(db), images.iterate_missing_images(db))
        state["files_kept_out_by_reason"] = images.count_rejected_by_reason(db)
        printing.print_json(
            state,
            files_kept_out=({"file": file.path, "reason": file.reason} for file in images.iterate_rejected_files(db)),
            images_missing=(
                {"image": image.path, "reason": image.reason} for image in images.iterate_missing_images(db)
            ),
        )
    return None


@commands.command(
    epilog=format_examples("annotator history birds site1/0118.jpg", "annotator history birds 0118.jpg --json")
)
def history(
    project: ProjectArgument,
    image: Annotated[str, typer.Argument(help="The image, by name or path.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Show an image's labels, flags and comments with authors and times, and what was undone."""
    from annotator.store.database.database import Database
    from annotator.store.gallery.image_history import load_image_history
    from annotator.store.images.images import find_image

    db = Database(project)
    events = load_image_history(db, find_image(db, image).id)
    printing.print_result([asdict(event) for event in events], as_json, lambda: printing.print_history(events))


@commands.command(epilog=format_examples("annotator methods", "annotator methods em_apl", "annotator methods --json"))
def methods(
    name: Annotated[str | None, typer.Argument(help="Show this method in detail.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """List the training methods: paper, assumption about unanswered labels, requirements, parameters.

    The list shows whether the figures of a method's paper were reproduced with this program. With NAME it also shows
    why not, and what the paper leaves open.
    """
    from annotator.store.networks import configuration

    if name is None:
        listed = [build_method_json(entry) for entry in catalog.load_methods().values()]
        printing.print_result(
            listed, as_json, lambda: printing.print_methods(listed, catalog.get_default_method_name())
        )
        return
    method = build_method_details(configuration.get_method_entry(name))
    printing.print_result(method, as_json, lambda: printing.print_method(method))


@commands.command(epilog=format_examples("annotator formats", "annotator formats --json"))
def formats(as_json: AsJson = False) -> None:
    """List the import and export formats, including those of plug-ins."""
    from annotator.exchange.formats import all_formats

    rows = [
        {"name": name, "reads": bool(format_.read), "writes": bool(format_.write), "about": format_.about}
        for name, format_ in all_formats().items()
    ]

    def text() -> None:
        for row in rows:
            ways = " and ".join(way for way in ("reads", "writes") if row[way])
            print(printing.escape_unprintable(f"{row['name']:<15}  {ways:<16}  {row['about']}"))

    printing.print_result(rows, as_json, text)


def build_method_json(entry: MethodEntry) -> dict:
    """Return a method's entry in the method table as JSON values."""
    keys = ("name", "title", "paper", "year", "url", "assumes", "full_labels", "reproduced")
    return {key: getattr(entry, key) for key in keys} | {
        "needs": list(entry.all_needs),
        "needs_in_words": entry.needs_description,
        "open_points": list(entry.open_points),
        "parameters": entry.defaults,
    }


def build_method_details(entry: MethodEntry) -> dict:
    """Return a method's table entry and all declarations of its class, as JSON values. Loads torch."""
    from spmll.methods import METHODS

    method = METHODS[entry.name]
    return build_method_json(entry) | {
        "about": inspect.getdoc(method) or "",
        "about_parameters": read_parameter_docs(method),
        "reads": method.reads,
        "views": method.views,
        "epochs": method.epochs,
        "lr": method.lr,
        "threshold": method.threshold,
        "tunable": {key: list(values) for key, values in method.tunable.items()},
        "published": {key: asdict(values) for key, values in method.published.items()},
    }


def read_parameter_docs(method: type) -> str:
    """Return the docstring that describes a method's parameters: that of `__init__`, or of its base dataclass."""
    if "__dataclass_fields__" not in dir(method):
        return inspect.getdoc(method.__init__) or ""
    declares = next(base for base in method.__mro__ if "__dataclass_fields__" in vars(base))
    return "" if declares is method else inspect.getdoc(declares) or ""
