"""A repeated table in words: paper, ours and difference side by side, for a terminal and in Markdown."""

from annotator.benchmark.papers.measure import in_words
from annotator.benchmark.papers.tables import PaperCell, command, tables

HEADINGS = ("row", "regime", "paper", "ours", "difference")
PLANNED = ("row", "regime", "paper", "at most")


def about(result: dict) -> list[str]:
    """Return lines on the table and the data."""
    setting = result["setting"]
    images = ", ".join(f"{count:,} {name}" for name, count in setting["images"].items())
    return [
        f"{setting['paper']}: {setting['title']}.",
        f"{setting['dataset']}: {images} images; on {setting['device']}.",
        *(f"Note: {note}." for note in setting["notes"]),
    ]


def headings(result: dict) -> tuple[str, ...]:
    """Return the headings of `rows`."""
    return PLANNED if result["setting"]["plan"] else HEADINGS


def rows(result: dict) -> list[list[str]]:
    """Return a line of cells for each row of the table."""
    return [
        [row["row"], row["regime"], _figure(row["paper"], row["paper_std"]), *_measured(row, result["setting"]["plan"])]
        for row in result["rows"]
    ]


def remarks(result: dict) -> list[str]:
    """Return a sentence for each row that is open, failed, or has something to be said of it."""
    said = []
    for row in result["rows"]:
        for word in ("open", "failed"):
            if row.get(word):
                said.append(f"{row['row']} ({row['regime']}), {word}: {row[word]}")
        if row["note"]:
            said.append(f"{row['row']}: {row['note']}")
    return list(dict.fromkeys(said))


def markdown(result: dict) -> str:
    """Return the table in Markdown, with the command of every row."""
    lines = [f"`{result['setting']['command']}`", "", *about(result), ""]
    lines += [_line(headings(result)), "|" + "---|" * len(headings(result)), *map(_line, rows(result)), ""]
    lines += [f"* {remark}" for remark in remarks(result)]
    commands = [row["command"] for row in result["rows"] if "command" in row]
    return "\n".join([*lines, "", "```", *commands, "```", ""])


def commands() -> str:
    """Return the command of every row of every table in Markdown, as in docs/papers.md."""
    lines = []
    for name, table in tables().items():
        lines += [f"### {name}: {table.paper}, {table.title}", "", "| row | part | command |", "|---|---|---|"]
        rows = dict.fromkeys((cell.row, cell.regime) for cell in table.cells)
        for row, regime in rows:
            of_row = [cell for cell in table.cells if (cell.row, cell.regime) == (row, regime)]
            said = {cell.dataset: _command_or_reason(cell) for cell in of_row}
            for line in dict.fromkeys(said.values()):
                some = [dataset for dataset in said if said[dataset] == line]
                part = regime if len(some) == len(said) else f"{regime}: {', '.join(some)}"
                lines.append(_line([row, part, line]))
        lines += [f"\n{row}: {note}" for row, note in dict.fromkeys((c.row, c.note) for c in table.cells if c.note)]
        lines.append("")
    return "\n".join(lines)


def listed() -> list[dict]:
    """Return the name, paper, title and numbers of figures of each table that can be asked for."""
    return [
        {
            "table": name,
            "paper": table.paper,
            "title": table.title,
            "figures": len(table.cells),
            "open": sum(cell.changes is None for cell in table.cells),
        }
        for name, table in tables().items()
    ]


def listed_line(entry: dict) -> str:
    """Return an entry of `listed` as a line."""
    is_open = f", {entry['open']} of them open" if entry["open"] else ""
    return f"{entry['table']:<8} {entry['paper']}: {entry['title']}; {entry['figures']} figures{is_open}"


def _command_or_reason(cell: PaperCell) -> str:
    return f"open: {cell.open}" if cell.changes is None else f"`{command(cell.options(), 'SET', 'ROOT')}`"


def _measured(row: dict, plan: bool) -> list[str]:
    if plan:
        return ["open" if row["open"] else in_words(row["seconds"])]
    if "ours" not in row:
        return ["open" if row["open"] else "failed", ""]
    difference = "" if row["difference"] is None else f"{row['difference']:+.1f}"
    return [_figure(row["ours"], row["ours_std"]), difference]


def _figure(mean: float | None, spread: float | None) -> str:
    if mean is None:
        return ""
    return f"{mean:.1f}" if spread is None else f"{mean:.2f} ± {spread:.2f}"


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
