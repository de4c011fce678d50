"""Published probabilities obey the relations of classes, in a training and in the versions after it."""

import numpy as np
import pytest
from harness.answers import answer_cell
from harness.trained_projects import cache_of, trained
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from annotator.records import ABSENT
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.relations import declared_relations
from annotator.store.relations.relation_edits import AT_MOST_ONE, EXACTLY_ONE, IS_A, Declaration
from annotator.worker.process import Worker
from annotator.worker.training.incremental_update import Updater
from spmll.statistics.relation_constraints import ClassRelations

__all__ = ["trained"]  # a fixture

# animal 0, dog 1, spaniel 2, cat 3, day 4, night 5: a dog is no cat, and it is day or night
ROUNDED = 1e-5
PETS = ClassRelations(
    pairs=((2, 1), (1, 0), (2, 0), (3, 0)),
    groups=(((1, 3), False), ((4, 5), True)),
    kinds={0: (1, 2, 3), 1: (2,)},
)


@given(arrays.arrays(np.float32, (5, 6), elements=st.floats(0, 1, width=32)))
def test_enforced_probabilities_obey_class_hierarchy_and_group_relations(table: np.ndarray):
    found = PETS.enforce(table)
    for kind, whole in PETS.pairs:
        assert (found[:, kind] <= found[:, whole] + ROUNDED).all()
    assert (found[:, 1] + found[:, 3] <= 1 + ROUNDED).all()
    says_something = table[:, 4] + table[:, 5] > 1e-5
    assert np.allclose((found[:, 4] + found[:, 5])[says_something], 1, atol=1e-4)
    assert ((found >= 0) & (found <= 1 + ROUNDED)).all()


def test_enforce_keeps_consistent_probabilities_and_ignores_classes_without_a_model():
    obeying = np.array([[0.9, 0.5, 0.2, 0.3, 0.75, 0.25]], np.float32)
    assert np.array_equal(PETS.enforce(obeying), obeying)
    unknown = np.array([[np.nan, 0.9, 0.2, 0.9, 0.4, np.nan]], np.float32)
    [found] = PETS.enforce(unknown)
    assert np.isnan(found[[0, 5]]).all() and found[4] == np.float32(0.4)
    assert found[1] == pytest.approx(0.5) and found[2] == pytest.approx(0.2 * 0.5 / 0.9)


def test_published_probabilities_obey_relations_after_an_update_and_a_training(trained):
    db, before = trained, np.array(read_predictions(trained).probabilities)
    declared_relations.declare(db, [Declaration(IS_A, (1, 2)), Declaration(EXACTLY_ONE, (2, 3), "kind")], "Ann")

    def obeys() -> bool:
        found = np.array(read_predictions(db).probabilities).astype(float)
        return bool((found[:, 0] <= found[:, 1]).all() and np.allclose(found[:, 1] + found[:, 2], 1, atol=2e-3))

    assert not obeys()
    answer_cell(db, 20, 1, ABSENT)
    Updater().update(db, cache_of(db))
    assert obeys(), "a version"
    worker = Worker(db.paths.project)
    worker.train()
    worker.close()
    assert obeys(), "a training"
    for relation in declared_relations.load_relations(db).made:
        declared_relations.remove(db, relation.id, "Ann")
    declared_relations.declare(db, [Declaration(AT_MOST_ONE, (1, 2), "one")], "Ann")
    worker = Worker(db.paths.project)
    worker.train()
    worker.close()
    after = np.array(read_predictions(db).probabilities).astype(float)
    assert (after[:, :2].sum(1) <= 1 + 2e-3).all() and after.shape == before.shape
