"""A made-up project through every step of its life, each in a process of its own: seconds, memory, and the floor."""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.child_processes import GRACE_SECONDS, close_input, start_module

from annotator.benchmark.reports import Report, ReportTable
from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.errors import AnnotatorError
from annotator.settings import DATABASE_FILE
from annotator.store.features.shards import SHARD_SUFFIX
from benchmarks.scale import room
from benchmarks.scale.growth import extrapolate_growth
from benchmarks.scale.page import measure_page
from benchmarks.scale.process_memory import watch_memory

REPORTED_STEPS = ("register", "embed", "train", "rank", "page", "decide", "status", "export")
STEP_NEEDS = {
    "register": ("photos",),
    "embed": (),
    "train": ("embed", "answers"),
    "rank": ("embed", "answers", "train"),
    "page": ("embed", "answers"),
    "decide": ("embed", "answers"),
    "status": ("embed", "answers"),
    "export": ("embed", "answers"),
}
STEP_ORDER = ("photos", "rows", "register", "embed", "answers", *REPORTED_STEPS[2:])
STEP_MODULE, MEASURED_LINE = "benchmarks.scale.steps", b'"measured"\n'
EXTRAPOLATED_IMAGES = 10_000_000  # images, of which sizes that were measured say what they would take
Figures = dict[str, float]
Run = Callable[[str], Figures]
STEP_HEADINGS = ("s", "CPU s", "peak MB", "with files", "beside it")
REPORT_NOTE = (
    'Each step is a process of its own. Peak MB is the most memory that is no file; "with files" is with mapped\n'
    "files, which the system drops when it needs the room. Embed writes made-up features; page is a server without\n"
    "a worker."
)
GROWTH_NOTE = (
    "Growth is e of images^e between the two largest sizes. What is foretold is a line a + b x images through all\n"
    "sizes, and where e is above 1.15, images^e from the largest size on. It is assumed that nothing else changes:\n"
    "such as files that fit into the memory of this machine at these sizes, and would not there."
)


def measure(
    images: Sequence[int] = (100_000,),
    classes: int = 80,
    *,
    kilobytes: int = 1,
    steps: Sequence[str] = (),
    work: Path | None = None,
) -> dict[str, Any]:
    """Measure the time and memory of each step at each size.

    Args:
        images: The sizes.
        classes: C, the number of classes.
        kilobytes: The size of an image file.
        steps: Names in REPORTED_STEPS; (): all. Steps that these need are run, too, but not reported. Without
            `register` images are rows without files.
        work: A folder that keeps the figures of each size, which are not measured again; None: none is kept.

    Returns:
        {"bench", "classes", "kilobytes", "sizes", "growth"}: of each size "images", "figures" (`<step>_seconds`,
        `_peak_mb` of memory that is no file, `_resident_mb` with mapped files, and others) and "ratios" to the floors;
        with several sizes, the growth of the seconds and the memory of each step.

    Raises:
        AnnotatorError: A step does not exist, the disk cannot hold a size (before anything is made), or a step fails.
    """
    if unknown := [step for step in steps if step not in REPORTED_STEPS]:
        raise AnnotatorError(
            f"No step is called {', '.join(map(repr, unknown))}. There is: {', '.join(REPORTED_STEPS)}."
        )
    chosen = tuple(step for step in REPORTED_STEPS if not steps or step in steps)
    all_ = _add_needed_steps(chosen)
    for count in images:
        if not _get_result_path(work, count, classes, kilobytes, chosen).exists():
            room.refuse_too_large(Path(tempfile.gettempdir()), count, classes, kilobytes, all_)
    if work:
        work.mkdir(parents=True, exist_ok=True)
    sizes = []
    for count in sorted(set(images)):
        kept = _get_result_path(work, count, classes, kilobytes, chosen)
        if kept.exists():
            sizes.append(json.loads(kept.read_text(encoding="utf-8")))
            continue
        part = kept.with_suffix(".part") if work else None
        figures = _measure_size(count, classes, kilobytes, chosen, all_, part)
        sizes.append({"images": count, "figures": figures, "ratios": _compute_ratios(figures)})
        if part:
            part.write_text(json.dumps(sizes[-1]), encoding="utf-8")
            part.replace(kept)
    common = {"bench": "scale", "classes": classes, "kilobytes": kilobytes}
    return common | {"sizes": sizes, "growth": _extrapolate_figures(sizes) if len(sizes) > 1 else {}}


def _add_needed_steps(chosen: Sequence[str]) -> tuple[str, ...]:
    needed = {need for step in chosen for need in STEP_NEEDS[step]} | set(chosen)
    if "register" not in needed:
        needed.add("rows")
    return tuple(step for step in STEP_ORDER if step in needed)


def _get_result_path(work: Path | None, images: int, classes: int, kilobytes: int, chosen: Sequence[str]) -> Path:
    name = f"{images}-images-{classes}-classes-{kilobytes}-kb"
    if len(chosen) < len(REPORTED_STEPS):
        name += f"-{'-'.join(chosen)}"
    return (work or Path("nowhere", str(time.time_ns()))) / f"{name}.json"


def _measure_size(
    images: int, classes: int, kilobytes: int, chosen: Sequence[str], all_: Sequence[str], part: Path | None
) -> Figures:
    """Return the figures of one size; the file `part` keeps those of the steps that have ended."""
    figures: Figures = {}
    with scratch_folder() as folder:
        project = folder / "project"
        for name in all_:
            if name == "page":
                found = measure_page(project, classes, has_photos="photos" in all_)
                found = {f"page_{figure.removeprefix('page_')}": value for figure, value in found.items()}
            elif name == "status":
                found = _run_step("status", "annotator", "status", project, "--json")
            else:
                found = _run_step(name, STEP_MODULE, name, folder, images, classes, kilobytes)
            print_progress(f"{images:,} images: {name} {found[f'{name}_seconds']:,.1f} s")
            if name in chosen:
                figures |= found
            if part:
                part.write_text(json.dumps({"images": images, "figures": figures}), encoding="utf-8")
        figures |= _measure_disk_use(project)
    if "register_seconds" in figures:
        figures["register_per_second"] = images / figures["register_seconds"]
    return {name: round(value, 3) for name, value in figures.items()}


def _measure_disk_use(project: Path) -> Figures:
    """Return megabytes on the disk: of the tables, of features, of runs, and of the project."""
    sizes = {"tables_mb": 0.0, "features_mb": 0.0, "runs_mb": 0.0, "project_mb": 0.0}
    for path in project.rglob("*"):
        if path.is_file():
            top, megabytes = path.relative_to(project).parts[0], path.stat().st_size / 1e6
            kind = "tables" if top.startswith(DATABASE_FILE) else "runs" if top == "runs" else "features"
            if kind != "features" or path.suffix == SHARD_SUFFIX:
                sizes[f"{kind}_mb"] += megabytes
            sizes["project_mb"] += megabytes
    return sizes


def _run_step(name: str, module: str, *arguments: object) -> Figures:
    """Run a step in a process of its own; return its figures, each beginning with the step's name.

    Raises:
        AnnotatorError: The step failed; the message holds its last output.
    """
    started = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = start_module(module, *arguments, output=errors, results=subprocess.PIPE)
        try:
            assert process.stdout is not None
            with watch_memory(process.pid) as memory:
                said = process.stdout.readline()
                if said != MEASURED_LINE:  # another command than a step
                    said = process.stdout.read()
            said = process.stdout.read() or said
            if process.wait():
                errors.seek(0)
                last = errors.read()[-2000:].decode(errors="replace").strip()
                raise AnnotatorError(f"The step {name} failed:\n{last}")
        finally:
            process.terminate()
            process.wait(GRACE_SECONDS)
            close_input(process)
    figures = json.loads(said) if module == STEP_MODULE else {"seconds": time.perf_counter() - started}
    return {f"{name}_{figure}": value for figure, value in figures.items()} | memory.build_figures(name)


def _compute_ratios(figures: Figures) -> Figures:
    """Return our figures over those of the floors."""
    ratios = {}
    if "register_seconds" in figures:
        ratios["register_over_floor"] = figures["register_seconds"] / figures["register_floor_seconds"]
    if "train_seconds" in figures:
        least = figures["train_floor_products_seconds"] + figures["train_floor_reading_seconds"]
        ratios |= {f"train_{name}_over_floor": figures[f"train_{name}_seconds"] / least for name in ("first", "next")}
    if "decide_seconds" in figures:
        ratios["decide_over_floor"] = figures["decide_floor_per_second"] / figures["decide_per_second"]
    return {name: round(value, 2) for name, value in ratios.items()}


def _extrapolate_figures(sizes: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    counts = [size["images"] for size in sizes]
    common = set.intersection(*(set(size["figures"]) for size in sizes))
    wanted = [f"{step}_{what}" for step in REPORTED_STEPS for what in ("seconds", "peak_mb")]
    wanted += ["train_first_seconds", "train_next_seconds", "page_key_p95_ms"]
    wanted += ["tables_mb", "features_mb", "runs_mb", "project_mb"]
    return {
        name: {what: round(value, 3) for what, value in _extrapolate_figure(sizes, counts, name).items()}
        for name in wanted
        if name in common
    }


def _extrapolate_figure(sizes: Sequence[dict[str, Any]], counts: list[int], name: str) -> dict[str, float]:
    return extrapolate_growth(counts, [size["figures"][name] for size in sizes], EXTRAPOLATED_IMAGES)


def build_scale_report(result: dict[str, Any]) -> Report:
    """Return the report: the steps of each size, and with several sizes the growth."""
    tables = [
        ReportTable([f"{size['images']:,} images", *STEP_HEADINGS], _build_rows(size)) for size in result["sizes"]
    ]
    if not result["growth"]:
        return Report([describe_set(result)], tables, [REPORT_NOTE])
    return Report([describe_set(result)], [*tables, _build_growth_table(result)], [REPORT_NOTE, GROWTH_NOTE])


def describe_set(result: dict[str, Any]) -> str:
    """Return a sentence on the size of the made-up set."""
    return f"{result['classes']:,} classes, image files of {result['kilobytes']:,} KB, made up"


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


def _build_growth_table(result: dict[str, Any]) -> ReportTable:
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
    return ReportTable(["", *(title for title, _ in sizes), "growth", f"{EXTRAPOLATED_IMAGES:,} (foretold)"], rows)


def _format_number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
