"""The training step of `bench scale`, in a process of its own, so that its peak of memory is its own.

    python -m annotator.benchmark.scale.step FOLDER IMAGES CLASSES TRAININGS

The last line on standard output is a JSON object of figures.
"""

import json
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from annotator.benchmark.harness import bulk, projects
from annotator.benchmark.harness.processes import say
from annotator.benchmark.scale.made_up import MadeUp, make_features
from annotator.records import ABSENT, PRESENT, Batch
from annotator.settings import DEFAULT_BACKBONE
from annotator.store import decisions, runs
from annotator.store.database import Database
from annotator.store.features.cache import FeatureCache
from annotator.worker import publish
from annotator.worker.project_images import ProjectImages
from annotator.worker.region_cache import RegionCache
from annotator.worker.training_set import training_set
from models.methods import make_method
from models.statistics.metrics import hidden_average_precision
from models.trainers import make_trainer
from models.trainers.base import TrainingLabels

JUDGED = 100_000  # images whose hidden positives are ranked
PART = 4096  # images that the floor is measured on
AT_ONCE = 500  # cells of a decision
METHOD = "auto"
Figures = dict[str, float]


class Clock:
    """Seconds and processor seconds by phase, and the peak of memory that is no file."""

    def __init__(self) -> None:
        self.figures: Figures = {}
        self.peak_mb = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.figures[f"{name}_seconds"] = round(time.perf_counter() - wall, 2)
        self.figures[f"{name}_cpu_seconds"] = round(time.process_time() - cpu, 2)
        say(f"{name}: {self.figures[f'{name}_seconds']} s")

    def _watch(self) -> None:
        while True:
            self.peak_mb = max(self.peak_mb, anonymous_mb())
            time.sleep(0.02)


def anonymous_mb() -> float:
    """Memory of this process without mapped files, which the system can drop at any time; 0 where it is not said."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024 / 1e6


def train(folder: Path, images: int, classes: int, trainings: int) -> Figures:
    """Make a project of that size, and train on it: the first time, and again with what the first one has kept."""
    clock = Clock()
    db, made = make_project(folder, images, classes)
    cache, regions = FeatureCache(db.paths.features(DEFAULT_BACKBONE)), RegionCache()
    with clock.phase("opening"):
        cache.refresh()
    base = clock.peak_mb = anonymous_mb()
    for number in range(trainings):
        name = "first" if number == 0 else "next"
        with clock.phase(name):
            probabilities = _train_once(clock, name, db, cache, regions)
    judged = np.arange(min(images, JUDGED))
    probabilities = probabilities[np.argsort(cache.image_ids)[judged]]
    hidden = hidden_average_precision(probabilities, made.labels[judged], made.truth[judged])
    labels = {"labeled_images": int((made.labels != 0).any(1).sum()), "unbiased_answers": int(made.unbiased.sum())}
    memory = {"peak_mb": round(clock.peak_mb), "before_mb": round(base)}
    quality = {"hidden_ap": round(100 * hidden.cells, 2), "hidden_map": round(100 * hidden.classes, 2)}
    return (
        {"images": images, "classes": classes}
        | labels
        | clock.figures
        | memory
        | quality
        | floor(cache, regions, classes)
    )


def _train_once(clock: Clock, name: str, db: Database, cache: FeatureCache, regions: RegionCache) -> np.ndarray:
    """What worker/train.py does, phase by phase."""
    started = time.perf_counter()
    with clock.phase(f"{name}_reading_labels"):
        known = training_set(db, cache)
    method = make_method(METHOD)
    run_id = runs.begin(
        db,
        method=METHOD,
        parameters={},
        backbone=DEFAULT_BACKBONE,
        class_ids=known.class_ids,
        images=len(cache),
        last_decision_id=known.newest,
        threshold=method.threshold,
    )
    with clock.phase(f"{name}_models"):
        images = ProjectImages(db, cache, DEFAULT_BACKBONE, None, regions)
        labels = TrainingLabels(known.rows, known.labels, known.mask, known.unbiased)
        trainer = make_trainer(method, images, labels, seed=run_id)
        losses = [epoch.loss for epoch in trainer.epochs()]
        outcome = trainer.outcome()
    with clock.phase(f"{name}_publishing"):
        publish.publish_run(db, cache, known, run_id, method, DEFAULT_BACKBONE, outcome, losses, started, [])
    return outcome.probabilities


def make_project(folder: Path, images: int, classes: int) -> tuple[Database, MadeUp]:
    """A project of made-up images and their labels; no image is a file."""
    (folder / "images").mkdir()
    db = projects.new_project(folder, classes)
    bulk.add_images(db, folder, range(1, images + 1))
    made = make_features(db.paths.features(DEFAULT_BACKBONE), images, classes)
    clicked, columns = np.nonzero((made.labels == PRESENT) & ~made.unbiased)
    clicked, first = np.unique(clicked, return_index=True)
    bulk.click(db, clicked + 1, columns[first] + 1)
    for column in range(classes):
        rows = np.flatnonzero(made.unbiased[:, column])
        states = np.where(made.truth[rows, column], PRESENT, ABSENT)
        cells = [(int(row) + 1, column + 1, int(state), None) for row, state in zip(rows, states, strict=True)]
        for start in range(0, len(cells), AT_ONCE):
            decisions.decide(db, [Batch(str(uuid.uuid4()), "Bench", "grid", cells[start : start + AT_ONCE])])
    return db, made


def floor(cache: FeatureCache, regions: RegionCache, classes: int) -> Figures:
    """Seconds without which all images cannot be scored: the products of three models, and reading what they read.

    Both are measured on a part of the images, on all cores, and scaled up.
    """
    some = slice(0, min(len(cache), PART))
    codes, features = regions.of(cache), cache.features
    part = codes[some].codes.flatten(0, 1).float()
    wholes, scale = torch.from_numpy(features[some]).float(), len(cache) / some.stop
    along, weight = torch.randn(part.shape[1], 3 * classes), torch.randn(wholes.shape[1], 3 * classes)
    products = scale * _best(lambda: (part @ along, wholes @ weight))
    reading = scale * _best(lambda: (codes[some], features[some]))
    return {"floor_products_seconds": round(products, 4), "floor_reading_seconds": round(reading, 4)}


def _best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    place, *numbers = sys.argv[1:]
    sys.stdout.write(json.dumps(train(Path(place), *map(int, numbers))) + "\n")
