"""The commands that show how each person answers, and how fast."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotator.cli.options import AsJson, Project, examples
from annotator.cli.printing import print_result, print_table, printable, progress
from annotator.shares import counted
from models.statistics.agreement import Estimate

if TYPE_CHECKING:
    from annotator.quality.people import Figures, Person

commands = typer.Typer(rich_markup_mode=None)


@commands.command(epilog=examples("annotator people birds", "annotator people birds --csv people.csv --json"))
def people(
    project: Project,
    to: Annotated[
        Path | None,
        typer.Option("--csv", help="Write all figures of each person to this file: in all, by class and by week."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show each person's answers, pace, agreement, and what others changed, by class and by week, with 95 % intervals.

    By class it also estimates how often they err.
    """
    from annotator.exchange.files.text_cells import as_csv
    from annotator.quality.people import as_rows
    from annotator.quality.people import people as measure
    from annotator.store.database.database import Database

    with progress("comparing answers") as note:
        measured = measure(Database(project), note)
    if to is not None:
        to.write_text(as_csv(as_rows(measured)), encoding="utf-8", newline="")

    def text() -> None:
        if not measured:
            print("Nobody has answered yet.")
            return
        rows = [(printable(person.name), f"{person.answers:,}", *_figures(person)) for person in measured]
        print_table(("person", "answers", "seconds a click", "same answer", "changed by others"), rows)
        _by_week(measured)
        if not any(of.compared for person in measured for of in person.classes):
            print(
                "\nNo question was answered by two people who did not see each other's answer: nothing says how often "
                "anybody errs."
            )
        _by_class(measured)

    print_result([person.as_json() for person in measured], as_json, text)


def _by_week(measured: "list[Person]") -> None:
    rows = [
        (printable(person.name), week.monday, *_figures(week))
        for person in measured
        for week in person.weeks
        if len(person.weeks) > 1
    ]
    if rows:
        print()
        print_table(("person", "week of", "seconds a click", "same answer", "changed by others"), rows)


def _by_class(measured: "list[Person]") -> None:
    rows = [
        (
            printable(person.name),
            printable(of.name),
            *_figures(of),
            _percent(of.sensitivity) if of.compared else "-",
            _percent(of.specificity) if of.compared else "-",
        )
        for person in measured
        for of in person.classes
    ]
    if not rows:
        return
    print()
    print_table(
        ("person", "class", "seconds a grid cell", "same answer", "changed by others", "sensitivity", "specificity"),
        rows,
    )
    print(
        "\nEstimates from first answers to what others answered blind, with 95 % intervals. Seconds are medians. A"
        "\ndifference is not an error: of two who differ either may be right. Sensitivity: of what is there, how much"
        "\nthe person finds; specificity: of what is not there, how much the person rejects. They assume that people"
        "\nerr independently and are careful on the whole: for careless people, and for what everybody overlooks,"
        "\nthey are too high and too sure. Between two people alone, the answers cannot tell which of them errs."
    )


def _figures(of: "Figures") -> tuple[str, str, str]:
    """Return three cells: seconds an answer, the share of answers that agree with others, what others changed."""
    seconds = "too few answers" if math.isnan(of.seconds.low) else _number(of.seconds)
    return (
        seconds if of.timed else "-",
        f"{_percent(of.same)} of {of.compared:,}" if of.compared else "-",
        f"{of.changes_in_words}, {_percent(of.changed_share)}" if of.shared else of.changes_in_words,
    )


def _number(figure: Estimate) -> str:
    return f"{figure.value:.1f} ({figure.low:.1f} to {figure.high:.1f})"


def _percent(figure: Estimate) -> str:
    if math.isnan(figure.value):
        return "too few answers"
    return f"{100 * figure.value:.1f} % ({100 * figure.low:.1f} to {100 * figure.high:.1f})"


@commands.command(epilog=examples("annotator pace birds", "annotator pace birds --annotator Ann --json"))
def pace(
    project: Project,
    annotator: Annotated[str | None, typer.Option(help="Whose times [default: your login name].")] = None,
    as_json: AsJson = False,
) -> None:
    """Show how many seconds each part of the work takes a person, with 95 % intervals. Autopilot plans with them."""
    from annotator.settings import login
    from annotator.snapshot.time_report import time_report
    from annotator.store.database.database import Database
    from annotator.store.labels import counts as overview

    db, name = Database(project), annotator or login()
    report = time_report(db, name)

    def text() -> None:
        measured = sum(report.answers.values())
        print(f"{printable(name)}: {counted(measured, 'timed answer')}, {report.tested:,} of them in the speed test.\n")
        titles = ("seconds for", "default", "estimate", "95 % interval", "from answers", "an hour")
        rows = [
            (
                figure.about,
                f"{figure.default:.2f}",
                f"{figure.seconds:.2f}",
                f"{figure.low:.2f} to {figure.high:.2f}",
                f"{figure.answers:,}",
                "" if figure.an_hour is None else f"{figure.an_hour:,.0f}, or {figure.labels_an_hour:,.0f} labels",
            )
            for figure in (*report.parts, *report.tasks)
        ]
        print_table(titles, rows)
        print("\nAverages without pauses. What the answers cannot tell apart keeps a wide interval.")
        if not measured:
            print(f"Until {printable(name)} has answered, Autopilot takes the times of all annotators together.")
        if not measured and (others := overview.annotators(db)):
            print(f"Annotators of this project: {printable(', '.join(others))}. Choose one with --annotator.")

    print_result(report.as_json(), as_json, text)
