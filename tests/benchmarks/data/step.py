"""One step of the benchmark in a process of its own, so that its peak of memory is its own.

    python -m benchmarks.data.step KIND ARGUMENTS...

Each line on standard output is a JSON value: {"done", "of"} while it works, and at the end an object with what was
measured.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

Figures = dict[str, Any]
ProgressCallback = Callable[[int, int], None]
PROGRESS_INTERVAL_SECONDS = 0.2  # between two lines of progress


def make(folder: Path, images: str, classes: str, present: str, absent: str, shown: ProgressCallback) -> Figures:
    """Make the labeled and the empty project."""
    from benchmarks.data.made_up_labels import make_projects

    sizes = int(images), int(classes), float(present), float(absent)
    return {"labels": make_projects(folder / "labeled", folder / "empty", *sizes, shown)}


def measure_idle(folder: Path, shown: ProgressCallback) -> Figures:
    """Measure an interpreter that does nothing."""
    return {"peak_mb": peak_mb()}


def export_labels(folder: Path, kind: str, shown: ProgressCallback) -> Figures:
    """Export the labeled project."""
    from annotator.exchange.exports.choices import Choices
    from annotator.exchange.exports.export_writer import ExportJob, prepare_export, write_export
    from annotator.exchange.formats import find_format
    from annotator.store.database.database import Database

    target = folder / "out" / f"labels{find_format(kind, 'write').ending}"
    target.parent.mkdir()
    db = Database(folder / "labeled")
    clock = Clock()
    with prepare_export(db, target, kind, Choices(images="none"), lossy=True, job=ExportJob(shown)) as prepared:
        write_export(prepared)
    taken = clock.get_elapsed()
    return taken | {"peak_mb": peak_mb(), "bytes": sum(path.stat().st_size for path in _list_files(folder / "out"))}


def floor(folder: Path, shown: ProgressCallback) -> Figures:
    """Read and write the files of the export, except its data card."""
    from benchmarks.data.floors import measure_floor

    files = [path for path in _list_files(folder / "out") if not path.name.endswith(("card.json", "card.md"))]
    taken = measure_floor(files, folder / "again", shown) or {}
    return taken | {"peak_mb": peak_mb()}


def import_copy(folder: Path, kind: str, shown: ProgressCallback) -> Figures:
    """Import the export into a copy of the empty project."""
    from annotator.exchange.formats import find_format
    from annotator.exchange.imports.import_plan import ImportOptions, prepare_import

    project = folder / "copy"
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(folder / "empty", project)
    source = folder / "out"
    ending = find_format(kind, "read").ending
    source = source / f"labels{ending}"
    clock = Clock()
    steps = lambda what, done, of: shown(done, of)  # noqa: E731
    with prepare_import(project, source, ImportOptions(format=kind), by="Ann", progress=steps) as plan:
        read = clock.get_elapsed()
        read_peak = peak_mb()
        clock = Clock()
        plan.apply(steps)
        commit = clock.get_elapsed()
    return {
        "read": read | {"peak_mb": read_peak},
        "commit": commit | {"peak_mb": peak_mb()},
        "said": plan.preview.answers_new,
    }


def compare(folder: Path, shown: ProgressCallback) -> Figures:
    """Count the cells in which the labeled project and the copy differ, with up to five examples."""
    from annotator.store.database.database import Database

    here, there = (_iterate_labels(Database(folder / name)) for name in ("labeled", "copy"))
    cells, differing, examples = 0, 0, []
    ours, theirs = next(here, None), next(there, None)
    while ours or theirs:
        first = min(cell for cell in (ours, theirs) if cell)[:2]
        if ours != theirs:
            differing += 1
            examples += [(ours, theirs)] if differing <= 5 else []
        cells += 1
        if ours and ours[:2] == first:
            ours = next(here, None)
        if theirs and theirs[:2] == first:
            theirs = next(there, None)
    return {"cells": cells, "differing": differing, "examples": examples}


def _iterate_labels(db: Any) -> Any:
    """Yield (image id, class id, state) of all labels, ascending."""
    cursor = db.sql.execute("SELECT image_id, class_id, state FROM label ORDER BY image_id, class_id")
    while rows := list(islice(cursor, 50_000)):
        yield from rows


class Clock:
    """A stopwatch of wall and processor seconds, started when it is made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def get_elapsed(self) -> Figures:
        """Return the seconds, and processor seconds, since the clock was made."""
        return {
            "seconds": time.perf_counter() - self._wall,
            "cpu_seconds": time.process_time() - self._cpu,
        }


def peak_mb() -> float | None:
    """Return this process's peak memory so far in MB; None where the system does not tell."""
    try:
        # Not ru_maxrss, which begins with what the process that started this one had.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    except (OSError, IndexError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def _list_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _make_progress_printer(interval_seconds: float = PROGRESS_INTERVAL_SECONDS) -> ProgressCallback:
    last = 0.0

    def print_progress(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > interval_seconds:
            last = time.monotonic()
            sys.stdout.write(json.dumps({"done": done, "of": total}) + "\n")
            sys.stdout.flush()

    return print_progress


STEP_FUNCTIONS: dict[str, Callable[..., Figures]] = {
    step.__name__: step for step in (make, measure_idle, export_labels, floor, import_copy, compare)
}


if __name__ == "__main__":
    kind, folder, *arguments = sys.argv[1:]
    sys.stdout.write(json.dumps(STEP_FUNCTIONS[kind](Path(folder), *arguments, shown=_make_progress_printer())) + "\n")
