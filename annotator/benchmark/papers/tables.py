"""The printed tables of papers, and the comparison that repeats each figure (tables.json).

Figures without such a comparison are called open.
"""

import json
import shlex
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.measures import PLAIN_MEASURES
from annotator.benchmark.reports import format_markdown_line
from annotator.errors import AnnotatorError, did_you_mean
from spmll.single_positive_sampling import ALL_LABELS

TABLES_FILE = Path(__file__).with_name("tables.json")
# all others have the name of their field
OPTION_NAMES = {"changed": "--set", "shares": "--share", "strengths": "--salience"}


@dataclass(frozen=True)
class PaperCell:
    """One figure of a paper's table, and the options that repeat it."""

    table: str
    row: str
    # "linear", "finetune", or "lem" (LAGC's network)
    regime: str
    dataset: str
    # printed percent, None if missing or only shown in a plot
    paper: float | None
    spread: float | None
    # fields of Options that repeat it, None if it cannot be repeated
    changes: Mapping[str, Any] | None
    # the reason why it cannot be repeated, or ""
    open: str
    note: str

    def make_options(self, **others: Any) -> Options:
        """Return the options of the comparison that repeats this figure, overridden by `others`.

        Raises ValueError if it cannot be repeated.
        """
        if self.changes is None:
            raise ValueError(f"{self.table}, {self.row}, {self.regime}: {self.open}")
        return Options(**(dict(self.changes) | others))


@dataclass(frozen=True)
class PaperTable:
    """One table of a paper.

    `figure` is the key of its figures in comparison rows, `seeds` the number of trainings per mean.
    """

    name: str
    title: str
    paper: str
    figure: str
    seeds: int
    cells: tuple[PaperCell, ...]

    def select_cells(self, dataset: str, regime: str | None = None, rows: Collection[str] = ()) -> list[PaperCell]:
        """Return the figures of one data set, of one regime or some rows if given. AnnotatorError if none match."""
        names = list(dict.fromkeys(cell.row for cell in self.cells))
        kinds = (
            ("data set", [dataset], {cell.dataset for cell in self.cells}),
            ("regime", [regime] if regime else [], {cell.regime for cell in self.cells}),
            ("row", rows, names),
        )
        for noun, asked, known in kinds:
            for word in asked:
                if word not in known:
                    raise AnnotatorError(f"Table {self.name} has no {noun} {word!r}. {did_you_mean(word, known, 99)}")
        return [
            cell
            for cell in self.cells
            if cell.dataset == dataset and regime in (None, cell.regime) and (not rows or cell.row in rows)
        ]


@cache
def load_tables() -> dict[str, PaperTable]:
    content = json.loads(TABLES_FILE.read_text(encoding="utf-8"))
    return {name: _parse_table(name, table, content["regimes"]) for name, table in content["tables"].items()}


def get_table(name: str) -> PaperTable:
    if name not in load_tables():
        raise AnnotatorError(f"No table is called {name!r}. {did_you_mean(name, load_tables(), 99)}")
    return load_tables()[name]


def format_command(options: Options, dataset: str, root: str) -> str:
    """Return the command line of a comparison, with all options that differ from the defaults."""
    words = ["annotator", "bench", "methods", "--dataset", dataset, "--root", root]
    for field in fields(options):
        value = getattr(options, field.name)
        default = field.default if field.default is not MISSING else None
        if value == default:
            continue
        option = OPTION_NAMES.get(field.name, f"--{field.name.replace('_', '-')}")
        if field.name == "changed":
            words += [word for change in value for word in (option, change)]
        elif isinstance(value, bool):
            words.append(option)
        elif isinstance(value, tuple):
            words += [option, ",".join(map(str, value))]
        else:
            words += [option, "all" if value == ALL_LABELS and field.name in ("positives", "negatives") else str(value)]
    return shlex.join(words)


def format_commands() -> str:
    """Return the commands of all tables as Markdown, for docs/papers.md."""
    lines = []
    for name, table in load_tables().items():
        lines += [f"### {name}: {table.paper}, {table.title}", "", "| row | part | command |", "|---|---|---|"]
        rows = dict.fromkeys((cell.row, cell.regime) for cell in table.cells)
        for row, regime in rows:
            of_row = [cell for cell in table.cells if (cell.row, cell.regime) == (row, regime)]
            said = {cell.dataset: _format_command_or_reason(cell) for cell in of_row}
            for line in dict.fromkeys(said.values()):
                some = [dataset for dataset in said if said[dataset] == line]
                part = regime if len(some) == len(said) else f"{regime}: {', '.join(some)}"
                lines.append(format_markdown_line([row, part, line]))
        lines += [f"\n{row}: {note}" for row, note in dict.fromkeys((c.row, c.note) for c in table.cells if c.note)]
        lines.append("")
    return "\n".join(lines)


def list_tables() -> list[dict]:
    return [
        {
            "table": name,
            "paper": table.paper,
            "title": table.title,
            "figures": len(table.cells),
            "open": sum(cell.changes is None for cell in table.cells),
        }
        for name, table in load_tables().items()
    ]


def format_table_line(entry: dict) -> str:
    is_open = f", {entry['open']} of them open" if entry["open"] else ""
    return f"{entry['table']:<8} {entry['paper']}: {entry['title']}; {entry['figures']} figures{is_open}"


def _format_command_or_reason(cell: PaperCell) -> str:
    return f"open: {cell.open}" if cell.changes is None else f"`{format_command(cell.make_options(), 'SET', 'ROOT')}`"


def _parse_table(name: str, content: dict[str, Any], regimes: dict[str, dict[str, Any]]) -> PaperTable:
    figure, seeds = content["figure"], content["seeds"]
    always = {"seeds": seeds} | ({"measures": (figure,)} if figure in PLAIN_MEASURES else {})
    cells = []
    for row in content["rows"]:
        for (regime, dataset), printed in zip(content["columns"], row["figures"], strict=True):
            if printed is None and any(row["figures"]):  # no such cell in the paper
                continue
            own, reason = _select_regime(row.get("options"), regime), _select_regime(row.get("open", ""), regime) or ""
            changes = None
            if own and "methods" in own and not reason:
                changes = {key: _to_option_value(value) for key, value in (regimes[regime] | always | own).items()}
            mean, spread = (*(printed or []), None, None)[:2]
            cells.append(
                PaperCell(name, row["name"], regime, dataset, mean, spread, changes, reason, row.get("note", ""))
            )
    return PaperTable(name, content["title"], content["paper"], figure, seeds, tuple(cells))


def _select_regime(value: Any, regime: str) -> Any:
    if isinstance(value, dict) and "methods" not in value:
        return value.get(regime)
    return value


def _to_option_value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
