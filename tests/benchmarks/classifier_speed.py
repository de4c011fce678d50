"""A classifier taken home, beside the same model in torch: images a second, and how far their probabilities differ.

Both get the same pixels in memory, in turns, with all cores; torch runs the module that the file was written from.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.exchange import project_setup
from annotator.exchange.classifier.onnx_classifier import IMAGES_PER_BATCH, load_classifier
from annotator.exchange.exports.thresholds import Limits
from annotator.settings import SAMPLE_DATA_FOLDER
from annotator.worker.process import run_worker
from annotator.worker.taking_home.classifier_writer import write_classifier
from annotator.worker.taking_home.loading import load_module

TIMING_ROUNDS = 5


def measure(rounds: int = TIMING_ROUNDS) -> dict:
    """Return the speed of a classifier of the sample data in onnxruntime and in torch.

    Args:
        rounds: The number of timings of each; figures are medians.

    Returns:
        {"bench", "figures": {name: number}, "ratios": {name: number}}; units are in the names.
    """
    with scratch_folder() as folder:
        project = folder / "project"
        project_setup.set_up_project(
            project,
            images_folder=SAMPLE_DATA_FOLDER / "images",
            class_file=SAMPLE_DATA_FOLDER / "classes.txt",
            label_file=SAMPLE_DATA_FOLDER / "truth.csv",
        )
        print_progress("training")
        run_worker(project, once=True)
        for name in ("sample.onnx", "sample.safetensors"):
            print_progress(f"writing {name}")
            write_classifier(project, folder / name, Limits())
        classifier, module = load_classifier(folder / "sample.onnx"), load_module(folder / "sample.safetensors")
        paths: list[Path] = sorted((SAMPLE_DATA_FOLDER / "images").glob("*.jpg"))
        began = time.perf_counter()
        pixels = np.stack([classifier.pixels(path) for path in paths])
        decoding = time.perf_counter() - began
    given = np.concatenate(
        [
            classifier.of_pixels(list(pixels[at : at + IMAGES_PER_BATCH]))
            for at in range(0, len(pixels), IMAGES_PER_BATCH)
        ]
    )
    speeds: dict[str, list[float]] = {"onnxruntime": [], "torch": []}
    with torch.inference_mode():
        batches = torch.from_numpy(pixels).split(IMAGES_PER_BATCH)
        wanted = torch.cat([module(batch) for batch in batches]).numpy()
        runs: dict[str, Callable[[], object]] = {
            "onnxruntime": lambda: [classifier.of_pixels(list(batch.numpy())) for batch in batches],
            "torch": lambda: [module(batch) for batch in batches],
        }
        for _ in range(rounds):
            for name, run in runs.items():
                began = time.perf_counter()
                run()
                speeds[name].append(len(pixels) / (time.perf_counter() - began))
    figures = {f"{name}_images_per_second": statistics.median(values) for name, values in speeds.items()}
    figures |= {
        "decoding_images_per_second": len(pixels) / decoding,
        "largest_difference": float(np.abs(given - wanted).max()),
    }
    ratio = figures["onnxruntime_images_per_second"] / figures["torch_images_per_second"]
    return {"bench": "classifier", "figures": figures, "ratios": {"onnxruntime_over_torch": ratio}}
