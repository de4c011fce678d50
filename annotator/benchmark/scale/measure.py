"""Trainings of a made-up project of any size: seconds by phase, memory, quality, and the floor in the same run."""

import json
import subprocess
import tempfile
from typing import Any

from annotator.benchmark.harness.processes import GRACE, close_input, start
from annotator.benchmark.harness.scratch import scratch_folder
from annotator.errors import AnnotatorError

TRAININGS = 2  # the first, and one that goes on from what the first has kept in memory


def measure(images: int = 100_000, classes: int = 80) -> dict[str, Any]:
    """Time and memory of trainings.

    returns    {"bench", "figures", "ratios"}: seconds and processor seconds of the first training and of the next, and
               of their phases (reading labels, models, publishing); the most memory that is no mapped file; hidden
               average precision in points; ratios to the floor, which is the products and the reading without which
               all images cannot be scored

    Raises AnnotatorError when the process that trains fails.
    """
    with scratch_folder() as folder, tempfile.TemporaryFile() as errors:
        process = start(
            "annotator.benchmark.scale.step",
            folder, images, classes, TRAININGS,
            output=errors, results=subprocess.PIPE,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            said = process.stdout.read()
            if process.wait():
                errors.seek(0)
                raise AnnotatorError(f"The training failed:\n{errors.read()[-2000:].decode(errors='replace').strip()}")
        finally:
            process.terminate()
            process.wait(GRACE)
            close_input(process)
    figures = json.loads(said.splitlines()[-1])
    least = figures["floor_products_seconds"] + figures["floor_reading_seconds"]
    ratios = {f"{name}_over_floor": round(figures[f"{name}_seconds"] / least, 1) for name in ("first", "next")}
    return {"bench": "scale", "figures": figures, "ratios": ratios}
