"""The commands for predictions from class names: on or off, texts of the classes, and measured gain."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from annotator.cli.bench import bench_inputs
from annotator.cli.options import AsJson, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, print_bench, print_result, print_table, show_progress
from annotator.errors import AnnotatorError, combine_problems

commands = typer.Typer(rich_markup_mode=None)
SEPARATOR = "|"  # in no name of a class


@commands.command(
    epilog=format_examples(
        "annotator names birds",
        'annotator names birds --text "heron=grey heron|heron standing in water"',
        'annotator names birds --text "heron="   (its name, synonyms and note again)',
        'annotator names birds --template "a photo of a {}." --template "an aerial photo of a {}."',
        "annotator names birds --now --json",
        "annotator names birds --off",
    )
)
def names(
    project: ProjectArgument,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", metavar="CLASS=TEXT|TEXT", help="Texts that stand for a class; none: the usual ones."),
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option("--template", metavar="TEXT", help='What all texts are put into, at {}; "": the usual ones.'),
    ] = None,
    on: Annotated[bool | None, typer.Option("--on/--off", help="Whether classes are guessed from their names.")] = None,
    now: Annotated[bool, typer.Option("--now", help="Guess now, without the app.")] = False,
    as_json: AsJson = False,
) -> None:
    """Predict from the class names alone which images show a class, with a network that understands text.

    The predictions form a source called 'class names'. `annotator predictions` shows the weight that it has earned by
    its agreement with answers. `annotator backbones` lists networks that understand text.
    """
    from annotator.store.classes import name_texts
    from annotator.store.database.database import Database

    db = Database(project)
    if text or template is not None or on is not None or now:
        db.check_writable()
    if text:
        name_texts.set_texts(db, _parse_texts(db, text))
    if template is not None:
        name_texts.set_templates(db, template)
    if on is not None and on != name_texts.is_on(db):
        name_texts.set_enabled(db, on)
    waits = False
    if now:
        from annotator.worker.process import guess_from_names

        if name_texts.build_wording(db) is None:
            raise AnnotatorError(name_texts.describe_state(db))
        with show_progress("Comparing names with images") as show:
            waits = not guess_from_names(project, show)
        if error := name_texts.load_newest_guess(db).error:
            raise AnnotatorError(f"Classes could not be guessed from their names: {error}")

    def in_words() -> None:
        _print_names(db)
        if waits:
            print("The worker is at work on this project, and guesses by itself.")

    print_result(_build_facts(db), as_json, in_words)


@bench_inputs.commands.command(
    "names",
    epilog=format_examples(
        "annotator bench names --images photos --truth truth.csv --backbone open_clip:PE-Core-T-16-384/meta",
        "annotator bench names --images photos --truth t.csv --backbone open_clip:local-dir:clip --no-effort --json",
    ),
)
def bench_names(
    images: Annotated[Path, typer.Option(help="Folder of images.", show_default=False)],
    truth: Annotated[Path, typer.Option(help="CSV image,labels with the full truth.", show_default=False)],
    backbone: Annotated[str, typer.Option(metavar="NAME", help="A network that knows texts.", show_default=False)],
    effort: Annotated[bool, typer.Option(help="Also simulate a person at work, with and without names.")] = True,
    seed: Annotated[int, typer.Option(help="Random seed of the clicks.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure the gain from class names: average precision on unlabeled images and human effort, with and without them.

    Measured before any answer, from whole images and also from patches, then with one label per image, then over the
    actions of a simulated person until 95% of the labels are found.
    """
    from annotator.benchmark.name_guess_gain import measure

    print_bench(bench_inputs.run_benchmark(measure, images, truth, backbone, effort=effort, seed=seed), as_json)


def _parse_texts(db: Any, words: list[str]) -> dict[int, list[str]]:
    """Return texts by class id from `--text` values. Raises AnnotatorError listing all problems."""
    from annotator.store.classes import classes

    changes: dict[int, list[str]] = {}
    wrong: list[str] = []
    for word in words:
        name, equals, text = word.partition("=")
        try:
            if not equals:
                wrong.append(f"{word!r} is not of the form CLASS=TEXT|TEXT")
            else:
                changes[classes.find_class(db, name.strip()).id] = text.split(SEPARATOR)
        except AnnotatorError as error:
            wrong.append(str(error))
    if wrong:
        raise combine_problems("--text cannot be used, and nothing was changed:", wrong)
    return changes


def _build_facts(db: Any) -> dict[str, Any]:
    from annotator.exchange.predictions.known_sources import load_known_sources
    from annotator.store.classes import classes, name_texts
    from annotator.store.runs.prediction_sources import CLASS_NAMES_SOURCE

    chosen, known = name_texts.load_texts(db), classes.load_ordered_classes(db)
    weights = next((dict(one.weights) for one in load_known_sources(db) if one.source.name == CLASS_NAMES_SOURCE), {})
    return {
        "on": name_texts.is_on(db),
        "network": name_texts.get_text_network(db),
        "state": name_texts.describe_state(db),
        "guessed": asdict(name_texts.load_newest_guess(db)),
        "templates": list(name_texts.load_templates(db)),
        "classes": [
            {
                "class": one.name,
                "texts": list(chosen.get(one.id) or name_texts.get_default_texts(one)),
                "is_chosen": one.id in chosen,
                "weight": weights.get(one.name),
            }
            for one in known
        ],
    }


def _print_names(db: Any) -> None:
    facts = _build_facts(db)
    print(escape_unprintable(facts["state"]))
    print_table(
        ("class", "texts", "weight learned"),
        [
            (
                escape_unprintable(row["class"]),
                escape_unprintable(f" {SEPARATOR} ".join(row["texts"])),
                "" if row["weight"] is None else f"{row['weight']:+.2f}",
            )
            for row in facts["classes"]
        ],
    )
    print("Templates:")
    for text in facts["templates"]:
        print(f"  {escape_unprintable(text)}")
