"""The command that shows how well people agree."""

import math
from pathlib import Path
from typing import Annotated

import typer

from annotator.cli.options import AsJson, Project, examples
from annotator.cli.printing import print_result, print_table, printable, progress
from annotator.shares import counted
from models.statistics.agreement import Estimate

PAIRS_SHOWN = 20

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=examples("annotator agreement birds", "annotator agreement birds --pairs 100 --csv agreement.csv")
)
def agreement(
    project: Project,
    pairs: Annotated[int, typer.Option(help="Pairs of people in the table.", min=1)] = PAIRS_SHOWN,
    to: Annotated[
        Path | None,
        typer.Option("--csv", help="Write all figures to this file: by class, pair, class and pair, and week."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how often people who answered the same question gave the same answer, with 95 % intervals."""
    from annotator.exchange.files.text_cells import as_csv
    from annotator.quality.agreement import agreement as measure
    from annotator.quality.agreement import as_rows
    from annotator.store.database.database import Database

    with progress("comparing answers") as note:
        measured = measure(Database(project), note)
    if to is not None:
        to.write_text(as_csv(as_rows(measured)), encoding="utf-8", newline="")

    def text() -> None:
        if not measured.overall.cells:
            print(
                "No question was answered by two people who did not see each other's answer: "
                "there is nothing to compare."
            )
            print("Let two people answer some images, blind to each other: annotator assign overlap PROJECT --share 10")
            return
        titles = ("class", "answered twice", "differ", "same answer", "95 %", "alpha", "95 %")
        rows = [
            (printable(row.name), f"{row.cells:,}", f"{row.differ:,}", *_percent(row.raw), *_number(row.alpha))
            for row in (*measured.classes, measured.overall)
        ]
        print_table(titles, rows)
        print()
        titles = ("people", "answered both", "differ", "same answer", "95 %", "kappa", "95 %")
        rows = [
            (
                printable(f"{row.first}, {row.second}"),
                f"{row.cells:,}",
                f"{row.differ:,}",
                *_percent(row.raw),
                *_number(row.kappa),
            )
            for row in measured.pairs[:pairs]
        ]
        print_table(titles, rows)
        if len(measured.pairs) > pairs:
            print(f"{counted(len(measured.pairs) - pairs, 'more pair')}: --pairs {len(measured.pairs)}")
        if len(measured.weeks) > 1:
            print()
            rows = [
                (row.monday, f"{row.cells:,}", f"{row.differ:,}", *_percent(row.raw), *_number(row.alpha))
                for row in measured.weeks
            ]
            print_table(("week of", "answered twice", "differ", "same answer", "95 %", "alpha", "95 %"), rows)
        print(
            "\nEach person's first answer counts, if they saw nobody else's. alpha is Krippendorff's, kappa Cohen's: 1"
            " is\nfull agreement, 0 what chance would give, - not measured."
        )

    print_result(measured.as_json(), as_json, text)


def _percent(figure: Estimate) -> tuple[str, str]:
    if math.isnan(figure.value):
        return "-", ""
    return f"{100 * figure.value:.1f} %", f"{100 * figure.low:.1f} to {100 * figure.high:.1f}"


def _number(figure: Estimate) -> tuple[str, str]:
    return ("-", "") if math.isnan(figure.value) else (f"{figure.value:.2f}", f"{figure.low:.2f} to {figure.high:.2f}")
