"""A decision -> gone from every queue, in the probabilities, in a training: how soon the model learns from a person.

A made-up project: tiny images of random pixels, features drawn at random around a direction of each class (1280
numbers each, float16, in the cache, so nothing is embedded), and one positive decision on every image, which is as much
as there ever is to learn from one click an image. The worker is the real one, in its own process, at its own priority.
"""

import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from annotator.benchmark.harness.processes import python, say, wait_for
from annotator.queues import annotate, grid
from annotator.records import ABSENT, PRESENT, Batch, Decision, Filter, Wanted, WantedGrids
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot import suggestions
from annotator.store import classes as store_classes
from annotator.store import decisions, heartbeat, jobs, runs
from annotator.store import images as store_images
from annotator.store.arrays import add_features
from annotator.store.database import Database
from annotator.store.registration import register

DIMENSIONS, REGIONS = 1280, 9  # as the default backbone has them
AT_ONCE = 5000  # decisions in one transaction, and images in one shard
POLL = 0.005  # seconds between two looks at the store
PATIENCE = 1800.0
GRID = 24
KINDS = ("single", "grid", "done")

Cells = list[tuple[int, int]]


def measure(images: int = 10_000, classes: int = 80, *, answers: int = 40, repetitions: int = 3) -> dict:
    """Seconds from a decision to published probabilities that have learned from it.

    images, classes    size of the project; every image has its one positive
    answers            how often each kind of decision is given: one suggestion, a grid of 24 of one class, "nothing
                       else here"; each as soon as the one before is in the probabilities, whatever the worker is at
    repetitions        trainings: a person stops deciding, and waits until one has seen everything
    returns            {"bench", "figures", "ratios"}; the bare product is float32 features (images, 1280) times
                       weights (1280, classes), the least that any new probabilities could cost
    """
    with tempfile.TemporaryDirectory(prefix="annotator-bench-") as name:
        db, features, there = _make_project(Path(name), images, classes)
        product = _bare_product(features, classes)
        del features
        with python("annotator", "worker", db.paths.project) as process:
            say("waiting for the worker's first run")
            person = _Person(db, there, lambda: process.poll() is not None)
            wait_for(lambda: person.alone() or runs.current_run(db), "the first run", PATIENCE)
            person.wait_for_rest()
            taken = {kind: [person.answer(kind) for _ in range(answers)] for kind in KINDS}
            full, training = [], []
            for _ in range(repetitions):
                person.wait_for_rest()
                full.append(person.wait_for_training())
                training.append(runs.current_run(db).seconds)
                say(f"trained after {full[-1]:.2f} s, {training[-1]:.2f} s of them at work")
            person.wait_for_rest()
            jobs.ask_training(db)
            wait_for(lambda: person.alone() or heartbeat.worker_state(db).state == "training", "a training", PATIENCE)
            taken["training"] = person.answer_while_it_trains(answers)
    figures = {
        **{f"{kind}_to_published_{name}": value for kind, some in taken.items() for name, value in _told(some).items()},
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
    """Somebody who knows the truth and answers what the model suggests.

    there      (images, classes) bool, by the order of the ids of both
    alone      whether the worker has ended
    refills    how often, at most, a queue had to be asked until what was answered was in it no more
    """

    db: Database
    there: np.ndarray
    alone: Callable[[], bool]
    refills: int = 0

    def answer(self, kind: str) -> float:
        """Seconds from asking the store to keep what is decided to published probabilities that have seen it."""
        cells = self._cells(kind)
        words = [self._said(kind, cells)]
        started = time.perf_counter()
        decisions.decide(self.db, words)
        newest = decisions.newest_decision(self.db)
        asked = 1
        while self._offered(set(cells)):
            asked += 1
        self.refills = max(self.refills, asked)
        self._wait(lambda: runs.current_run(self.db).last_decision_id >= newest, "newer probabilities")
        taken = time.perf_counter() - started
        self.refills = max(self.refills, asked + bool(self._offered(set(cells))))
        return taken

    def answer_while_it_trains(self, most: int) -> list[float]:
        """The same of single answers, until a training that is going on has been published."""
        before, taken = runs.current_run(self.db).id, []
        while len(taken) < most:
            seconds = self.answer("single")
            if runs.current_run(self.db).id != before:
                break
            taken.append(seconds)
        return taken

    def wait_for_training(self) -> float:
        """Seconds from a single answer to a run that was trained with it."""
        started = time.perf_counter()
        decisions.decide(self.db, [self._said("single", self._cells("single"))])
        newest = decisions.newest_decision(self.db)
        self._wait(lambda: runs.current_run(self.db).trained_decision_id >= newest, "a training")
        return time.perf_counter() - started

    def wait_for_rest(self) -> None:
        """Until everything has been trained on, and the worker, which rests as long as it trained, may train again."""

        def rested() -> bool:
            run = runs.current_run(self.db)
            return (
                heartbeat.worker_state(self.db).state in ("idle", "drawing heat maps")
                and run.trained_decision_id >= decisions.newest_decision(self.db)
                and time.time() > run.finished_at + 1.5 * run.seconds + 0.5
            )

        self._wait(rested, "a worker that has rested")

    def _wait(self, found: Callable[[], object], what: str) -> None:
        wait_for(lambda: self.alone() or found(), what, PATIENCE, pause=POLL)

    def _cells(self, kind: str) -> Cells:
        """What the next decision of this kind is about: the likeliest there is."""
        if kind == "grid":
            wanted = WantedGrids(uuid.uuid4().hex, "Bench", None, GRID, (), 1)
            grids = grid.next_grids(self.db, wanted).items
            grid.next_grids(self.db, WantedGrids(wanted.holder, "Bench", None, GRID, (), 0))
            return [(tile.image.id, one.class_id) for one in grids for tile in one.tiles]
        likeliest = suggestions.missing_positives(self.db, limit=1)[0]
        if kind == "single":
            return [(likeliest.image_id, likeliest.class_id)]
        known = suggestions.answered_classes(self.db, [likeliest.image_id])[likeliest.image_id]
        return [(likeliest.image_id, number) for number in range(1, self.there.shape[1] + 1) if number not in known]

    def _said(self, kind: str, cells: Cells) -> Decision | Batch:
        name, states = str(uuid.uuid4()), [PRESENT if self.there[i - 1, c - 1] else ABSENT for i, c in cells]
        (image_id, class_id), state = cells[0], states[0]
        if kind == "grid":
            told = [(*cell, state, None) for cell, state in zip(cells, states, strict=True)]
            return Batch(name, "Bench", "grid", told)
        if kind == "done":
            return Decision(name, "done", "Bench", "done", image_id=image_id)
        return Decision(name, "label", "Bench", "suggestion", image_id=image_id, class_id=class_id, state=state)

    def _offered(self, cells: Collection[tuple[int, int]]) -> bool:
        """Whether one of these cells is in a queue of somebody who asks now."""
        everything = Wanted("review", uuid.uuid4().hex, "Bench", (), GRID, Filter(low=0.0))
        items = annotate.next_work(self.db, everything).items
        annotate.next_work(self.db, Wanted("review", everything.holder, "Bench", (), 0))
        offered = {(chip.image_id, chip.class_id) for item in items for chip in item.suggestions}
        offered |= {(one.image_id, one.class_id) for one in suggestions.missing_positives(self.db, limit=GRID)}
        for class_id in {class_id for _, class_id in list(cells)[:3]}:
            wanted = WantedGrids(uuid.uuid4().hex, "Bench", class_id, GRID, (), 1)
            for one in grid.next_grids(self.db, wanted).items:
                offered |= {(tile.image.id, class_id) for tile in one.tiles}
            grid.next_grids(self.db, WantedGrids(wanted.holder, "Bench", class_id, GRID, (), 0))
        return not offered.isdisjoint(cells)


def _told(seconds: list[float]) -> dict[str, float | int]:
    if not seconds:
        return {"count": 0}
    return {
        "p50_seconds": round(statistics.median(seconds), 3),
        "p95_seconds": round(float(np.percentile(seconds, 95)), 3),
        "max_seconds": round(max(seconds), 3),
        "count": len(seconds),
    }


def _make_project(folder: Path, image_count: int, class_count: int) -> tuple[Database, np.ndarray, np.ndarray]:
    """The project, its features as float32, and which class is in which image, (images, classes) bool."""
    say(f"making {image_count:,} images, {class_count:,} classes")
    chance = np.random.default_rng(0)
    pictures = folder / "images"
    pictures.mkdir()
    for number in range(image_count):
        pixels = chance.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(pictures / f"{number:06d}.bmp")
    db = Database(folder / "project", create=True)
    register(db, pictures, sorted(path.name for path in pictures.iterdir()))
    store_classes.add_classes(db, [(f"class {number + 1}", "") for number in range(class_count)])
    directions = chance.normal(size=(class_count, DIMENSIONS)).astype(np.float32)
    there = chance.random((image_count, class_count)) < min(0.5, 2.5 / class_count)
    there[np.arange(image_count), chance.integers(0, class_count, image_count)] = True
    features = np.empty((image_count, DIMENSIONS), np.float16)
    ids = np.array(sorted(image.id for image in store_images.all_images(db)))
    for start in range(0, image_count, AT_ONCE):
        some = slice(start, start + AT_ONCE)
        noise = chance.normal(scale=2, size=(len(ids[some]), DIMENSIONS)).astype(np.float32)
        features[some] = np.maximum(there[some] @ directions + noise, 0)  # as after the last layer of a network
        regions = np.broadcast_to(features[some, None], (len(ids[some]), REGIONS, DIMENSIONS))
        add_features(db.paths.features(DEFAULT_BACKBONE), ids[some], features[some], regions)
    known = [one.id for one in store_classes.all_classes(db)]
    clicks = [known[chance.choice(np.flatnonzero(row))] for row in there]
    given = [_click(image_id, class_id) for image_id, class_id in zip(ids.tolist(), clicks, strict=True)]
    for start in range(0, len(given), AT_ONCE):
        decisions.decide(db, given[start : start + AT_ONCE])
    return db, features.astype(np.float32), there


def _click(image_id: int, class_id: int) -> Decision:
    return Decision(str(uuid.uuid4()), "label", "Bench", "click", image_id=image_id, class_id=class_id, state=PRESENT)


def _bare_product(features: np.ndarray, class_count: int) -> float:
    """Seconds of one matrix product, median of nine."""
    weights = np.random.default_rng(1).normal(size=(features.shape[1], class_count)).astype(np.float32)
    taken = []
    for _ in range(10):
        started = time.perf_counter()
        features @ weights
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[1:])
