"""Measurement of how soon a decision is gone from every queue, in the probabilities, and in a training.

The project is generated: tiny images of random pixels, random features around one direction a class (1280 numbers,
float16, in the cache, so that nothing is embedded), and one positive decision on every image, which is all that one
click an image ever gives. With more than MAX_IMAGE_FILES images none is a file, and some are answered whole
(scale/synthetic_features.py).
The worker is the real one, in its own process, at its own priority.
"""

import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness import projects
from harness.child_processes import run_module, wait_for

from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.queues import grid_queue, image_queue
from annotator.records import ABSENT, PRESENT, Batch, Decision, Run, SuggestionFilter, WantedGrids, WantedImages
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot import suggestions
from annotator.store.database import heartbeat, jobs
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import open_features
from annotator.store.labels import decisions
from annotator.store.runs import runs

MAX_IMAGE_FILES = 100_000  # images that are files, at most
PRODUCT_SAMPLE_IMAGES = 50_000  # of more images so many are multiplied for the bare product
ROWS_PER_BLOCK = 5000  # decisions in one transaction, and images whose features are computed together
POLL_SECONDS = 0.005  # between two queries of the store
PATIENCE_SECONDS = 1800.0
TILES_PER_GRID = 24
DECISION_KINDS = ("single", "grid", "done")

Cells = list[tuple[int, int]]


def measure(images: int = 10_000, classes: int = 80, *, answers: int = 40, repetitions: int = 3) -> dict:
    """Measure the seconds from a decision to published probabilities that have learned from it.

    Args:
        images: The number of images; each has one positive decision.
        classes: The number of classes.
        answers: The number of decisions of each kind (one suggestion, a grid of 24 of one class, "nothing else here");
            each is made as soon as the one before is in the probabilities, whatever the worker does.
        repetitions: The number of trainings; no decision is made until a training has seen everything.

    Returns:
        {"bench", "figures", "ratios"}; the bare product is float32 features (images, 1280) times weights (1280,
        classes), the least that new probabilities cost.
    """
    with scratch_folder() as folder:
        if images <= MAX_IMAGE_FILES:
            db, features, truth = _make_project(folder, images, classes)
        else:
            db, features, truth = _make_project_without_files(folder, images, classes)
        product = _time_bare_product(features, classes) * images / len(features)
        del features
        with run_module("annotator", "worker", db.paths.project) as process:
            print_progress("waiting for the worker's first run")
            person = _Person(db, truth, lambda: process.poll() is not None)
            person.wait_until(lambda: runs.load_current_run(db), "the first run")
            person.wait_for_rest()
            seconds = {kind: [person.time_answer(kind) for _ in range(answers)] for kind in DECISION_KINDS}
            full, training = [], []
            for _ in range(repetitions):
                person.wait_for_rest()
                full.append(person.wait_for_training())
                training.append(person.get_run().seconds)
                print_progress(f"trained after {full[-1]:.2f} s, {training[-1]:.2f} s of them at work")
            person.wait_for_rest()
            jobs.request_training(db)
            person.wait_until(lambda: heartbeat.load_worker_state(db).state == "training", "a training")
            seconds["training"] = person.time_answers_in_training(answers)
    figures = {
        **{
            f"{kind}_to_published_{key}": value
            for kind in seconds
            for key, value in _summarize_seconds(seconds[kind]).items()
        },
        "refills_until_gone_max": person.refills,
        "decision_to_training_p50_seconds": round(statistics.median(full), 3),
        "training_and_writing_p50_seconds": round(statistics.median(training), 3),
        "bare_matrix_product_seconds": round(product, 5),
        "images": images,
        "classes": classes,
        "answers": answers,
        "repetitions": repetitions,
    }
    over = figures["single_to_published_p50_seconds"] / product
    return {"bench": "freshness", "figures": figures, "ratios": {"single_to_published_over_matrix_product": over}}


@dataclass
class _Person:
    """A simulated annotator who knows the truth and answers what the model suggests.

    Attributes:
        truth: (images, classes) bool, in the order of the ids of both.
        refills: The largest number of requests until a queue no longer held an answered cell.
    """

    db: Database
    truth: np.ndarray
    worker_has_ended: Callable[[], bool]
    refills: int = 0

    def time_answer(self, kind: str) -> float:
        """Make a decision; return the seconds until probabilities that have seen it are published."""
        cells = self._choose_cells(kind)
        decision = self._build_decision(kind, cells)
        started = time.perf_counter()
        decisions.save(self.db, [decision])
        newest = decisions.get_newest_decision_id(self.db)
        requests = 1
        while self._is_queued(cells):
            requests += 1
        self.refills = max(self.refills, requests)
        self.wait_until(lambda: self.get_run().last_decision_id >= newest, "newer probabilities")
        seconds = time.perf_counter() - started
        self.refills = max(self.refills, requests + self._is_queued(cells))
        return seconds

    def time_answers_in_training(self, max_answers: int) -> list[float]:
        """Answer single cells until the training in progress is published, at most `most`; return the seconds of each.

        The answer during which the run is published is not counted.
        """
        before, each = self.get_run().id, []
        while len(each) < max_answers:
            seconds = self.time_answer("single")
            if self.get_run().id != before:
                break
            each.append(seconds)
        return each

    def wait_for_training(self) -> float:
        """Make a single answer; return the seconds until a run that was trained with it."""
        started = time.perf_counter()
        decisions.save(self.db, [self._build_decision("single", self._choose_cells("single"))])
        newest = decisions.get_newest_decision_id(self.db)
        self.wait_until(lambda: self.get_run().trained_decision_id >= newest, "a training")
        return time.perf_counter() - started

    def wait_for_rest(self) -> None:
        """Wait until everything has been trained on and the worker may train again; it rests as long as it trained."""

        def has_rested() -> bool:
            run = self.get_run()
            return (
                heartbeat.load_worker_state(self.db).state in ("idle", "drawing heat maps")
                and run.trained_decision_id >= decisions.get_newest_decision_id(self.db)
                and time.time() > run.finished_at + 1.5 * run.seconds + 0.5
            )

        self.wait_until(has_rested, "a worker that has rested")

    def get_run(self) -> Run:
        run = runs.load_current_run(self.db)
        assert run is not None, "a project keeps its run once it has one"
        return run

    def wait_until(self, condition: Callable[[], object], description: str) -> None:
        """Wait until the condition holds, or the worker has ended, which the harness then reports."""
        wait_for(lambda: self.worker_has_ended() or condition(), description, PATIENCE_SECONDS, pause=POLL_SECONDS)

    def _choose_cells(self, kind: str) -> Cells:
        """Return the cells of the next decision of this kind: the likeliest unanswered ones."""
        if kind == "grid":
            wanted = WantedGrids(uuid.uuid4().hex, "Bench", None, TILES_PER_GRID, (), 1)
            grids = grid_queue.lease_next_grids(self.db, wanted).items
            grid_queue.lease_next_grids(self.db, WantedGrids(wanted.holder, "Bench", None, TILES_PER_GRID, (), 0))
            return [(tile.image.id, shown.class_id) for shown in grids for tile in shown.tiles]
        likeliest = suggestions.find_missing_positives(self.db, limit=1)[0]
        if kind == "single":
            return [(likeliest.image_id, likeliest.class_id)]
        answered = suggestions.load_answered_classes(self.db, [likeliest.image_id])[likeliest.image_id]
        class_ids = range(1, self.truth.shape[1] + 1)
        return [(likeliest.image_id, class_id) for class_id in class_ids if class_id not in answered]

    def _build_decision(self, kind: str, cells: Cells) -> Decision | Batch:
        uuid_, states = str(uuid.uuid4()), [PRESENT if self.truth[i - 1, c - 1] else ABSENT for i, c in cells]
        (image_id, class_id), state = cells[0], states[0]
        if kind == "grid":
            answers = [(*cell, state, None) for cell, state in zip(cells, states, strict=True)]
            return Batch(uuid_, "Bench", "grid", answers)
        if kind == "done":
            return Decision(uuid_, "done", "Bench", "done", image_id=image_id)
        return Decision(uuid_, "label", "Bench", "suggestion", image_id=image_id, class_id=class_id, state=state)

    def _is_queued(self, cells: Cells) -> bool:
        """Return whether any queue of a new page offers one of these cells."""
        wanted = WantedImages("review", uuid.uuid4().hex, "Bench", (), TILES_PER_GRID, SuggestionFilter(low=0.0))
        items = image_queue.lease_next_work(self.db, wanted).items
        image_queue.lease_next_work(self.db, WantedImages("review", wanted.holder, "Bench", (), 0))
        queued = {(chip.image_id, chip.class_id) for item in items for chip in item.suggestions}
        queued |= {
            (cell.image_id, cell.class_id) for cell in suggestions.find_missing_positives(self.db, limit=TILES_PER_GRID)
        }
        for class_id in {class_id for _, class_id in cells[:3]}:
            wanted = WantedGrids(uuid.uuid4().hex, "Bench", class_id, TILES_PER_GRID, (), 1)
            for shown in grid_queue.lease_next_grids(self.db, wanted).items:
                queued |= {(tile.image.id, class_id) for tile in shown.tiles}
            grid_queue.lease_next_grids(self.db, WantedGrids(wanted.holder, "Bench", class_id, TILES_PER_GRID, (), 0))
        return not queued.isdisjoint(cells)


def _summarize_seconds(seconds: list[float]) -> dict[str, float | int]:
    if not seconds:
        return {"count": 0}
    return {
        "p50_seconds": round(statistics.median(seconds), 3),
        "p95_seconds": round(float(np.percentile(seconds, 95)), 3),
        "max_seconds": round(max(seconds), 3),
        "count": len(seconds),
    }


def _make_project(folder: Path, image_count: int, class_count: int) -> tuple[Database, np.ndarray, np.ndarray]:
    """Make a project of image files; return it, its features as float32, and its truth (images, classes) bool."""
    print_progress(f"making {image_count:,} images, {class_count:,} classes")
    projects.write_noise_images(folder / "images", image_count, (8, 8), ".bmp")
    db = projects.make_empty_project(folder, class_count)
    chance = np.random.default_rng(0)
    directions = chance.normal(size=(class_count, projects.FEATURE_DIMENSIONS)).astype(np.float32)
    truth = chance.random((image_count, class_count)) < min(0.5, 2.5 / class_count)
    truth[np.arange(image_count), chance.integers(0, class_count, image_count)] = True
    features = np.empty((image_count, projects.FEATURE_DIMENSIONS), np.float16)
    for start in range(0, image_count, ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        noise = chance.normal(scale=2, size=features[rows].shape).astype(np.float32)
        features[rows] = np.maximum(truth[rows] @ directions + noise, 0)  # as after the last layer of a network
    projects.save_features(db, features)
    # Ids of images and classes count from 1.
    clicks = [_build_click(row + 1, int(chance.choice(np.flatnonzero(truth[row]))) + 1) for row in range(image_count)]
    for start in range(0, image_count, ROWS_PER_BLOCK):
        decisions.save(db, clicks[start : start + ROWS_PER_BLOCK])
    return db, features.astype(np.float32), truth


def _make_project_without_files(
    folder: Path, image_count: int, class_count: int
) -> tuple[Database, np.ndarray, np.ndarray]:
    """Make a project of features, region codes and labels without image files.

    Returns:
        The project, the features (float32) of the first PRODUCT_SAMPLE_IMAGES images, and its truth (images, classes)
        bool.
    """
    from benchmarks.scale import steps  # loads torch
    from benchmarks.scale.synthetic_features import read_made_up

    print_progress(f"making {image_count:,} images, {class_count:,} classes, without files")
    size = steps.Size(folder, image_count, class_count, 0)
    for step in (steps.rows, steps.embed, steps.answers):
        step(size, lambda: None)
    db = Database(size.project)
    cache = open_features(db, DEFAULT_BACKBONE)
    return db, cache.features[:PRODUCT_SAMPLE_IMAGES].astype(np.float32), read_made_up(size.arrays).truth


def _build_click(image_id: int, class_id: int) -> Decision:
    return Decision(str(uuid.uuid4()), "label", "Bench", "click", image_id=image_id, class_id=class_id, state=PRESENT)


def _time_bare_product(features: np.ndarray, class_count: int) -> float:
    """Return the seconds of one matrix product, the median of nine."""
    weights = np.random.default_rng(1).normal(size=(features.shape[1], class_count)).astype(np.float32)
    seconds = []
    for _ in range(10):
        started = time.perf_counter()
        np.matmul(features, weights)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])
