"""The last decision -> new probabilities published: what a person's click is worth to the model, and how soon.

A made-up project: tiny images of random pixels, features drawn at random around a direction of each class (1280
numbers each, float16, in the cache, so nothing is embedded), and one positive decision on every image, which is as much
as there ever is to learn from one click an image. The worker is the real one, in its own process, at its own priority.
"""

import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from annotator.benchmark.processes import python, say, wait_for
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE
from annotator.store import classes as store_classes
from annotator.store import decisions, heartbeat, runs
from annotator.store import images as store_images
from annotator.store.arrays import add_features
from annotator.store.database import Database

DIMENSIONS, REGIONS = 1280, 9  # as the default backbone has them
AT_ONCE = 5000  # decisions in one transaction
POLL = 0.005  # seconds between two looks at the store
PATIENCE = 600.0


def measure(images: int = 10_000, classes: int = 20, *, repetitions: int = 5) -> dict:
    """Seconds from one more decision to a published run that has learned from it.

    images, classes    size of the project; every image has its one positive
    repetitions        decisions given to a worker that has nothing to do (as by a person who decides now and then),
                       and again as many given one upon the other, each as soon as the one before has been learned: the
                       worker then rests for as long as it trained, and that is part of the time
    returns            {"bench", "figures", "ratios"}; the bare product is float32 features (images, 1280) times
                       weights (1280, classes), the least that any new probabilities could cost
    """
    with tempfile.TemporaryDirectory(prefix="annotator-bench-") as name:
        db, features = _make_project(Path(name), images, classes)
        product = _bare_product(features, classes)
        with python("annotator", "worker", db.paths.project) as process:
            say("waiting for the worker's first run")
            dead = lambda: process.poll() is not None  # noqa: E731 - asked in every wait
            wait_for(lambda: dead() or runs.current_run(db), "the first run", PATIENCE)
            now_and_then, training = [], []
            for _ in range(repetitions):
                wait_for(lambda: dead() or _rested(db), "an idle worker", PATIENCE)
                now_and_then.append(_decide_and_wait(db, dead))
                training.append(runs.current_run(db).seconds)
                say(f"published after {now_and_then[-1]:.2f} s, {training[-1]:.2f} s of them training")
            one_upon_another = [_decide_and_wait(db, dead) for _ in range(repetitions)]
    median = statistics.median(now_and_then)
    return {
        "bench": "freshness",
        "figures": {
            "decision_to_published_p50_seconds": round(median, 3),
            "decision_to_published_max_seconds": round(max(now_and_then), 3),
            "one_upon_another_p50_seconds": round(statistics.median(one_upon_another), 3),
            "training_and_writing_p50_seconds": round(statistics.median(training), 3),
            "bare_matrix_product_seconds": round(product, 5),
            "images": images,
            "classes": classes,
            "repetitions": repetitions,
        },
        "ratios": {"decision_to_published_over_bare_matrix_product": round(median / product, 1)},
    }


def _make_project(folder: Path, image_count: int, class_count: int) -> tuple[Database, np.ndarray]:
    """The project, and its features as float32."""
    say(f"making {image_count:,} images, {class_count:,} classes")
    chance = np.random.default_rng(0)
    pictures = folder / "images"
    pictures.mkdir()
    for number, pixels in enumerate(chance.integers(0, 256, (image_count, 8, 8, 3), dtype=np.uint8)):
        Image.fromarray(pixels).save(pictures / f"{number:06d}.bmp")
    db = Database(folder / "project", create=True)
    store_images.register(db, pictures, sorted(path.name for path in pictures.iterdir()))
    store_classes.add_classes(db, [(f"class {number + 1}", "") for number in range(class_count)])
    directions = chance.normal(size=(class_count, DIMENSIONS)).astype(np.float32)
    there = chance.random((image_count, class_count)) < min(0.5, 2.5 / class_count)
    there[np.arange(image_count), chance.integers(0, class_count, image_count)] = True
    features = there @ directions + chance.normal(scale=2, size=(image_count, DIMENSIONS)).astype(np.float32)
    features = np.maximum(features, 0).astype(np.float16)  # as after the last layer of a network
    ids = [image.id for image in store_images.all_images(db)]
    regions = np.broadcast_to(features[:, None], (image_count, REGIONS, DIMENSIONS))
    add_features(db.paths.features(DEFAULT_BACKBONE), np.array(ids), features, regions)
    known = [one.id for one in store_classes.all_classes(db)]
    clicks = [known[chance.choice(np.flatnonzero(row))] for row in there]
    given = [_decision(image_id, class_id) for image_id, class_id in zip(ids, clicks, strict=True)]
    for start in range(0, len(given), AT_ONCE):
        decisions.decide(db, given[start : start + AT_ONCE])
    return db, features.astype(np.float32)


def _decision(image_id: int, class_id: int) -> Decision:
    return Decision(str(uuid.uuid4()), "label", "Bench", "click", image_id=image_id, class_id=class_id, state=1)


def _rested(db: Database) -> bool:
    """Nothing to do, and free to train: the worker rests after a training for as long as it took."""
    run = runs.current_run(db)
    return (
        heartbeat.worker_state(db).state == "idle"
        and run.last_decision_id >= decisions.newest_decision(db)
        and time.time() > run.finished_at + 1.5 * run.seconds + 0.5
    )


def _decide_and_wait(db: Database, dead: Callable[[], bool]) -> float:
    """Seconds from asking the store to keep a decision to a published run that includes it."""
    open_cell = _an_open_cell(db)
    started = time.perf_counter()
    decisions.decide(db, [_decision(*open_cell)])
    newest = decisions.newest_decision(db)
    wait_for(lambda: dead() or runs.current_run(db).last_decision_id >= newest, "a newer run", PATIENCE, pause=POLL)
    return time.perf_counter() - started


def _an_open_cell(db: Database) -> tuple[int, int]:
    """An image and a class that nobody has answered yet."""
    answered = {(image_id, class_id) for image_id, class_id, _ in decisions.label_cells(db)[0]}
    known = [one.id for one in store_classes.all_classes(db)]
    ids = (image.id for image in store_images.all_images(db))
    return next(cell for image_id in ids for cell in ((image_id, one) for one in known) if cell not in answered)


def _bare_product(features: np.ndarray, class_count: int) -> float:
    """Seconds of one matrix product, median of nine."""
    weights = np.random.default_rng(1).normal(size=(features.shape[1], class_count)).astype(np.float32)
    taken = []
    for _ in range(10):
        started = time.perf_counter()
        features @ weights
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[1:])
