"""Audit grids: open audit cells in the order in which they are to be answered, without predictions or answers."""

import uuid
from dataclasses import replace

import numpy as np
import pytest
from harness.audit_answers import say, truth
from harness.published_runs import publish

from annotator.errors import AnnotatorError
from annotator.quality import audit_sampling
from annotator.quality.annotator_agreement import compute_agreement
from annotator.queues import audit_queue
from annotator.records import Decision, WantedGrids
from annotator.store.database.database import Database
from annotator.store.labels import audits, decisions
from annotator.store.people import leases

WANTED = WantedGrids("page", "Ann", None, 12, (), 6, hide_predictions=True)


def drawn(db: Database, class_id: int) -> list[int]:
    return [one.image_id for one in audit_sampling.load_open_cells(db, class_id)]


def asked(grids: list, class_id: int) -> list[int]:
    return [tile.image.id for one in grids if one.class_id == class_id for tile in one.tiles]


def cells(grids: list) -> list[tuple[int, int]]:
    return [(tile.image.id, one.class_id) for one in grids for tile in one.tiles]


def test_audit_grids_contain_every_sampled_label_once_in_order_and_class_by_class(db):
    publish(db, np.random.default_rng(0).random((24, 3)))
    audit_sampling.draw_audit(db, 54, seed=1)
    grids = audit_queue.lease_next_grids(db, WANTED).items
    assert [one.class_id for one in grids] == [1, 1, 2, 2, 3, 3]
    assert all(asked(grids, class_id) == drawn(db, class_id) for class_id in (1, 2, 3))
    assert [one.waiting for one in grids] == [54, 42, 36, 24, 18, 6]


def test_audit_grid_hides_predictions_and_stored_answers(db):
    publish(db, np.full((24, 3), 0.9))
    say(db, [(image_id, 1) for image_id in range(1, 25)])
    audit_sampling.draw_audit(db, 48, seed=2)
    grids = audit_queue.lease_next_grids(db, WANTED).items
    assert asked(grids, 1), "relabels are asked like all other cells"
    for one in grids:
        assert (one.run_id, one.expected_share, one.start) == (None, None, "no")
        assert {(tile.probability, tile.state) for tile in one.tiles} == {(None, None)}


def test_audit_queue_finishes_the_current_class_before_the_next(db):
    audit_sampling.draw_audit(db, 54, seed=1)
    first = audit_queue.lease_next_grids(db, replace(WANTED, class_id=2, want=1)).items
    rest = audit_queue.lease_next_grids(db, replace(WANTED, want=2, have=cells(first))).items
    assert [one.class_id for one in first + rest] == [2, 2, 1]
    assert asked(first + rest, 2) == drawn(db, 2)


def test_audit_queue_offers_a_class_that_the_annotator_skipped_last(db):
    audit_sampling.draw_audit(db, 54, seed=1)
    grids = audit_queue.lease_next_grids(db, replace(WANTED, but=1)).items
    assert [one.class_id for one in grids] == [2, 2, 3, 3, 1, 1]


def test_audit_queue_never_leases_a_label_to_two_annotators(db):
    audit_sampling.draw_audit(db, 54, seed=1)
    ann = cells(audit_queue.lease_next_grids(db, replace(WANTED, want=2)).items)
    bob = cells(audit_queue.lease_next_grids(db, replace(WANTED, holder="other", annotator="Bob")).items)
    assert len(ann) == 18 and not set(ann) & set(bob) and len(ann) + len(bob) == 54
    more = audit_queue.lease_next_grids(db, replace(WANTED, holder="third"))
    assert more.items == [] and "54 audit questions are open elsewhere" in more.empty_reason
    leases.renew_cells(db, "other", "Bob", [])
    assert cells(audit_queue.lease_next_grids(db, replace(WANTED, holder="third")).items) == bob


def test_empty_audit_queue_reports_whether_no_audit_exists_or_all_labels_are_answered(db):
    assert "There is no audit yet" in audit_queue.lease_next_grids(db, WANTED).empty_reason
    audit_sampling.draw_audit(db, 9, seed=1)
    grids = audit_queue.lease_next_grids(db, WANTED).items
    on_the_way = audit_queue.lease_next_grids(db, replace(WANTED, have=cells(grids)))
    assert on_the_way.items == [] and "Every audit question has been answered" in on_the_way.empty_reason
    say(db, cells(grids), "audit", states=[truth(*cell) for cell in cells(grids)])
    present = [cell for cell in cells(grids) if truth(*cell) == 1]
    again = cells(audit_queue.lease_next_grids(db, WANTED).items)
    assert sorted(again) == sorted(present), "what an audit finds gets a second look"
    say(db, again, "audit", states=[1] * len(again))
    assert "Every audit question has been answered" in audit_queue.lease_next_grids(db, WANTED).empty_reason


def test_audit_queue_refuses_an_unknown_class(db):
    with pytest.raises(AnnotatorError, match="no class 9"):
        audit_queue.lease_next_grids(db, replace(WANTED, class_id=9))


def as_asked(db: Database, annotator: str, holder: str) -> list[tuple[int, int]]:
    """The cells (image id, class id) of all grids that this person gets now, on a page that lets go of them at once."""
    wanted = replace(WANTED, holder=holder, annotator=annotator)
    given = [
        (tile.image.id, one.class_id) for one in audit_queue.lease_next_grids(db, wanted).items for tile in one.tiles
    ]
    leases.renew_cells(db, holder, annotator, [])
    return given


def answer(db: Database, annotator: str, answers: list[tuple[int, int, int]], source: str = "audit") -> None:
    """annotator's answers: (image id, class id, state)."""
    given = [
        Decision(str(uuid.uuid4()), "label", annotator, source, image_id, class_id, state)
        for image_id, class_id, state in answers
    ]
    assert not decisions.save(db, given).refused


def test_audit_queue_offers_each_label_once_to_the_configured_number_of_annotators(db):
    audit_sampling.draw_audit(db, 9, seed=1, people=2)
    asked_of_ann = as_asked(db, "Ann", "a")
    answer(db, "Ann", [(*cell, 1) for cell in asked_of_ann[:6]])
    assert as_asked(db, "Ann", "a") == asked_of_ann[6:], "what she has answered she is not asked again"
    answer(db, "Ann", [(*cell, 1) for cell in asked_of_ann[6:]])
    mine = audit_queue.lease_next_grids(db, WANTED)
    assert mine.items == [] and "9 questions wait for the answer of another person" in mine.empty_reason

    of_ben = as_asked(db, "Ben", "b")
    assert sorted(of_ben) == sorted(asked_of_ann)
    answer(db, "Ben", [(*cell, 1 if number else -1) for number, cell in enumerate(of_ben)])
    assert as_asked(db, "Cid", "c") == [], "two have answered each"
    assert "Every audit question has been answered" in audit_queue.lease_next_grids(db, WANTED).empty_reason
    measured = compute_agreement(db).overall
    assert (measured.cells, measured.differ) == (9, 1)


def test_audit_grid_hides_the_first_answer_from_the_second_annotator(db):
    publish(db, np.full((24, 3), 0.9))
    audit_sampling.draw_audit(db, 9, seed=1, people=2)
    answer(db, "Ann", [(*cell, 1) for cell in as_asked(db, "Ann", "a")])
    grids = audit_queue.lease_next_grids(db, replace(WANTED, annotator="Ben")).items
    assert grids
    for one in grids:
        assert (one.run_id, one.expected_share, one.start) == (None, None, "no")
        assert {(tile.probability, tile.state, tile.annotator) for tile in one.tiles} == {(None, None, None)}


def test_undone_audit_answer_returns_to_the_audit_queue(db):
    audit_sampling.draw_audit(db, 9, seed=1, people=2)
    answer(db, "Ann", [(*cell, 1) for cell in as_asked(db, "Ann", "a")])
    of_ben = as_asked(db, "Ben", "b")
    answer(db, "Ben", [(*of_ben[0], 1)])
    assert of_ben[0] not in as_asked(db, "Ben", "b")
    decisions.undo(db, "Ben")
    assert of_ben[0] in as_asked(db, "Ben", "b")


def test_resolved_disagreement_still_counts_as_audited(db):
    drawn_now = audit_sampling.draw_audit(db, 9, seed=1, people=2)
    cells_ = as_asked(db, "Ann", "a")
    answer(db, "Ann", [(*cell, 1) for cell in cells_])
    answer(db, "Ben", [(*cells_[0], -1)])
    answer(db, "Rita", [(*cells_[0], -1)], "settlement")
    stored = audits.load_cells(db, drawn_now)
    assert stored.in_audit.all() and sorted(stored.state.tolist()) == [-1] + [1] * 8


@pytest.mark.parametrize("people", [0, -1, 10])
def test_audit_draw_refuses_an_invalid_number_of_annotators(db, people):
    with pytest.raises(AnnotatorError, match="answered by 1 to 9 people"):
        audit_sampling.draw_audit(db, 9, people=people)
