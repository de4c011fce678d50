"""The command that shows the agreement between annotators."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from annotator.cli.options import AsJson, ProjectArgument, format_examples
from annotator.cli.printing import escape_unprintable, print_result, print_table, show_progress
from annotator.humanize import format_count

if TYPE_CHECKING:
    from spmll.statistics.agreement_coefficients import Estimate

DEFAULT_PAIRS_SHOWN = 20

commands = typer.Typer(rich_markup_mode=None)


@commands.command(
    epilog=format_examples("annotator agreement birds", "annotator agreement birds --pairs 100 --csv agreement.csv")
)
def agreement(
    project: ProjectArgument,
    pairs: Annotated[int, typer.Option(help="Pairs of people in the table.", min=1)] = DEFAULT_PAIRS_SHOWN,
    to: Annotated[
        Path | None,
        typer.Option("--csv", help="Write all figures to this file: by class, pair, class and pair, and week."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how often annotators gave the same answer to the same question, with 95% intervals."""
    from annotator.exchange.files.csv_cells import format_csv
    from annotator.exchange.files.text_output import open_text_output
    from annotator.quality.annotator_agreement import as_rows, compute_agreement
    from annotator.store.database.database import Database

    with show_progress("comparing answers") as note:
        measured = compute_agreement(Database(project), note)
    if to is not None:
        with open_text_output(to, overwrite=True) as file:
            file.write(format_csv(as_rows(measured)))

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
            (
                escape_unprintable(row.name),
                f"{row.cells:,}",
                f"{row.differ:,}",
                *_format_percent(row.raw),
                *_format_number(row.alpha),
            )
            for row in (*measured.classes, measured.overall)
        ]
        print_table(titles, rows)
        print()
        titles = ("people", "answered both", "differ", "same answer", "95 %", "kappa", "95 %")
        rows = [
            (
                escape_unprintable(f"{row.first}, {row.second}"),
                f"{row.cells:,}",
                f"{row.differ:,}",
                *_format_percent(row.raw),
                *_format_number(row.kappa),
            )
            for row in measured.pairs[:pairs]
        ]
        print_table(titles, rows)
        if len(measured.pairs) > pairs:
            print(f"{format_count(len(measured.pairs) - pairs, 'more pair')}: --pairs {len(measured.pairs)}")
        if len(measured.weeks) > 1:
            print()
            rows = [
                (row.monday, f"{row.cells:,}", f"{row.differ:,}", *_format_percent(row.raw), *_format_number(row.alpha))
                for row in measured.weeks
            ]
            print_table(("week of", "answered twice", "differ", "same answer", "95 %", "alpha", "95 %"), rows)
        print(
            "\nEach person's first answer counts, if they saw nobody else's. alpha is Krippendorff's, kappa Cohen's: 1"
            " is\nfull agreement, 0 what chance would give, - not measured."
        )

    print_result(measured.as_json(), as_json, text)


def _format_percent(figure: "Estimate") -> tuple[str, str]:
    if math.isnan(figure.value):
        return "-", ""
    return f"{100 * figure.value:.1f} %", f"{100 * figure.low:.1f} to {100 * figure.high:.1f}"


def _format_number(figure: "Estimate") -> tuple[str, str]:
    return ("-", "") if math.isnan(figure.value) else (f"{figure.value:.2f}", f"{figure.low:.2f} to {figure.high:.2f}")
