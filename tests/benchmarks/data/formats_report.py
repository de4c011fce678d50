"""The result of `bench data` as a table for people."""

from typing import Any

STEP_TITLES = {"out": "export", "read": "import: read", "commit": "import: store"}
FORMATS_HEADINGS = ("", "s", "CPU s", "images/s", "peak MB", "over Python", "MB of files", "x floor")
FORMATS_NOTE = (
    "Images are names without files: neither reading nor writing them is counted. The floor reads and writes the\n"
    "same files with pandas, pyarrow, numpy, json or ElementTree; the ratios are of CPU seconds, export to writing\n"
    "and import (read and stored) to reading. Peak MB is the most memory of the process, of an import up to that step."
)


def describe_sizes(result: dict[str, Any]) -> str:
    """Return the size of the measured set, and the peak memory of an interpreter that does nothing, in one line."""
    figures = result["figures"]
    return (
        f"{figures['images']:,} images x {figures['classes']:,} classes, {figures['labels']:,} labels; Python alone "
        f"{_format_number(figures['python_peak_mb'])} MB"
    )


def format_rows(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return one row for each step of each format, below FORMATS_HEADINGS."""
    figures, ratios = result["figures"], result["ratios"]
    return [
        _format_row(figures, ratios, format_, step, title)
        for format_ in list_formats(result)
        for step, title in STEP_TITLES.items()
        if f"{format_}_{step}_seconds" in figures
    ]


def list_formats(result: dict[str, Any]) -> list[str]:
    """Return the measured formats."""
    return [name.removesuffix("_out_seconds") for name in result["figures"] if name.endswith("_out_seconds")]


def _format_row(
    figures: dict[str, Any], ratios: dict[str, Any], format_: str, step: str, title: str
) -> tuple[str, ...]:
    name = f"{format_}_{step}"
    size = _format_number(figures[f"{format_}_mb"]) if step == "out" else ""
    ratio = ratios.get(f"{format_}_{'out' if step == 'out' else 'in'}_over_floor")
    return (
        f"{format_} {title}",
        _format_number(figures[f"{name}_seconds"]),
        _format_number(figures[f"{name}_cpu_seconds"]),
        f"{figures[f'{name}_images_per_second']:,}",
        _format_number(figures[f"{name}_peak_mb"]),
        _format_number(figures[f"{name}_above_python_mb"]),
        size,
        "" if step == "read" or ratio is None else f"{ratio:.1f}",
    )


def _format_number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
