"""The report of a benchmark: the texts and tables that a terminal prints and a Markdown file keeps.

`build_..._report` of each measuring module builds one, and annotator/cli/bench/bench_outputs.py prints it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError

CODE_PATTERN = re.compile("`([^`]+)`")


@dataclass(frozen=True)
class ReportTable:
    """A table whose cells are text."""

    headings: Sequence[str]
    # text of the cells. Code is in backticks, which a terminal does not show
    rows: Sequence[Sequence[str]]
    title: str = ""

    def list_plain_rows(self) -> list[list[str]]:
        return [[CODE_PATTERN.sub(r"\1", cell) for cell in row] for row in self.rows]


@dataclass(frozen=True)
class Report:
    """The result of a benchmark in words."""

    description: Sequence[str]
    tables: Sequence[ReportTable]
    # paragraphs on reading the tables: below them on a terminal, above in Markdown
    explanations: Sequence[str] = ()
    remarks: Sequence[str] = ()
    # totals of all tables: last on a terminal, first in Markdown
    summary: ReportTable | None = None
    # command line, for Markdown
    command: str = ""
    # command lines that repeat single rows, for Markdown
    row_commands: Sequence[str] = ()

    @property
    def has_titles(self) -> bool:
        """Return whether any table has a title, so that blank lines separate the parts on a terminal."""
        return any(table.title for table in self.tables)


def format_markdown(report: Report) -> str:
    tables = [report.summary, *report.tables] if report.summary else report.tables
    parts = [f"`{report.command}`", "\n".join(report.description), *report.explanations]
    parts += [format_markdown_table(table) for table in tables]
    if report.remarks:
        parts.append("\n".join(report.remarks))
    if report.row_commands:
        parts.append("\n".join(["```", *report.row_commands, "```"]))
    return "\n\n".join(parts) + "\n"


def format_markdown_table(table: ReportTable) -> str:
    """Return a table in Markdown, below its title if it has one."""
    lines = [format_markdown_line(table.headings), "|" + "---|" * len(table.headings)]
    lines += [format_markdown_line(row) for row in table.rows]
    return "\n".join([f"**{table.title}**", "", *lines] if table.title else lines)


def format_markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def write_markdown(report: Report, path: Path) -> None:
    path.write_text(format_markdown(report), encoding="utf-8")


def check_folder(path: Path) -> None:
    """Check before hours of work that the folder of a file to write exists. Raises AnnotatorError if not."""
    if not path.resolve().parent.is_dir():
        raise AnnotatorError(f"{path} cannot be written: there is no folder {path.resolve().parent}.")
