"""A snapshot is the project at one moment: what people decide afterwards is in the next one, and never in this."""

import numpy as np
import pytest
from harness.answers import answer_cell
from harness.published_runs import publish

from annotator.records import ABSENT, PRESENT
from annotator.snapshot.snapshot import read_snapshot
from annotator.store.database import arrays
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.runs import runs


@pytest.fixture
def published(db) -> np.ndarray:
    """A published run with known probabilities: (24, 3) float16."""
    probabilities = np.linspace(0.01, 0.99, 72).reshape(24, 3).astype(np.float16)
    publish(db, probabilities)
    return probabilities


def test_snapshot_is_none_before_the_first_training(db):
    assert read_snapshot(db) is None


def test_snapshot_stays_unchanged_while_labels_are_added_and_undone(db, published):
    before = read_snapshot(db)
    answer_cell(db, 5, 2, PRESENT)
    answer_cell(db, 5, 3, ABSENT)
    after = read_snapshot(db)
    decisions.undo(db, "Ann")
    taken_back = read_snapshot(db)
    open_cells = [[one.delta.is_open(4, column) for column in range(3)] for one in (before, after, taken_back)]
    assert open_cells == [[True] * 3, [True, False, False], [True, False, True]]
    assert [one.delta.changed_image_count for one in (before, after, taken_back)] == [0, 1, 1]
    sums = [one.delta.answered_probability for one in (before, after, taken_back)]
    row = published[4].astype(float)
    assert np.allclose(sums, [[0, 0, 0], [0, row[1], row[2]], [0, row[1], 0]])
    assert [one.delta.get_max_open_probability(4) for one in (before, after, taken_back)] == [1.0, row[0], row[2]]


def test_snapshots_without_decisions_in_between_share_one_set_of_label_changes(db, published):
    answer_cell(db, 5, 2, PRESENT)
    assert read_snapshot(db).delta is read_snapshot(db).delta


def test_snapshot_in_a_transaction_ignores_model_versions_published_after_its_start(db, published):
    other = Database(db.paths.project)
    with db.reading():
        assert runs.load_current_run(db).version == 0
        answer_cell(other, 5, 2, PRESENT)
        arrays.save_array(db.paths.run(1, 1) / "probabilities.npy", 1 - published)
        runs.publish_version(other, 1, 1, decisions.get_newest_decision_id(other))
        snapshot = read_snapshot(db)
        assert snapshot.run.version == 0 and not snapshot.delta.changed_image_count
        assert np.array_equal(snapshot.predictions.probabilities, published)
    snapshot = read_snapshot(db)
    assert snapshot.run.version == 1 and not snapshot.delta.changed_image_count, "this version has seen the answer"
