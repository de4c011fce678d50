"""Repetition of one paper table on one data set, where each row is a resumable comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.methods import data
from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.finished_results import Work
from annotator.benchmark.methods.methods_comparison import compare_methods, make_basis
from annotator.benchmark.papers.duration import Duration
from annotator.benchmark.papers.tables import PaperCell, format_command, get_table
from annotator.benchmark.reports import Report, ReportTable
from annotator.benchmark.scratch import print_progress
from annotator.errors import AnnotatorError

PAPER_HEADINGS = ("row", "regime", "paper", "ours", "difference")
PLAN_HEADINGS = ("row", "regime", "paper", "at most")


def repeat_table(
    table: str,
    dataset: str,
    root: Path,
    *,
    regime: str | None = None,
    rows: Sequence[str] = (),
    changes: dict[str, Any] | None = None,
    plan: bool = False,
    command_line: str = "",
) -> dict:
    """Repeat a table on one data set and return its figures next to the printed ones.

    Args:
        regime, rows: None and empty select all.
        changes: Fields of Options to override.
        plan: Return the plan and its duration without training.

    Returns:
        {"bench": "papers", "rows": [...], "setting": {...}}. A row has printed figures and ours in percent, the
        difference, and `open` or `failed` with a reason.

    Raises:
        AnnotatorError: For an invalid selection, set or options.
    """
    of_table = get_table(table)
    cells = of_table.select_cells(dataset, regime, rows)
    changes = changes or {}
    options = [_resolve_options(cell, changes) for cell in cells]
    if "batch" in changes and {chosen.protocol for chosen in options if chosen is not None} == {"cole"}:
        raise AnnotatorError("No row of these takes --batch: linear classifiers try all batches of their paper.")
    compared = data.read_dataset(None, None, dataset, root)
    expected = _estimate_seconds(compared, cells, options)
    result: dict = {"bench": "papers", "rows": [], "setting": {}}
    for cell, chosen, seconds in zip(cells, options, expected, strict=True):
        row = _make_printed_row(cell) | {"seconds": round(seconds, 1)}
        if chosen is not None:
            row["command"] = format_command(chosen, dataset, str(root))
            if not plan:
                row |= _measure_row(compared, cell, chosen, of_table.figure, row["command"])
        result["rows"].append(row)
    device = next((chosen.device for chosen in options if chosen is not None), "")
    result["setting"] = {
        "table": table,
        "title": of_table.title,
        "paper": of_table.paper,
        "dataset": dataset,
        "images": {name: len(getattr(compared, name)) for name in data.PART_NAMES},
        "device": device,
        "plan": plan,
        "seconds": round(sum(expected), 1),
        "command": command_line,
        "notes": list(compared.notes),
    }
    return result


def _resolve_options(cell: PaperCell, changes: dict[str, Any]) -> Options | None:
    if cell.changes is None:
        return None
    if cell.changes.get("protocol") == "cole":  # which tries batches of its own
        changes = {name: value for name, value in changes.items() if name != "batch"}
    return cell.make_options(**changes).check_and_resolve()


@dataclass(frozen=True)
class RowMark:
    """A stored mark that a table row is finished, used only for duration estimates."""

    work: Work
    parameters: dict[str, Any]

    @classmethod
    def build(cls, dataset: DataSet, options: Options) -> "RowMark":
        what = {"method": options.methods[0], "changed": list(options.changed), "seeds": options.seeds}
        return cls(Work(options.work, make_basis(dataset, options)), what)

    @property
    def is_set(self) -> bool:
        return self.work.load_result("row", self.parameters) is not None

    def store_mark(self) -> None:
        self.work.store_result("row", self.parameters, {})


def format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _estimate_seconds(dataset: DataSet, cells: Sequence[PaperCell], options: Sequence[Options | None]) -> list[float]:
    duration = Duration(dataset)
    waiting = [chosen is not None and not RowMark.build(dataset, chosen).is_set for chosen in options]
    if any(waiting):
        print_progress("timing a few batches, to say how long this takes")
    expected = [
        duration.estimate_seconds(chosen) if waits and chosen is not None else 0.0
        for chosen, waits in zip(options, waiting, strict=True)
    ]
    done = sum(chosen is not None for chosen in options) - sum(waiting)
    print_progress(
        f"{len(cells)} rows, {sum(cell.changes is None for cell in cells)} of them open, {done} done before; the rest "
        f"takes at most about {format_duration(sum(expected))} on this machine"
    )
    return expected


def _make_printed_row(cell: PaperCell) -> dict:
    return {
        "row": cell.row,
        "regime": cell.regime,
        "paper": cell.paper,
        "paper_std": cell.spread,
        "note": cell.note,
        "open": cell.open,
    }


def _measure_row(dataset: DataSet, cell: PaperCell, options: Options, figure: str, line: str) -> dict:
    """Return the figures of a row, or the reason under "failed", so that other rows continue."""
    print_progress(f"{cell.table}, {cell.row}, {cell.regime}:")
    try:
        (row,) = compare_methods(dataset, options, line)["rows"]
    except (ValueError, AnnotatorError) as error:
        print_progress(f"    failed: {error}")
        return {"failed": str(error)}
    RowMark.build(dataset, options).store_mark()
    ours = 100 * row[figure]
    return {
        "ours": round(ours, 2),
        "ours_std": round(100 * row[f"{figure}_std"], 2),
        "difference": None if cell.paper is None else round(ours - cell.paper, 2),
    } | ({"separations": row["separations"]} if "separations" in row else {})


def build_papers_report(result: dict) -> Report:
    """Return the report: paper, ours and difference side by side, or how long the rows of a plan take."""
    headings = PLAN_HEADINGS if result["setting"]["plan"] else PAPER_HEADINGS
    return Report(
        describe_table(result),
        [ReportTable(headings, format_rows(result))],
        remarks=[f"* {remark}" for remark in list_remarks(result)],
        command=result["setting"]["command"],
        row_commands=[row["command"] for row in result["rows"] if "command" in row],
    )


def describe_table(result: dict) -> list[str]:
    setting = result["setting"]
    images = ", ".join(f"{count:,} {name}" for name, count in setting["images"].items())
    return [
        f"{setting['paper']}: {setting['title']}.",
        f"{setting['dataset']}: {images} images; on {setting['device']}.",
        *(f"Note: {note}." for note in setting["notes"]),
    ]


def format_rows(result: dict) -> list[list[str]]:
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
    """Return notes on rows, and why rows failed or cannot be repeated."""
    said = []
    for row in result["rows"]:
        for word in ("open", "failed"):
            if row.get(word):
                said.append(f"{row['row']} ({row['regime']}), {word}: {row[word]}")
        if row["note"]:
            said.append(f"{row['row']}: {row['note']}")
    return list(dict.fromkeys(said))


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
