"""Cells whose answer is taken away, and comments: what is left of labels, stages, disagreements and undo."""

import pytest

from annotator.records import Batch, Decision
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.labels.derivation import rebuild_image
from annotator.store.labels.disagreed_cells import count


@pytest.fixture
def image_id(db: Database) -> int:
    return images.load_all_images(db)[0].id


def give(db: Database, *given: Decision | Batch) -> None:
    saved = decisions.save(db, given)
    assert not saved.refused, saved.refused


def states(db: Database, image_id: int) -> dict[int, int]:
    """Labels by class; the same after they are worked out anew from all decisions."""
    stored = {label.class_id: label.state for label in decisions.load_labels(db, [image_id])}
    with db.writing() as sql:
        rebuild_image(sql, image_id, decisions.get_newest_decision_id(db))
    assert {label.class_id: label.state for label in decisions.load_labels(db, [image_id])} == stored
    return stored


def stage(db: Database, image_id: int) -> int:
    return db.value("SELECT stage FROM image WHERE id = ?", [image_id])


def test_clear_makes_a_label_answered_by_another_annotator_unanswered(db, image_id):
    give(
        db,
        Decision("label", "label", "Ann", "click", image_id, 1, 1),
        Decision("done", "done", "Ann", "done", image_id),
    )
    assert states(db, image_id) == {1: 1, 2: -1, 3: -1} and stage(db, image_id) == 3
    give(
        db,
        Decision("clear-1", "clear", "Ben", "click", image_id, 1),
        Decision("clear-3", "clear", "Ben", "click", image_id, 3),
    )
    assert states(db, image_id) == {2: -1} and stage(db, image_id) == 2
    give(db, Decision("again", "done", "Ben", "done", image_id))
    assert states(db, image_id) == {1: -1, 2: -1, 3: -1}, "what was open is answered by nothing else here"
    decisions.undo(db, "Ben")
    decisions.undo(db, "Ben")
    assert states(db, image_id) == {2: -1, 3: -1}, "a clear is undone as any decision is"


def test_image_with_its_only_answer_cleared_returns_to_the_unlabeled_stage(db, image_id):
    give(
        db,
        Decision("label", "label", "Ann", "click", image_id, 1, 1),
        Decision("clear", "clear", "Ann", "click", image_id, 1),
    )
    assert states(db, image_id) == {} and stage(db, image_id) == 0


def test_clear_resolves_a_disagreement_until_undo(db, image_id):
    give(
        db,
        Decision("ann", "label", "Ann", "click", image_id, 1, 1),
        Decision("ben", "label", "Ben", "click", image_id, 1, -1),
    )
    assert count(db) == 1
    give(db, Decision("clear", "clear", "Ann", "click", image_id, 1))
    assert count(db) == 0
    decisions.undo(db, "Ann")
    assert count(db) == 1


def test_one_batch_can_set_and_clear_labels_and_is_undone_in_one_step(db, image_id):
    give(db, Decision("label", "label", "Ann", "click", image_id, 1, 1))
    batch = Batch("some", "Ann", "gallery", [(image_id, 1, None, None), (image_id, 2, 1, None)], milliseconds=900)
    give(db, batch, batch)
    assert states(db, image_id) == {2: 1}
    assert decisions.load_undoable(db, "Ann", 10, 100)[-1] == batch
    assert len(decisions.undo(db, "Ann")) == 2 and states(db, image_id) == {1: 1}


def test_comment_changes_no_label_and_an_empty_comment_is_refused(db, image_id):
    give(db, Decision("comment", "comment", "Ann", "click", image_id, note="a mask?"))
    assert states(db, image_id) == {} and stage(db, image_id) == 0
    refused = decisions.save(db, [Decision("empty", "comment", "Ann", "click", image_id, note=" ")]).refused
    assert refused == {"empty": "a comment without text"}
    [undone] = decisions.undo(db, "Ann")
    assert undone["action"] == "comment"
