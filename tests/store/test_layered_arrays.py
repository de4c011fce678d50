"""Versions that hold only the classes they changed: read as one array, bounded on the disk, ranked as a full sort."""

import numpy as np
import pytest
from harness.answers import answer_cell

from annotator.snapshot import rankings
from annotator.store.classes import classes
from annotator.store.database import arrays
from annotator.store.labels import decisions
from annotator.store.runs import probabilities, runs
from annotator.store.runs.probabilities import COLUMNS_FILE, WHOLE_FILE, LayeredProbabilities

IMAGES, CLASSES = 24, 9


@pytest.fixture
def run_id(db):
    """A run of random probabilities of nine classes, not published."""
    classes.add_classes(db, [(f"more {number}", "") for number in range(CLASSES - 3)])
    class_ids = list(range(1, CLASSES + 1))
    run_id = runs.begin(
        db, method="an", parameters={}, backbone="x", class_ids=class_ids, images=24, last_decision_id=0, threshold=0.5
    )
    chances = np.random.default_rng(0).random((IMAGES, CLASSES)).astype(np.float16)
    arrays.save_array(db.paths.run(run_id) / WHOLE_FILE, chances)
    runs.publish(db, run_id, epochs=1, seconds=1, loss=[])
    return run_id


def next_version(db, run_id: int, version: int, dense: np.ndarray, columns: list[int], seed: int) -> None:
    """Publish a version as the worker does: other probabilities in some columns."""
    dense[:, columns] = np.random.default_rng(seed).random((IMAGES, len(columns)))
    if probabilities.should_write_whole(db, run_id, version - 1, len(columns)):
        probabilities.save_whole(db, run_id, version, dense)
    else:
        probabilities.save_columns(db, run_id, version, version - 1, columns, np.ascontiguousarray(dense[:, columns].T))
    runs.publish_version(db, run_id, version, version)


KEYS = {
    "row": 3,
    "last row": -1,
    "slice": slice(2, 7),
    "rows": np.array([5, 0, 5]),
    "no row": np.zeros(0, np.int64),
    "list": [4, 1],
    "mask": np.arange(IMAGES) % 3 == 0,
    "cell": (3, 1),
    "column": (slice(None), 1),
    "column of the base": (slice(1, 9), 4),
    "rows of a column": (np.array([2, 2, 8]), np.int64(-1)),
    "columns": (slice(None), np.array([8, 0, 1])),
    "list of columns": (slice(3, 5), [1, 8]),
    "columns of the base": (slice(3, 5), [2, 4]),
    "columns of a row": (7, [1, 2, 8]),
    "cells": (np.array([1, 2, 3, 1]), np.array([1, 8, 4, 1])),
    "cells in a square": (np.arange(6).reshape(2, 3), np.array([[1, 4, 8], [0, 1, 2]])),
    "product": np.ix_([9, 3, 3], [4, 8, 1]),
    "rows and some of the columns": (np.array([3, 2]), slice(1, 9, 7)),
    "masked rows and columns": (np.arange(IMAGES) == 4, [1]),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_layered_probabilities_index_like_one_dense_array(key):
    chance = np.random.default_rng(1)
    base, columns = chance.random((IMAGES, CLASSES)), {column: chance.random(IMAGES) for column in (1, 8)}
    dense = base.copy()
    dense[:, list(columns)] = np.stack(list(columns.values()), 1)
    found, expected = LayeredProbabilities(base, columns)[key], dense[key]
    assert np.shape(found) == np.shape(expected) and np.array_equal(found, expected)


def test_model_version_stores_only_changed_classes_and_reads_others_from_older_versions(db, run_id):
    dense = np.array(probabilities.open_probabilities(db, run_id, 0))
    for version, column in enumerate([3, 5, 3, 0, 5, 3], 1):
        next_version(db, run_id, version, dense, [column], seed=version)
        assert np.array_equal(probabilities.open_probabilities(db, run_id, version)[:], dense)
        assert arrays.open_array(db.paths.run(run_id, version) / COLUMNS_FILE).shape == (1, IMAGES)
    there = {place.name for place in db.paths.run(run_id).iterdir() if place.is_dir()}
    assert there == {"v3", "v4", "v5", "v6"}, "of the two newest versions, one needs the third"


@pytest.mark.slow
def test_disk_space_for_probabilities_of_many_model_versions_stays_bounded(db, run_id):
    dense, chance = np.array(probabilities.open_probabilities(db, run_id, 0)), np.random.default_rng(2)
    wholes = 0
    for version in range(1, 60):
        columns = np.sort(chance.permutation(CLASSES)[: chance.integers(1, 3)]).tolist()
        next_version(db, run_id, version, dense, columns, seed=version)
        assert np.array_equal(probabilities.open_probabilities(db, run_id, version)[:], dense)
        stored = [len(arrays.open_array(path)) for path in db.paths.run(run_id).rglob(COLUMNS_FILE)]
        assert sum(stored) <= 2 * CLASSES + 4, "the version before may need two more"
        assert len(list(db.paths.run(run_id).rglob(WHOLE_FILE))) <= 3
        wholes += (db.paths.run(run_id, version) / WHOLE_FILE).exists()
    next_version(db, run_id, 60, dense, list(range(CLASSES)), seed=60)
    assert np.array_equal(probabilities.open_probabilities(db, run_id, 60), dense)
    next_version(db, run_id, 61, dense, [2], seed=61)
    next_version(db, run_id, 62, dense, [2], seed=62)
    assert np.array_equal(probabilities.open_probabilities(db, run_id, 62)[:], dense)
    there = {place.name for place in db.paths.run(run_id).iterdir() if place.is_dir()}
    assert there == {"v60", "v61", "v62"}


def test_model_version_ignores_probability_files_left_by_a_killed_worker(db, run_id):
    dense = np.array(probabilities.open_probabilities(db, run_id, 0))
    probabilities.save_whole(db, run_id, 1, dense * 0)
    next_version(db, run_id, 1, dense, [4], seed=1)
    assert np.array_equal(probabilities.open_probabilities(db, run_id, 1)[:], dense)
    probabilities.save_columns(db, run_id, 2, 1, [3], np.zeros((1, IMAGES), np.float16))
    next_version(db, run_id, 2, dense, [0, 1, 2, 3, 4], seed=2)
    assert np.array_equal(probabilities.open_probabilities(db, run_id, 2), dense)


@pytest.mark.parametrize("damage", ["gone", "cut short", "of other images", "names no version"])
def test_opening_a_model_version_with_damaged_probability_files_raises_an_error(db, run_id, damage):
    dense = np.array(probabilities.open_probabilities(db, run_id, 0))
    next_version(db, run_id, 1, dense, [4], seed=1)
    file = db.paths.run(run_id, 1) / COLUMNS_FILE
    if damage == "gone":
        file.unlink()
    elif damage == "cut short":
        file.write_bytes(file.read_bytes()[:-2])
    elif damage == "of other images":
        arrays.save_array(file, np.zeros((1, IMAGES + 1), np.float16))
    else:
        arrays.save_array(file, np.zeros((0, IMAGES), np.float16))
    with pytest.raises((OSError, ValueError)):
        probabilities.open_probabilities(db, run_id, 1)


@pytest.mark.slow
def test_incremental_ranking_of_classes_equals_a_full_rebuild(db, run_id):
    chance = np.random.default_rng(3)
    dense = np.array(probabilities.open_probabilities(db, run_id, 0))
    dense[:, 6] = np.nan
    ids, class_ids = np.arange(1, IMAGES + 1), np.arange(1, CLASSES + 1)
    ranker = rankings.Ranker(ids, class_ids, dense)
    ranker.rank(db, 0, range(CLASSES))
    ranker.build_rankings()
    for step in range(40):
        columns = np.sort(chance.permutation(CLASSES)[: chance.integers(1, 3)]).tolist()
        for column in columns:
            for row in chance.integers(0, IMAGES, 3).tolist():
                answer_cell(db, row + 1, column + 1, int(chance.integers(-1, 2)))
        moved = chance.integers(0, 11, (IMAGES, len(columns))) / 10  # many equal ones; some rise, some fall
        dense[:, columns] = moved if step % 2 else dense[:, columns] * 0.9
        newest = decisions.get_newest_decision_id(db)
        ranker.rank(db, newest, columns)
        again = rankings.build(db, newest, ids, class_ids, dense)
        for name, kept in vars(ranker.build_rankings()).items():
            assert np.array_equal(kept, getattr(again, name)), (step, name)
