"""The command that shows a person's times."""

from typing import Annotated

import typer

from annotator.cli.options import AsJson, Project, examples
from annotator.cli.printing import print_result, print_table, printable
from annotator.shares import counted

commands = typer.Typer(rich_markup_mode=None)


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
