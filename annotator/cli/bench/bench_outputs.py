"""Outputs of `annotator bench`: a report on the terminal, JSON, and the files named by `--plot` and `--markdown`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from annotator.benchmark.reports import Report, check_folder, write_markdown
from annotator.cli.printing import print_table


def check_output_files(plot: Path | None = None, markdown: Path | None = None) -> None:
    """Check before hours of work that these files can be written. Raises AnnotatorError if not."""
    if plot:
        from annotator.benchmark.plots import check_ending

        check_ending(plot)
    if markdown:
        check_folder(markdown)


def output_result(
    result: dict[str, Any],
    build_report: Callable[[dict[str, Any]], Report],
    as_json: bool,
    markdown: Path | None = None,
) -> None:
    """Write the report to a Markdown file if one is named, and print the result as JSON or as a report."""
    if markdown:
        write_markdown(build_report(result), markdown)
    if as_json:
        print(json.dumps(result))
    else:
        print_report(build_report(result))


def print_report(report: Report) -> None:
    """Print a report: its description, its tables, and below them how to read them."""
    print("\n".join(report.description))
    for table in report.tables:
        if table.title:
            print(f"\n{table.title}")
        print_table(table.headings, table.list_plain_rows())
    if report.summary:
        print()
        print_table(report.summary.headings, report.summary.list_plain_rows())
    if report.explanations:
        gap = "\n" if report.has_titles else ""
        print(gap + f"\n{gap}".join(report.explanations))
    if report.remarks:
        print("\n".join(report.remarks))
