"""A repeated table in words: paper, ours and difference side by side, for a terminal and in Markdown."""

from annotator.benchmark.papers.table_repetition import format_duration
from annotator.benchmark.papers.tables import PaperCell, format_command, load_tables

PAPER_HEADINGS = ("row", "regime", "paper", "ours", "difference")
PLAN_HEADINGS = ("row", "regime", "paper", "at most")


def describe_table(result: dict) -> list[str]:
    """Return lines on the table and the data."""
    setting = result["setting"]
    images = ", ".join(f"{count:,} {name}" for name, count in setting["images"].items())
    return [
        f"{setting['paper']}: {setting['title']}.",
        f"{setting['dataset']}: {images} images; on {setting['device']}.",
        *(f"Note: {note}." for note in setting["notes"]),
    ]


def get_headings(result: dict) -> tuple[str, ...]:
    """Return the headings of `format_rows`."""
    return PLAN_HEADINGS if result["setting"]["plan"] else PAPER_HEADINGS


def format_rows(result: dict) -> list[list[str]]:
    """Return a line of cells for each row of the table."""
    return [
        [
            row["row"],
            row["regime"],
            _format_figure(row["paper"], row["paper_std"]),
            *_format_measured(row, result["setting"]["plan"]),
        ]
        for row in result["rows"]
    ]


def list_remarks(result: dict) -> list[str]:
    """Return a sentence for each row that is open, failed, or has something to be said of it."""
    said = []
    for row in result["rows"]:
        for word in ("open", "failed"):
            if row.get(word):
                said.append(f"{row['row']} ({row['regime']}), {word}: {row[word]}")
        if row["note"]:
            said.append(f"{row['row']}: {row['note']}")
    return list(dict.fromkeys(said))


def format_markdown(result: dict) -> str:
    """Return the table in Markdown, with the command of every row."""
    lines = [f"`{result['setting']['command']}`", "", *describe_table(result), ""]
    lines += [
        _format_line(get_headings(result)),
        "|" + "---|" * len(get_headings(result)),
        *map(_format_line, format_rows(result)),
        "",
    ]
    lines += [f"* {remark}" for remark in list_remarks(result)]
    commands = [row["command"] for row in result["rows"] if "command" in row]
    return "\n".join([*lines, "", "```", *commands, "```", ""])


def format_commands() -> str:
    """Return the command of every row of every table in Markdown, as in docs/papers.md."""
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
                lines.append(_format_line([row, part, line]))
        lines += [f"\n{row}: {note}" for row, note in dict.fromkeys((c.row, c.note) for c in table.cells if c.note)]
        lines.append("")
    return "\n".join(lines)


def list_tables() -> list[dict]:
    """Return the name, paper, title and numbers of figures of each table that can be asked for."""
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
    """Return an entry of `list_tables` as a line."""
    is_open = f", {entry['open']} of them open" if entry["open"] else ""
    return f"{entry['table']:<8} {entry['paper']}: {entry['title']}; {entry['figures']} figures{is_open}"


def _format_command_or_reason(cell: PaperCell) -> str:
    return f"open: {cell.open}" if cell.changes is None else f"`{format_command(cell.make_options(), 'SET', 'ROOT')}`"


def _format_measured(row: dict, plan: bool) -> list[str]:
    if plan:
        return ["open" if row["open"] else format_duration(row["seconds"])]
    if "ours" not in row:
        return ["open" if row["open"] else "failed", ""]
    difference = "" if row["difference"] is None else f"{row['difference']:+.1f}"
    return [_format_figure(row["ours"], row["ours_std"]), difference]


def _format_figure(mean: float | None, spread: float | None) -> str:
    if mean is None:
        return ""
    return f"{mean:.1f}" if spread is None else f"{mean:.2f} ± {spread:.2f}"


def _format_line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
