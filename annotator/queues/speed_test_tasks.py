"""Speed test tasks: grids, images and clicks, in sizes that separate the parts of the time model.

Nothing is leased, and only times are stored.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from annotator.records import PRESENT, Image
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import blind_visibility, label_cells, project_counts
from annotator.store.people import speed_tests

FEW_CLASSES, MANY_CLASSES = 4, 20  # classes that an image is asked about
TASK_PLAN = (
    ("grid", 12, 1),
    ("image", FEW_CLASSES, 0),
    ("click", 1, 0),
    ("grid", 24, 6),
    ("image", MANY_CLASSES, 0),
    ("click", 1, 0),
    ("grid", 48, 3),
    ("click", 1, 0),
    ("image", FEW_CLASSES, 0),
    ("grid", 12, 5),
    ("image", MANY_CLASSES, 0),
    ("click", 1, 0),
    ("grid", 24, 1),
    ("click", 1, 0),
)
"""Kind, tiles or classes, and of a grid how many tiles that people have marked as present are among them."""
MIN_IMAGES = 4
MAX_CONFIRMED_IMAGES = 200  # newest positives of a class that tiles are taken from


@dataclass(frozen=True)
class SpeedTestTask:
    """One task of the speed test."""

    number: int
    # grid, image or click
    kind: str
    # 0 unless a grid
    class_id: int
    images: tuple[Image, ...]
    class_ids: tuple[int, ...]


@dataclass(frozen=True)
class SpeedTest:
    """One round of the speed test."""

    # number of tests started
    round: int
    tasks: tuple[SpeedTestTask, ...]
    task_count: int = len(TASK_PLAN)
    # why no tasks remain, or ""
    empty_reason: str = ""


def load_speed_test(db: Database, annotator: str) -> SpeedTest:
    """Return the annotator's unfinished speed test, or a new one."""
    in_order = classes.load_ordered_classes(db)
    if project_counts.count_images_by_stage(db)["all"] < MIN_IMAGES or not in_order:
        return SpeedTest(1, (), empty_reason=f"The speed test needs a class and at least {MIN_IMAGES} images.")
    # Classes without a key are found by name, which is another task.
    all_classes = [class_.id for class_ in in_order if class_.key] or [class_.id for class_ in in_order]
    round_, done = speed_tests.load_newest_round(db, annotator)
    if not round_ or len(done) == len(TASK_PLAN):
        round_, done = round_ + 1, {}
    tasks = [
        _build_task(db, annotator, round_, task, all_classes) for task in range(len(TASK_PLAN)) if task not in done
    ]
    shown = tuple(task for task in tasks if task.images)
    return SpeedTest(round_, shown, empty_reason="" if shown else "No image of this project can be shown.")


def _build_task(db: Database, annotator: str, round_: int, task: int, all_classes: list[int]) -> SpeedTestTask:
    """Return task number `task`, identical for the same annotator and round."""
    kind, size, present = TASK_PLAN[task]
    seed = hashlib.sha256(f"{annotator}\n{round_}\n{task}".encode()).digest()
    rng = np.random.default_rng(list(seed))
    if kind == "grid":
        class_id, image_ids = _choose_tiles(db, rng, size, present, all_classes)
        return SpeedTestTask(task, kind, class_id, _load_images(db, image_ids), (class_id,))
    asked = sorted(rng.permutation(len(all_classes))[:size].tolist()) if kind == "image" else range(len(all_classes))
    image_ids = images.load_ids_from_hash(db, rng.bytes(8).hex(), 1)
    return SpeedTestTask(task, kind, 0, _load_images(db, image_ids), tuple(all_classes[place] for place in asked))


def _choose_tiles(
    db: Database, rng: np.random.Generator, size: int, present: int, all_classes: list[int]
) -> tuple[int, list[int]]:
    """Return a class and `size` grid images, at most `present` of them labeled present."""
    counts = project_counts.count_labels_by_class(db)
    enough = [class_id for class_id in all_classes if counts.get(class_id, (0, 0, 0))[0] >= present]
    class_id = int(rng.choice(enough or all_classes))
    seen = label_cells.find_newest_positives(db, class_id, MAX_CONFIRMED_IMAGES)
    seen = rng.permutation(sorted(set(seen) - label_cells.find_unaskable_images(db, seen))).tolist()[:present]
    others = images.load_ids_from_hash(db, rng.bytes(8).hex(), 4 * size)
    # showing them here would tell whether the class is known to be present
    away = blind_visibility.find_hidden_images(db, others)
    others = [image_id for image_id in others if image_id not in away]
    states = label_cells.load_states(db, class_id, others)
    others.sort(key=lambda image_id: states.get(image_id) == PRESENT)  # stable: those that are known to show it last
    rest = [image_id for image_id in others if image_id not in seen][: size - len(seen)]
    return class_id, rng.permutation([*seen, *rest]).tolist()


def _load_images(db: Database, image_ids: list[int]) -> tuple[Image, ...]:
    found = images.load_images(db, image_ids)
    return tuple(found[image_id] for image_id in image_ids if image_id in found)
