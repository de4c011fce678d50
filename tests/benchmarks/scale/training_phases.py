"""A training of `bench scale`, phase by phase, as worker/training/train.py has it, and its floor."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch

from annotator.benchmark.scratch import print_progress
from annotator.settings import DEFAULT_BACKBONE
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache, open_features
from annotator.store.runs import runs
from annotator.worker.features.region_cache import RegionCache
from annotator.worker.training import publish
from annotator.worker.training.project_images import ProjectImages
from annotator.worker.training.training_set import load_training_set
from benchmarks.scale.synthetic_features import MadeUp
from spmll.methods import make_method
from spmll.statistics.metrics import hidden_average_precision
from spmll.trainers import make_trainer
from spmll.trainers.base import TrainingLabels

JUDGED_IMAGES = 100_000  # images whose hidden positives are ranked
FLOOR_SAMPLE_IMAGES = 4096  # images that the floor is measured on
TRAINED_METHOD = "auto"
Figures = dict[str, float]


class Clock:
    """Wall and processor seconds by phase."""

    def __init__(self) -> None:
        self.figures: Figures = {}

    @contextmanager
    def measure_phase(self, name: str) -> Iterator[None]:
        """Measure the block: its seconds and processor seconds become figures of this name."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.figures[f"{name}_seconds"] = round(time.perf_counter() - wall, 2)
        self.figures[f"{name}_cpu_seconds"] = round(time.process_time() - cpu, 2)
        print_progress(f"  {name}: {self.figures[f'{name}_seconds']} s")


def measure_trainings(db: Database, made: MadeUp, trainings: int, report_measured: Callable[[], None]) -> Figures:
    """Train `trainings` times; the later ones use what the first has kept in memory.

    Args:
        db: The project's database.
        made: The truth and the labels of the project's images.
        trainings: The number of trainings.
        report_measured: Called when the trainings are over.

    Returns:
        Seconds and processor seconds of the first and the next training and of their phases, the numbers of labels,
        hidden average precision in percent, and the floor.
    """
    clock, started = Clock(), time.perf_counter()
    regions = RegionCache()
    with clock.measure_phase("opening"):
        cache = open_features(db, DEFAULT_BACKBONE)
    probabilities = np.zeros(0)
    for number in range(trainings):
        name = "first" if number == 0 else "next"
        with clock.measure_phase(name):
            probabilities = _measure_training(clock, name, db, cache, regions)
    seconds = {"seconds": time.perf_counter() - started}
    report_measured()
    judged = np.arange(min(len(made.truth), JUDGED_IMAGES))
    probabilities = probabilities[np.argsort(cache.image_ids)[judged]]
    hidden = hidden_average_precision(probabilities, made.labels[judged], made.truth[judged])
    labels = {"labeled_images": int((made.labels != 0).any(1).sum()), "unbiased_answers": int(made.unbiased.sum())}
    quality = {"hidden_ap": round(100 * hidden.cells, 2), "hidden_map": round(100 * hidden.classes, 2)}
    return seconds | labels | clock.figures | quality | measure_floor(cache, regions, made.truth.shape[1])


def _measure_training(clock: Clock, name: str, db: Database, cache: FeatureCache, regions: RegionCache) -> np.ndarray:
    """Train once as worker/training/train.py does, with the time of each phase; return the probabilities."""
    started = time.perf_counter()
    with clock.measure_phase(f"{name}_reading_labels"):
        known = load_training_set(db, cache)
    method = make_method(TRAINED_METHOD)
    run_id = runs.begin(
        db,
        method=TRAINED_METHOD,
        parameters={},
        backbone=DEFAULT_BACKBONE,
        class_ids=known.class_ids,
        images=len(cache),
        last_decision_id=known.newest_decision_id,
        threshold=method.threshold,
    )
    with clock.measure_phase(f"{name}_models"):
        images = ProjectImages(db, cache, DEFAULT_BACKBONE, None, regions)
        labels = TrainingLabels(known.rows, known.labels, known.mask, known.unbiased)
        trainer = make_trainer(method, images, labels, seed=run_id)
        losses = [epoch.loss for epoch in trainer.epochs()]
        outcome = trainer.build_outcome()
    with clock.measure_phase(f"{name}_publishing"):
        done = publish.FinishedTraining(run_id, known, method, DEFAULT_BACKBONE, outcome, losses, started)
        publish.publish_run(db, cache, done)
    return outcome.probabilities


def measure_floor(cache: FeatureCache, regions: RegionCache, classes: int) -> Figures:
    """Return the least seconds for scoring all images: the products of three models, and reading their input.

    Both are measured on a part of the images, on all cores, and scaled up.
    """
    some = slice(0, min(len(cache), FLOOR_SAMPLE_IMAGES))
    codes, features = regions.get_codes(cache), cache.features
    part = codes[some].codes.flatten(0, 1).float()
    wholes, scale = torch.from_numpy(features[some]).float(), len(cache) / some.stop
    along, weight = torch.randn(part.shape[1], 3 * classes), torch.randn(wholes.shape[1], 3 * classes)
    products = scale * _time_best(lambda: (part @ along, wholes @ weight))
    reading = scale * _time_best(lambda: (codes[some], features[some]))
    return {"floor_products_seconds": round(products, 4), "floor_reading_seconds": round(reading, 4)}


def _time_best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
