"""Projects for a measurement: images, classes, features, runs and heat maps, as the app and its worker leave them.

A project lies in folder/project and its images in folder/images; its classes are called "class 1", "class 2", ...
"""

import time
import uuid
from pathlib import Path

import numpy as np
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE, MIN_IMAGES_FOR_FIRST_RUN, SAMPLE_DATA_FOLDER
from annotator.snapshot import rankings
from annotator.store.classes import classes
from annotator.store.database.arrays import open_array, save_array
from annotator.store.database.database import Database
from annotator.store.features.project_contents import ProjectContents
from annotator.store.features.shards import write_shard
from annotator.store.images import images
from annotator.store.images.registration import register_folder
from annotator.store.labels import decisions
from annotator.store.runs import runs

FEATURE_DIMENSIONS, REGIONS_PER_IMAGE = 1280, 9  # as the default backbone has them
# images beyond those that get a label: a page holds up to 64, and leaves half of the last ones alone
IMAGES_IN_HAND = 200
HEATMAP_SIDE = 160
IMAGES_PER_SHARD = 5000  # images whose features are written at once


def write_sample_images(folder: Path, count: int) -> None:
    """Write `count` sample images, repeated as needed; each has a comment of its own, so that all contents differ.

    Raises:
        AnnotatorError: The sample images are not there.
    """
    samples = [path.read_bytes() for path in sorted((SAMPLE_DATA_FOLDER / "images").glob("*.jpg"))]
    if not samples:
        raise AnnotatorError(
            f"The sample images are not where they should be: {SAMPLE_DATA_FOLDER / 'images'}. Install again."
        )
    folder.mkdir(parents=True)
    for number in range(count):
        sample, comment = samples[number % len(samples)], f"{number:07d}".encode()
        length = (len(comment) + 2).to_bytes(2, "big")
        (folder / f"{number:05d}.jpg").write_bytes(sample[:2] + b"\xff\xfe" + length + comment + sample[2:])


def write_noise_images(
    folder: Path, count: int, size: tuple[int, int], suffix: str = ".png", enlarged: tuple[int, int] | None = None
) -> None:
    """Write images of random pixels, the same at each call.

    Args:
        folder: A new folder for the images.
        count: The number of images.
        size: Width and height of the random pixels.
        suffix: The file suffix, which decides the format.
        enlarged: Width and height of the files; None: size.
    """
    folder.mkdir(parents=True)
    chance = np.random.default_rng(1)
    for number in range(count):
        picture = Image.fromarray(chance.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))
        (picture.resize(enlarged) if enlarged else picture).save(folder / f"{number:06d}{suffix}", quality=85)


def make_empty_project(folder: Path, class_count: int) -> Database:
    """Make a project without decisions, of the images in folder/images."""
    db = Database(folder / "project", create=True)
    register_folder(db, folder / "images", sorted(path.name for path in (folder / "images").iterdir()))
    classes.add_classes(db, [(f"class {number + 1}", "") for number in range(class_count)])
    return db


def make_project(folder: Path, image_count: int, class_count: int) -> Database:
    """Make a project of sample images with as many labels as the first training needs."""
    write_sample_images(folder / "images", image_count)
    db = make_empty_project(folder, class_count)
    class_ids = _load_class_ids(db)
    labels = [
        Decision(str(uuid.uuid4()), "label", "Somebody", "click", image_id, class_ids[number % len(class_ids)], 1)
        for number, image_id in enumerate(images.load_ids_in_working_order(db)[-MIN_IMAGES_FOR_FIRST_RUN:].tolist())
    ]
    decisions.save(db, labels)
    return db


def save_features(db: Database, features: np.ndarray) -> None:
    """Save features (images, D) float16 in the order of the ids, so that the worker has nothing to embed.

    Each region of an image gets the features of the image.
    """
    image_ids = _load_image_ids(db)
    for start in range(0, len(image_ids), IMAGES_PER_SHARD):
        rows = slice(start, start + IMAGES_PER_SHARD)
        regions = np.broadcast_to(features[rows, None], (len(image_ids[rows]), REGIONS_PER_IMAGE, features.shape[1]))
        contents = ProjectContents(db).load_hashes(image_ids[rows])
        write_shard(db.paths.features(DEFAULT_BACKBONE), image_ids[rows], contents, features[rows], regions)


def save_noise_as_features(db: Database) -> None:
    """Save random features for every image: training on noise takes as long as on real features."""
    noise = np.random.default_rng(0).normal(size=(len(_load_image_ids(db)), FEATURE_DIMENSIONS)).astype(np.float16)
    save_features(db, noise)


def publish_run(db: Database, probabilities: np.ndarray) -> int:
    """Make these probabilities the current run, as a worker would have left them; return its id.

    Args:
        db: The project's database.
        probabilities: (images, classes) float in [0, 1], in the order of the ids of both.
    """
    run_id = begin_run(db)
    save_array(db.paths.run(run_id) / "probabilities.npy", probabilities.astype(np.float16))
    finish_run(db, run_id)
    return run_id


def begin_run(db: Database) -> int:
    """Add a run that has seen every decision; its probabilities.npy, (images, classes) float16, is still missing."""
    image_ids = _load_image_ids(db)
    run_id = runs.begin(
        db,
        method="an",
        parameters={},
        backbone=DEFAULT_BACKBONE,
        class_ids=_load_class_ids(db),
        images=len(image_ids),
        last_decision_id=decisions.get_newest_decision_id(db),
        threshold=0.5,
    )
    save_array(db.paths.run(run_id) / "image_ids.npy", image_ids)
    return run_id


def finish_run(db: Database, run_id: int) -> float:
    """Rank and publish a run whose probabilities are written; return the seconds that the rankings took."""
    from spmll.linear.training import Head  # torch is loaded only where a run is wanted

    folder, class_ids = db.paths.run(run_id), _load_class_ids(db)
    image_ids, probabilities = (open_array(folder / f"{name}.npy") for name in ("image_ids", "probabilities"))
    started = time.perf_counter()
    ranked = rankings.build(db, decisions.get_newest_decision_id(db), image_ids, np.array(class_ids), probabilities)
    rankings.save(folder, ranked)
    seconds = time.perf_counter() - started
    Head(FEATURE_DIMENSIONS, len(class_ids)).save(folder / "head.safetensors")
    runs.publish(db, run_id, epochs=1, seconds=1.0, loss=[1.0])
    return seconds


def draw_heatmaps(db: Database, run_id: int, suggested: np.ndarray) -> None:
    """Store heat maps of these cells as a worker would have left them; drawing them is not part of what is measured.

    Args:
        db: The project's database.
        run_id: The id of the run.
        suggested: (images, classes) bool, in the order of the ids of both.
    """
    image_ids, class_ids = _load_image_ids(db).tolist(), _load_class_ids(db)
    down, across = np.mgrid[:HEATMAP_SIDE, :HEATMAP_SIDE]
    heat = np.exp(-((down - 60) ** 2 + (across - 90) ** 2) / 1500)
    pixels = np.stack([np.full_like(heat, 255), 200 * (1 - heat), np.zeros_like(heat), 220 * heat], axis=2)
    content = None
    for row, column in np.argwhere(suggested):
        path = db.paths.heatmap(run_id, image_ids[row], class_ids[column])
        if content is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.astype(np.uint8), "RGBA").save(path, format="PNG")
            content = path.read_bytes()
        path.write_bytes(content)


def _load_image_ids(db: Database) -> np.ndarray:
    return np.array([row["id"] for row in db.rows("SELECT id FROM image ORDER BY id")])


def _load_class_ids(db: Database) -> list[int]:
    return [class_.id for class_ in classes.load_active_classes(db)]
