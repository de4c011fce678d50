"""The result of `bench scale` as tables for people."""

from typing import Any

from benchmarks.scale.scale_measurement import EXTRAPOLATED_IMAGES, REPORTED_STEPS

STEP_HEADINGS = ("s", "CPU s", "peak MB", "with files", "beside it")
REPORT_NOTE = (
    'Each step is a process of its own. Peak MB is the most memory that is no file; "with files" is with mapped\n'
    "files, which the system drops when it needs the room. Embed writes made-up features; page is a server without\n"
    "a worker."
)
GROWTH_NOTE = (
    "\nGrowth is e of images^e between the two largest sizes. What is foretold is a line a + b x images through all\n"
    "sizes, and where e is above 1.15, images^e from the largest size on. It is assumed that nothing else changes:\n"
    "such as files that fit into the memory of this machine at these sizes, and would not there."
)
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


def describe_set(result: dict[str, Any]) -> str:
    """Return a sentence on the size of the made-up set."""
    return f"{result['classes']:,} classes, image files of {result['kilobytes']:,} KB, made up"


def build_tables(result: dict[str, Any]) -> list[Table]:
    """Return (headings, rows) of each size, and with several sizes those of the growth."""
    made = []
    for size in result["sizes"]:
        headings = (f"{size['images']:,} images", *STEP_HEADINGS)
        made.append((headings, _build_rows(size)))
    return [*made, _build_growth_table(result)] if result["growth"] else made


def _build_rows(size: dict[str, Any]) -> list[tuple[str, ...]]:
    figures = size["figures"]
    columns = ("seconds", "cpu_seconds", "peak_mb", "resident_mb")
    return [
        (step, *(_format_number(figures.get(f"{step}_{column}")) for column in columns), _describe_step(step, size))
        for step in REPORTED_STEPS
        if f"{step}_seconds" in figures
    ]


def _describe_step(step: str, size: dict[str, Any]) -> str:
    """Return further figures of a step in words; "" for a step without any."""
    of = size["figures"] | size["ratios"]
    words = {
        "register": "{register_per_second:,.0f} images/s, {register_over_floor:.1f} x reading and hashing; "
        "unchanged {register_unchanged_seconds:,.1f} s",
        "train": "first {train_first_seconds:,.1f} s, next {train_next_seconds:,.1f} s, {train_next_over_floor:.1f} x "
        "the products; hidden AP {train_hidden_ap:.1f}",
        "page": "first page; a key p95 {page_key_p95_ms:.0f} ms, a class's grid {page_grid_class_p95_ms:.0f} ms",
        "decide": "{decide_per_second:,.0f} decisions/s (the disk alone {decide_floor_per_second:,.0f}), "
        "in grids {decide_cells_per_second:,.0f} cells/s",
        "export": "{export_mb:,.1f} MB",
    }
    return words.get(step, "").format_map(of)


def _build_growth_table(result: dict[str, Any]) -> Table:
    growth = result["growth"]
    sizes = [(f"{size['images']:,}", size["figures"]) for size in result["sizes"]]
    rows = [
        (
            name.replace("_", " "),
            *(_format_number(figures[name]) for _, figures in sizes),
            f"{of['exponent']:.2f}",
            _format_number(of["predicted"]),
        )
        for name, of in growth.items()
    ]
    return ("", *(title for title, _ in sizes), "growth", f"{EXTRAPOLATED_IMAGES:,} (foretold)"), rows


def _format_number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
