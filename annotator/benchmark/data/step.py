"""One step of the benchmark in a process of its own, so that its peak of memory is its own.

    python -m annotator.benchmark.data.step KIND ARGUMENTS...

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
Shown = Callable[[int, int], None]
EVERY = 0.2  # seconds between two lines of progress


def make(folder: Path, images: str, classes: str, present: str, absent: str, shown: Shown) -> Figures:
    """Make the labeled and the empty project."""
    from annotator.benchmark.data.made_up import make_projects

    sizes = int(images), int(classes), float(present), float(absent)
    return {"labels": make_projects(folder / "labeled", folder / "empty", *sizes, shown)}


def measure_idle(folder: Path, shown: Shown) -> Figures:
    """Measure an interpreter that does nothing."""
    return {"peak_mb": peak_mb()}


def export_labels(folder: Path, kind: str, shown: Shown) -> Figures:
    """Export the labeled project."""
    from annotator.exchange.exports.choices import Choices
    from annotator.exchange.exports.export import prepare, write
    from annotator.exchange.formats import find_format
    from annotator.store.database.database import Database

    target = folder / "out" / f"labels{find_format(kind, 'write').ending}"
    target.parent.mkdir()
    db = Database(folder / "labeled")
    clock = Clock()
    with prepare(db, target, kind, Choices(images="none"), lossy=True, progress=shown) as prepared:
        write(prepared)
    taken = clock.taken()
    return taken | {"peak_mb": peak_mb(), "bytes": sum(path.stat().st_size for path in _files(folder / "out"))}


def floor(folder: Path, shown: Shown) -> Figures:
    """Read and write the files of the export, except its data card."""
    from annotator.benchmark.data.floors import run

    files = [path for path in _files(folder / "out") if not path.name.endswith(("card.json", "card.md"))]
    taken = run(files, folder / "again", shown) or {}
    return taken | {"peak_mb": peak_mb()}


def import_copy(folder: Path, kind: str, shown: Shown) -> Figures:
    """Import the export into a copy of the empty project."""
    from annotator.exchange.formats import find_format
    from annotator.exchange.imports.importing import Choices, prepare

    project = folder / "copy"
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(folder / "empty", project)
    source = folder / "out"
    ending = find_format(kind, "read").ending
    source = source / f"labels{ending}"
    clock = Clock()
    steps = lambda what, done, of: shown(done, of)  # noqa: E731
    with prepare(project, source, Choices(format=kind), by="Ann", progress=steps) as plan:
        read = clock.taken()
        read_peak = peak_mb()
        clock = Clock()
        plan.apply(steps)
        commit = clock.taken()
    return {
        "read": read | {"peak_mb": read_peak},
        "commit": commit | {"peak_mb": peak_mb()},
        "said": plan.preview.answers_new,
    }


def compare(folder: Path, shown: Shown) -> Figures:
    """Count the cells in which the labeled project and the copy differ, with up to five examples."""
    from annotator.store.database.database import Database

    here, there = (_labels(Database(folder / name)) for name in ("labeled", "copy"))
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


def _labels(db: Any) -> Any:
    """Yield (image id, class id, state) of all labels, ascending."""
    cursor = db.sql.execute("SELECT image_id, class_id, state FROM label ORDER BY image_id, class_id")
    while rows := list(islice(cursor, 50_000)):
        yield from rows


class Clock:
    """A stopwatch of wall and processor seconds, started when it is made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def taken(self) -> Figures:
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


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _show_each(most_often: float = EVERY) -> Shown:
    last = 0.0

    def shown(done: int, of: int) -> None:
        nonlocal last
        if time.monotonic() - last > most_often:
            last = time.monotonic()
            sys.stdout.write(json.dumps({"done": done, "of": of}) + "\n")
            sys.stdout.flush()

    return shown


STEPS: dict[str, Callable[..., Figures]] = {
    step.__name__: step for step in (make, measure_idle, export_labels, floor, import_copy, compare)
}


if __name__ == "__main__":
    kind, folder, *arguments = sys.argv[1:]
    sys.stdout.write(json.dumps(STEPS[kind](Path(folder), *arguments, shown=_show_each())) + "\n")
