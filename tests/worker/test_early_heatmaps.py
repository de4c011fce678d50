"""Heat maps of a run that had seen few images with a class say so; those of a later run do not."""

import uuid

import numpy as np
import pytest
from harness.projects import publish_run

from annotator.records import Decision
from annotator.settings import MIN_HEATMAP_POSITIVES
from annotator.store.labels import decisions
from annotator.store.runs import runs


def say(db, image_id: int, class_id: int, state: int) -> str:
    name = str(uuid.uuid4())
    assert not decisions.save(db, [Decision(name, "label", "Ann", "click", image_id, class_id, state)]).refused
    return name


@pytest.fixture
def run(db) -> int:
    """A run that has seen five foxes, two herons that are none, and nothing else."""
    for image_id in range(1, 6):
        say(db, image_id, 1, 1)
    for image_id in (1, 2):
        say(db, image_id, 2, -1)
    return publish_run(db, np.full((24, 3), 0.5))


def test_positives_of_a_heat_map_count_only_answers_that_its_training_used(db, run):
    for image_id in range(6, 10):
        say(db, image_id, 1, 1)
    assert [runs.count_training_positives(db, run, class_id, MIN_HEATMAP_POSITIVES) for class_id in (1, 2, 3)] == [
        5,
        0,
        0,
    ]
    assert runs.count_training_positives(db, run, 1, 3) == 3, "counted no further than asked"
    assert runs.count_training_positives(db, publish_run_again(db), 1, MIN_HEATMAP_POSITIVES) == 9


def test_positives_of_a_heat_map_exclude_undone_answers(db, run):
    decisions.save(db, [Decision(str(uuid.uuid4()), "undo", "Ann", "click", undoes=say(db, 6, 1, 1))])
    assert runs.count_training_positives(db, publish_run_again(db), 1, MIN_HEATMAP_POSITIVES) == 5


def publish_run_again(db) -> int:
    return publish_run(db, np.full((24, 3), 0.5))
