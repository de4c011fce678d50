"""What is measured on: the sample images as often as needed, and projects of them, with a run where one is wanted."""

import uuid
from pathlib import Path

import numpy as np
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE, FIRST_RUN_AT
from annotator.snapshot import rankings
from annotator.store import classes, decisions, images, runs
from annotator.store.arrays import add_features, save_array
from annotator.store.database import Database
from annotator.store.registration import register

SAMPLE_IMAGES = Path(__file__).resolve().parents[3] / "sample_data" / "images"
DIMENSIONS, REGIONS = 1280, 9  # as the default backbone has them
IN_HAND = 200  # images beyond those that get a label: a page holds up to 64, and leaves half of the last ones alone
HEATMAP_SIDE = 160


def make_images(folder: Path, count: int) -> None:
    """The sample images as often as needed, each with a comment of its own, so that all contents differ.

    Raises AnnotatorError when the sample images are not there.
    """
    samples = [path.read_bytes() for path in sorted(SAMPLE_IMAGES.glob("*.jpg"))]
    if not samples:
        raise AnnotatorError(f"The sample images are not where they should be: {SAMPLE_IMAGES}. Install again.")
    folder.mkdir(parents=True)
    for number in range(count):
        sample, comment = samples[number % len(samples)], f"{number:07d}".encode()
        length = (len(comment) + 2).to_bytes(2, "big")
        (folder / f"{number:05d}.jpg").write_bytes(sample[:2] + b"\xff\xfe" + length + comment + sample[2:])


def make_project(folder: Path, image_count: int, class_count: int) -> Database:
    """A project of new images in this folder, with as many labels as the first training wants."""
    make_images(folder / "images", image_count)
    db = Database(folder / "project", create=True)
    register(db, folder / "images", sorted(path.name for path in (folder / "images").iterdir()))
    classes.add_classes(db, [(f"class {number + 1}", "") for number in range(class_count)])
    known = [one.id for one in classes.all_classes(db)]
    given = [
        Decision(str(uuid.uuid4()), "label", "Somebody", "click", image_id, known[number % len(known)], 1)
        for number, image_id in enumerate(images.in_working_order(db)[-FIRST_RUN_AT:])
    ]
    decisions.decide(db, given)
    return db


def add_noise_as_features(db: Database) -> None:
    """Features of every image: a training on noise takes as long as on any other."""
    ids = [image.id for image in images.all_images(db)]
    noise = np.random.default_rng(0).normal(size=(len(ids), DIMENSIONS)).astype(np.float16)
    regions = np.broadcast_to(noise[:, None], (len(ids), REGIONS, DIMENSIONS))  # none is missing: nothing is embedded
    add_features(db.paths.features(DEFAULT_BACKBONE), np.array(ids), noise, regions)


def publish_run(db: Database, probabilities: np.ndarray) -> int:
    """Make these probabilities the current run, as a worker would have left them; its id.

    probabilities    (images, classes) float in [0, 1], in the order of the ids of both
    """
    from models.linear.training import Head  # torch is loaded only where a run is wanted

    class_ids = [one.id for one in classes.all_classes(db)]
    image_ids = np.array(sorted(image.id for image in images.all_images(db)))
    probabilities, newest = probabilities.astype(np.float16), decisions.newest_decision(db)
    run_id = runs.begin(
        db,
        method="an",
        parameters={},
        backbone=DEFAULT_BACKBONE,
        class_ids=class_ids,
        images=len(image_ids),
        last_decision_id=newest,
        threshold=0.5,
    )
    folder = db.paths.run(run_id)
    save_array(folder / "image_ids.npy", image_ids)
    save_array(folder / "probabilities.npy", probabilities)
    rankings.save(folder, rankings.build(db, newest, image_ids, np.array(class_ids), probabilities))
    Head(DIMENSIONS, len(class_ids)).save(folder / "head.safetensors")
    runs.publish(db, run_id, epochs=1, seconds=1.0, loss=[1.0])
    return run_id


def draw_heatmaps(db: Database, run_id: int, suggested: np.ndarray) -> None:
    """Heat maps for these cells, as a worker would have left them: what is measured is the page, not the drawing.

    suggested    (images, classes) bool, in the order of the ids of both
    """
    image_ids = sorted(image.id for image in images.all_images(db))
    class_ids = [one.id for one in classes.all_classes(db)]
    down, across = np.mgrid[:HEATMAP_SIDE, :HEATMAP_SIDE]
    heat = np.exp(-((down - 60) ** 2 + (across - 90) ** 2) / 1500)
    pixels = np.stack([np.full_like(heat, 255), 200 * (1 - heat), np.zeros_like(heat), 220 * heat], axis=2)
    drawn = None
    for row, column in np.argwhere(suggested):
        place = db.paths.heatmap(run_id, image_ids[row], class_ids[column])
        if drawn is None:
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.astype(np.uint8), "RGBA").save(place, format="PNG")
            drawn = place.read_bytes()
        place.write_bytes(drawn)
