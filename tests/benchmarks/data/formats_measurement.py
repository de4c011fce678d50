"""Labels of made-up images, exported in every format and imported into an empty project, beside plain libraries.

Each step is a process of its own: its time is that of the work without the start of Python, its peak of memory is its
own. The floor (floors.py) reads and writes the same files in the same run. After each import all cells are compared
with those of the project that was exported; provenance.csv and notes.csv, where a format has them beside it, are
written and read with it. Image files are never read or written: the images are made-up names.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.child_processes import GRACE_SECONDS, close_input, start_module

from annotator.benchmark.reports import Report, ReportTable
from annotator.benchmark.scratch import scratch_folder
from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.formats import FORMATS, find_format

Show = Callable[[int, int, str], None]
EXCLUDED_FORMATS = ("torch", "yolo-cls", "webdataset")  # the arrays of numpy with images; nothing without image files
MEASURED_FORMATS = tuple(name for name, format_ in FORMATS.items() if format_.write and name not in EXCLUDED_FORMATS)
STEP_TITLES = {"out": "export", "read": "import: read", "commit": "import: store"}
FORMATS_HEADINGS = ("", "s", "CPU s", "images/s", "peak MB", "over Python", "MB of files", "x floor")
FORMATS_NOTE = (
    "Images are names without files: neither reading nor writing them is counted. The floor reads and writes the\n"
    "same files with pandas, pyarrow, numpy, json or ElementTree; the ratios are of CPU seconds, export to writing\n"
    "and import (read and stored) to reading. Peak MB is the most memory of the process, of an import up to that step."
)


def measure_formats(
    images: int = 100_000,
    classes: int = 80,
    formats: Sequence[str] = (),
    *,
    present: float = 3.0,
    absent: float = 1.0,
    show: Show = lambda done, of, what: None,
) -> dict[str, Any]:
    """Measure time and memory of exports and imports of labels.

    Args:
        images: The number of images of the made-up projects.
        classes: The number of their classes.
        formats: Names of formats; (): all that can be written and hold labels without image files.
        present: The mean number of labels "present" of an image.
        absent: The mean number of labels "absent" of an image.
        show: Called with (done, of, the present step).

    Returns:
        {"bench", "figures", "ratios", "wrong"}. Figures of each format and step (out, read, commit): seconds, processor
        seconds, images a second, and peak megabytes, both of the process and above an interpreter that does nothing;
        ratios to the floor; wrong: one sentence for each format whose cells came back differently.

    Raises:
        AnnotatorError: A format is unknown, or an export or import fails.
    """
    for name in formats:
        find_format(name, "write")
    if unknown := [name for name in formats if name in EXCLUDED_FORMATS]:
        raise combine_problems("Not measured:", [f"{name} is nothing without image files" for name in unknown])
    figures: dict[str, float | None] = {"images": images, "classes": classes}
    ratios: dict[str, float | None] = {}
    wrong: list[str] = []
    with scratch_folder() as folder:
        made = _run_step("making two projects", show, "make", folder, images, classes, present, absent)
        bare = _run_step("an interpreter that does nothing", show, "measure_idle", folder)["peak_mb"]
        figures |= {"labels": made["labels"], "python_peak_mb": _round_number(bare)}
        for name in formats or MEASURED_FORMATS:
            found, of_floor, problems = _measure_format(folder, name, show)
            wrong += problems
            figures |= _make_figures(name, found, images, bare)
            ratios |= _make_ratios(name, found, of_floor)
    return {"bench": "data", "figures": figures, "ratios": ratios, "wrong": wrong}


def _measure_format(folder: Path, name: str, show: Show) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Measure one export format; return the figures of its steps, those of the floor, and sentences on lost labels."""
    for old in ("out", "again", "copy"):
        shutil.rmtree(folder / old, ignore_errors=True)
    found = {"out": _run_step(f"{name}: export", show, "export_labels", folder, name)}
    of_floor = _run_step(f"{name}: floor", show, "floor", folder)
    shutil.rmtree(folder / "again", ignore_errors=True)
    if find_format(name).read is None:
        return found, of_floor, []
    back = _run_step(f"{name}: import", show, "import_copy", folder, name)
    found |= {"read": back["read"], "commit": back["commit"]}
    cells = _run_step(f"{name}: comparison", show, "compare", folder)
    if not cells["differing"]:
        return found, of_floor, []
    examples = "; ".join(f"{ours} came back as {theirs}" for ours, theirs in cells["examples"])
    count = f"{cells['differing']:,} of {cells['cells']:,} cells differ"
    return found, of_floor, [f"{name}: {count} (image, class, state): {examples}"]


def _make_figures(
    name: str, step_figures: dict[str, Any], images: int, idle_peak_mb: float | None
) -> dict[str, float | None]:
    figures: dict[str, float | None] = {f"{name}_mb": round(step_figures["out"]["bytes"] / 1e6, 1)}
    for step, taken in step_figures.items():
        peak = taken["peak_mb"]
        figures |= {
            f"{name}_{step}_seconds": round(taken["seconds"], 2),
            f"{name}_{step}_cpu_seconds": round(taken["cpu_seconds"], 2),
            f"{name}_{step}_images_per_second": round(images / taken["seconds"]),
            f"{name}_{step}_peak_mb": _round_number(peak),
            f"{name}_{step}_above_python_mb": _round_number(peak - idle_peak_mb) if peak and idle_peak_mb else None,
        }
    if "commit" in step_figures:
        figures[f"{name}_in_images_per_second"] = round(images / _sum_import_steps(step_figures, "seconds"))
    return figures


def _make_ratios(name: str, step_figures: dict[str, Any], floor_figures: dict[str, Any]) -> dict[str, float | None]:
    """Return the ratios of our processor time to the floor's; other programs on the machine disturb it least."""
    ratios: dict[str, float | None] = {}
    for step, ours in (
        ("out", step_figures["out"]["cpu_seconds"]),
        ("in", _sum_import_steps(step_figures, "cpu_seconds")),
    ):
        theirs = floor_figures.get("write_cpu_seconds" if step == "out" else "read_cpu_seconds")
        if ours:
            ratios[f"{name}_{step}_over_floor"] = round(ours / theirs, 2) if theirs else None
    return ratios


def _sum_import_steps(step_figures: dict[str, Any], figure: str) -> float:
    """Return the sum of reading and committing; 0 for a format that is only written."""
    return step_figures["read"][figure] + step_figures["commit"][figure] if "commit" in step_figures else 0.0


def _round_number(number: float | None) -> float | None:
    return None if number is None else round(number, 1)


def _run_step(title: str, show: Show, *arguments: object) -> dict[str, Any]:
    """Run step.py in a process of its own and return the last JSON object that it prints.

    Raises:
        AnnotatorError: The process failed; the message holds the end of its output.
    """
    show(0, 0, title)
    with tempfile.TemporaryFile() as errors:
        process = start_module("benchmarks.data.step", *arguments, output=errors, results=subprocess.PIPE)
        try:
            last: Any = None
            assert process.stdout is not None
            for line in process.stdout:
                last = json.loads(line)
                if "done" in last:
                    show(last["done"], last["of"], title)
            if process.wait():
                errors.seek(0)
                said = errors.read()[-2000:].decode(errors="replace").strip()
                raise AnnotatorError(f"{title} failed:\n{said}")
            return last
        finally:
            process.terminate()
            process.wait(GRACE_SECONDS)
            close_input(process)


def build_formats_report(result: dict[str, Any]) -> Report:
    """Return the report: one row for each step of each format."""
    return Report([describe_sizes(result)], [ReportTable(FORMATS_HEADINGS, format_rows(result))], [FORMATS_NOTE])


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
