"""What is kept of stages, labels and classes is what a fresh count finds, after every change that pages can make."""

import uuid

import numpy as np
import pytest
from harness.made_maps import in_rows

from annotator.quality import certification
from annotator.queues import decided_images
from annotator.records import Decision
from annotator.snapshot import image_map
from annotator.store.classes import class_changes, classes
from annotator.store.database import versions
from annotator.store.labels import decisions, label_cells, project_counts

COMPLETE = 3


def decide(db, action: str, image_id: int = 1, **more) -> str:
    name = str(uuid.uuid4())
    more = {"source": "click", "image_id": image_id} | more
    assert not decisions.save(db, [Decision(name, action, "Ann", **more)]).refused
    return name


CHANGES = {
    "a label": lambda db: decide(db, "label", 3, class_id=1, state=1),
    "a skip": lambda db: decide(db, "skip", 4),
    "an image that is complete": lambda db: decide(db, "done", 2),
    "a new class": lambda db: classes.add_classes(db, [("owl", "")]),
    "a complete image again": lambda db: decide(db, "done", 2),
    "two more classes": lambda db: classes.add_classes(db, [("hare", ""), ("newt", "")]),
    "a step back": lambda db: decisions.undo(db, "Ann"),
    "a class described": lambda db: class_changes.edit(db, "Ann", {1: {"description": "red"}}),
    "a key moved": lambda db: class_changes.edit(db, "Ann", {1: {"key": "x"}}),
}


def stages(db, map_) -> list[int]:
    return label_cells.load_stage_column(db, map_.image_ids).tolist()


KEPT = {
    "the map's stages": (lambda db, map_: image_map.load_stage_bytes(db, map_).tolist(), stages),
    "the map's complete images and Progress'": (
        lambda db, map_: int(np.sum(image_map.load_stage_bytes(db, map_) == COMPLETE)),
        lambda db, map_: project_counts.count_images_by_stage(db)["complete"],
    ),
    "the map's labels of a class": (
        lambda db, map_: image_map.load_state_bytes(db, map_, 1).tolist(),
        lambda db, map_: [
            {None: 0, 1: 1, -1: 2, 0: 3}[
                db.value("SELECT state FROM label WHERE image_id = ? AND class_id = 1", [image_id])
            ]
            for image_id in map_.image_ids.tolist()
        ],
    ),
    "the tallies of stages": (
        lambda db, map_: [project_counts.count_images_by_stage(db)[name] for name in ("all", "complete", "skipped")],
        lambda db, map_: [
            db.value(f"SELECT count(*) FROM image WHERE {which}") for which in ("true", "stage = 3", "stage = 1")
        ],
    ),
    "the images of a person": (
        lambda db, map_: np.flatnonzero(decided_images.get_decided_mask(db, "Ann")).tolist(),
        lambda db, map_: [
            row["image_id"]
            for row in db.rows("SELECT DISTINCT image_id FROM decision WHERE annotator = 'Ann' ORDER BY image_id")
        ],
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_cached_counts_equal_a_recount_after_every_kind_of_change(db, name):
    kept, fresh = KEPT[name]
    map_ = in_rows(db)
    assert kept(db, map_) == fresh(db, map_)
    for change, act in CHANGES.items():
        act(db)
        assert kept(db, map_) == fresh(db, map_), change


def test_every_kind_of_change_increases_the_label_version_and_reading_does_not(db):
    seen = [versions.get_label_version(db)]
    stamps = [certification.get_change_key(db)]
    for change, act in CHANGES.items():
        assert versions.get_label_version(db) == seen[-1], "reading changes nothing"
        act(db)
        assert versions.get_label_version(db) > seen[-1], change
        assert certification.get_change_key(db) != stamps[-1], change
        seen.append(versions.get_label_version(db))
        stamps.append(certification.get_change_key(db))
