"""The command that shows how each person answers."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotator.cli.options import AsJson, Project, examples
from annotator.cli.printing import print_table, printable, progress
from models.statistics.agreement import Estimate

if TYPE_CHECKING:
    from annotator.quality.people import Person

commands = typer.Typer(rich_markup_mode=None)


@commands.command(epilog=examples("annotator people birds", "annotator people birds --json"))
def people(
    project: Project,
    to: Annotated[
        Path | None, typer.Option("--csv", help="Write a row for each person and class to this file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show each person's answers, pace, agreement, and estimated error rates by class, with 95 % intervals."""
    from annotator.quality.people import people as measure
    from annotator.store.database import Database

    with progress("comparing answers") as note:
        measured = measure(Database(project), note)
    if to is not None:
        _write(measured, to)
    if as_json:
        print(json.dumps([person.as_json() for person in measured]))
        return
    if not measured:
        print("Nobody has answered yet.")
        return
    rows = [
        (
            printable(person.name),
            f"{person.answers:,}",
            "-" if person.seconds is None else f"{person.seconds:.1f}",
            f"{person.compared:,}",
            _percent(person.same) if person.compared else "-",
            f"{person.changed:,} of {person.shared:,}",
        )
        for person in measured
    ]
    print_table(("person", "answers", "seconds a click", "compared", "same answer", "changed by others"), rows)
    if not any(person.classes for person in measured):
        print("\nNo class of any image was answered by two people yet, so nothing says how often anybody errs.")
        return
    print()
    rows = [
        (printable(person.name), printable(of.name), _percent(of.sensitivity), _percent(of.specificity))
        for person in measured
        for of in person.classes
    ]
    print_table(("person", "class", "sensitivity", "specificity"), rows)
    print(
        "\nEstimates from first answers to what others answered, too, with 95 % intervals. Sensitivity: of what is"
        "\nthere, how much the person finds; specificity: of what is not there, how much the person rejects. They"
        "\nassume that people err independently and are careful on the whole: for careless people, and for what"
        "\neverybody overlooks, they are too high and too sure. Between two people alone, the answers cannot tell"
        "\nwhich of them errs."
    )


def _percent(figure: Estimate) -> str:
    if math.isnan(figure.value):
        return "too few answers"
    return f"{100 * figure.value:.1f} % ({100 * figure.low:.1f} to {100 * figure.high:.1f})"


def _write(measured: "list[Person]", to: Path) -> None:
    from annotator.exchange.files.text_cells import Rows

    with to.open("w", encoding="utf-8", newline="") as file:
        rows = Rows(file)
        ends = [f"{rate}{end}" for rate in ("sensitivity", "specificity") for end in ("", "_low", "_high")]
        rows.row(["person", "class", "present", "absent", *ends])
        for person in measured:
            for of in person.classes:
                figures = [(rate.value, rate.low, rate.high) for rate in (of.sensitivity, of.specificity)]
                cells = ["" if math.isnan(value) else value for rate in figures for value in rate]
                rows.row([person.name, of.name, of.present, of.absent, *cells])
