"""The commands that show each annotator's answers and speed."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotator.cli.options import AsJson, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, print_result, print_table, show_progress
from annotator.humanize import format_count

if TYPE_CHECKING:
    from annotator.quality.annotator_figures import AnnotatorFigures, AnswerFigures
    from spmll.statistics.agreement_coefficients import Estimate

commands = typer.Typer(rich_markup_mode=None)


@commands.command(epilog=format_examples("annotator people birds", "annotator people birds --csv people.csv --json"))
def people(
    project: ProjectArgument,
    to: Annotated[
        Path | None,
        typer.Option("--csv", help="Write all figures of each person to this file: in all, by class and by week."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show each person's answers, pace, agreement, and labels changed by others, with 95% intervals.

    All figures are by class and by week. By class it also estimates how often they err.
    """
    from annotator.exchange.files.csv_cells import format_csv
    from annotator.exchange.files.text_output import open_text_output
    from annotator.quality.annotator_figures import as_rows, compute_annotator_figures
    from annotator.store.database.database import Database

    with show_progress("comparing answers") as note:
        measured = compute_annotator_figures(Database(project), note)
    if to is not None:
        with open_text_output(to, overwrite=True) as file:
            file.write(format_csv(as_rows(measured)))

    def text() -> None:
        if not measured:
            print("Nobody has answered yet.")
            return
        rows = [
            (escape_unprintable(person.name), f"{person.answers:,}", *_format_figures(person)) for person in measured
        ]
        print_table(("person", "answers", "seconds a click", "same answer", "changed by others"), rows)
        _print_by_week(measured)
        if not any(of.compared for person in measured for of in person.classes):
            print(
                "\nNo question was answered by two people who did not see each other's answer: nothing says how often "
                "anybody errs."
            )
        _print_by_class(measured)

    print_result([person.as_json() for person in measured], as_json, text)


def _print_by_week(measured: "list[AnnotatorFigures]") -> None:
    rows = [
        (escape_unprintable(person.name), week.monday, *_format_figures(week))
        for person in measured
        for week in person.weeks
        if len(person.weeks) > 1
    ]
    if rows:
        print()
        print_table(("person", "week of", "seconds a click", "same answer", "changed by others"), rows)


def _print_by_class(measured: "list[AnnotatorFigures]") -> None:
    rows = [
        (
            escape_unprintable(person.name),
            escape_unprintable(of.name),
            *_format_figures(of),
            _format_percent(of.sensitivity) if of.compared else "-",
            _format_percent(of.specificity) if of.compared else "-",
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


def _format_figures(figures: "AnswerFigures") -> tuple[str, str, str]:
    """Return three table cells: seconds per answer, agreement with others, and answers changed by others."""
    seconds = "too few answers" if math.isnan(figures.seconds.low) else _format_number(figures.seconds)
    return (
        seconds if figures.timed else "-",
        f"{_format_percent(figures.same)} of {figures.compared:,}" if figures.compared else "-",
        f"{figures.changes_description}, {_format_percent(figures.changed_share)}"
        if figures.shared
        else figures.changes_description,
    )


def _format_number(figure: "Estimate") -> str:
    return f"{figure.value:.1f} ({figure.low:.1f} to {figure.high:.1f})"


def _format_percent(figure: "Estimate") -> str:
    if math.isnan(figure.value):
        return "too few answers"
    return f"{100 * figure.value:.1f} % ({100 * figure.low:.1f} to {100 * figure.high:.1f})"


@commands.command(epilog=format_examples("annotator pace birds", "annotator pace birds --annotator Ann --json"))
def pace(
    project: ProjectArgument,
    annotator: Annotated[str | None, typer.Option(help="Whose times [default: your login name].")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the seconds that a person takes for each part of the work, with 95% intervals. Autopilot plans with them."""
    from annotator.settings import get_login_name
    from annotator.snapshot.time_report import load_time_report
    from annotator.store.database.database import Database
    from annotator.store.labels import project_counts

    db, name = Database(project), annotator or get_login_name()
    report = load_time_report(db, name)

    def text() -> None:
        measured = sum(report.answers.values())
        print(
            f"{escape_unprintable(name)}: {format_count(measured, 'timed answer')}, {report.tested:,} of them in the "
            "speed test.\n"
        )
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
            print(
                f"Until {escape_unprintable(name)} has answered, Autopilot takes the times of all annotators together."
            )
        if not measured and (others := project_counts.list_annotators(db)):
            print(f"Annotators of this project: {escape_unprintable(', '.join(others))}. Choose one with --annotator.")

    print_result(report.as_json(), as_json, text)
