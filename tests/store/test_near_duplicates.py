"""Twins: which images count as nearly the same, what the Gallery shows of them, and what is said of them at once."""

import uuid
from pathlib import Path

import numpy as np
import pytest
from harness.asked import asked
from harness.feature_shards import add_features
from harness.gray_images import noise
from harness.worker_runs import find_near_duplicates
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from annotator.exchange.project_setup import set_up_project
from annotator.records import Decision
from annotator.snapshot import gallery_listing
from annotator.snapshot.filters import GalleryFilter
from annotator.snapshot.gallery_listing import Sorting
from annotator.store.database.database import Database
from annotator.store.images import near_duplicate_groups
from annotator.store.labels import decisions
from annotator.store.networks import configuration
from spmll.near_duplicates import group_similar_hashes, split_groups_by_features


@pytest.fixture
def doubled(tmp_path: Path) -> Database:
    """Six pictures, named so that twins are not side by side: three of one scene, two of another, one alone."""
    scene, other = noise((320, 240), seed=1, patch=40), noise((320, 240), seed=2, patch=40)
    made = {
        "1.png": scene,
        "4 large.png": scene.resize((640, 480), Image.Resampling.BICUBIC),
        "6 pale.png": scene.point(lambda gray: gray * 0.8 + 40),
        "2.png": other,
        "5.jpg": other,
        "3 alone.png": noise((320, 240), seed=3, patch=40),
    }
    (tmp_path / "photos").mkdir()
    (tmp_path / "classes.txt").write_text("fox\nheron\n")
    for name, picture in made.items():
        picture.save(tmp_path / "photos" / name)
    set_up_project(tmp_path / "project", images_folder=tmp_path / "photos", class_file=tmp_path / "classes.txt")
    return Database(tmp_path / "project")


def names(db: Database, sorting: Sorting | None = None, **filter_: object) -> list[str]:
    ids = gallery_listing.get_listing(db, GalleryFilter.build(**filter_), sorting or Sorting()).get_ids(0, 100)
    known = dict(db.tuples("SELECT id, name FROM image"))
    return [known[image_id] for image_id in ids]


def id_of(db: Database, name: str) -> int:
    return db.value("SELECT id FROM image WHERE name = ?", [name])


@settings(deadline=None)  # the first one loads scipy
@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8), st.integers(0, 3), st.randoms(use_true_random=False)
)
def test_hashes_that_differ_in_three_bits_are_grouped_regardless_of_order(seeds, bits, chance):
    close = [value ^ sum(1 << bit for bit in chance.sample(range(64), bits)) for value in seeds]
    hashes = np.array([*seeds, *close], np.uint64)
    groups = group_similar_hashes(hashes)
    assert (groups[: len(seeds)] == groups[len(seeds) :]).all()
    turned = group_similar_hashes(hashes[::-1])[::-1]
    assert (np.equal.outer(groups, groups) == np.equal.outer(turned, turned)).all()


def test_images_of_equal_hash_are_not_near_duplicates_when_their_embeddings_differ():
    features = np.eye(3)[[0, 1, 0, 1, 2, 0]]
    has = np.array([True, True, True, True, True, False])
    assert split_groups_by_features(np.zeros(6, np.int64), has, features.__getitem__).tolist() == [0, 1, 0, 1, 4, 0]
    assert split_groups_by_features(np.arange(6), has, features.__getitem__).tolist() == list(range(6))


def test_near_duplicates_are_found_by_hash_and_sorted_together(doubled):
    assert names(doubled, twins="has") == []
    find_near_duplicates(doubled)
    assert names(doubled, twins="has") == ["1.png", "2.png", "4 large.png", "5.jpg", "6 pale.png"]
    assert names(doubled, twins="further") == ["4 large.png", "5.jpg", "6 pale.png"]
    beside = names(doubled, Sorting("twins"))
    assert beside == ["1.png", "4 large.png", "6 pale.png", "2.png", "5.jpg", "3 alone.png"]


def test_different_embeddings_separate_near_duplicates_and_a_new_copy_joins_its_group(doubled, tmp_path):
    db = doubled
    ids = np.array([row[0] for row in db.tuples("SELECT id FROM image ORDER BY id")])
    features = np.ones((6, 4))
    features[ids == id_of(db, "5.jpg")] = [1, -1, 1, -1]
    add_features(db, configuration.get_backbone(db), ids, features, np.zeros((6, 9, 4)))
    find_near_duplicates(db)
    assert names(db, twins="has") == ["1.png", "4 large.png", "6 pale.png"]
    noise((320, 240), seed=3, patch=40).save(tmp_path / "photos" / "7.jpg", quality=90)
    set_up_project(db.paths.project, images_folder=tmp_path / "photos")
    find_near_duplicates(db)
    assert names(db, twins="further") == ["4 large.png", "6 pale.png", "7.jpg"]
    assert near_duplicate_groups.find_near_duplicates(db, id_of(db, "7.jpg")) == [id_of(db, "3 alone.png")]


def test_images_have_no_near_duplicates_after_their_groups_were_dissolved(doubled):
    find_near_duplicates(doubled)
    ids = np.array([row[0] for row in doubled.tuples("SELECT id FROM image ORDER BY id")])
    assert near_duplicate_groups.save_groups(doubled, ids, ids) == 3
    assert names(doubled, twins="has") == [] and all(
        near_duplicate_groups.find_near_duplicates(doubled, image_id) == [] for image_id in ids.tolist()
    )


def test_near_duplicates_route_returns_only_labels_answered_by_the_requesting_annotator(doubled):
    db = doubled
    find_near_duplicates(db)
    first, large, pale = (id_of(db, name) for name in ("1.png", "4 large.png", "6 pale.png"))
    given = [
        Decision(str(uuid.uuid4()), "label", person, "click", image, class_id, 1)
        for person, image, class_id in (("Ann", first, 1), ("Ben", first, 2), ("Ben", pale, 1))
    ]
    assert not decisions.save(db, given).refused
    with asked(db.paths.project) as app:
        told = app.post("/api/twins", {"image": first})[1]
        assert told["answers"] == [[1, 1]] and told["more"] == 0
        assert [(twin["id"], twin["labels"]) for twin in told["twins"]] == [(large, []), (pale, [1])]
        assert app.post("/api/twins", {"image": id_of(db, "3 alone.png")})[1]["twins"] == []
        assert app.post("/api/twins", {"image": 99})[1]["twins"] == []


def test_flags_of_one_batch_are_undone_in_one_step(doubled):
    given = [
        Decision(str(uuid.uuid4()), "flag", "Ann", "gallery", image, note="twin of 1.png", batch="a-batch-of-flags")
        for image in (2, 3)
    ]
    assert not decisions.save(doubled, given).refused
    [step] = decisions.load_undoable(doubled, "Ann", 10, 10)
    decisions.save(doubled, [Decision(str(uuid.uuid4()), "undo", "Ann", "click", undoes=step.uuid)])
    assert names(doubled, flagged=True) == [] and decisions.load_undoable(doubled, "Ann", 10, 10) == []
