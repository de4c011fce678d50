"""Audit grids: open audit cells in the order in which they are to be answered, without predictions or answers."""

from dataclasses import replace

import numpy as np
import pytest
from test_audit import say, truth
from test_grid import publish

from annotator.errors import AnnotatorError
from annotator.quality import audit
from annotator.queues import audit_grid
from annotator.records import WantedGrids
from annotator.store import leases
from annotator.store.database import Database

WANTED = WantedGrids("page", "Ann", None, 12, (), 6, hide_predictions=True)


def drawn(db: Database, class_id: int) -> list[int]:
    return [one.image_id for one in audit.open_cells(db, class_id)]


def asked(grids: list, class_id: int) -> list[int]:
    return [tile.image.id for one in grids if one.class_id == class_id for tile in one.tiles]


def cells(grids: list) -> list[tuple[int, int]]:
    return [(tile.image.id, one.class_id) for one in grids for tile in one.tiles]


def test_every_drawn_cell_is_asked_once_in_its_order_and_class_after_class(db):
    publish(db, np.random.default_rng(0).random((24, 3)))
    audit.draw(db, 54, seed=1)
    grids = audit_grid.next_grids(db, WANTED).items
    assert [one.class_id for one in grids] == [1, 1, 2, 2, 3, 3]
    assert all(asked(grids, class_id) == drawn(db, class_id) for class_id in (1, 2, 3))
    assert [one.waiting for one in grids] == [54, 42, 36, 24, 18, 6]


def test_nothing_is_told_of_a_cell_not_even_that_it_has_been_decided(db):
    publish(db, np.full((24, 3), 0.9))
    say(db, [(image_id, 1) for image_id in range(1, 25)])
    audit.draw(db, 48, seed=2)
    grids = audit_grid.next_grids(db, WANTED).items
    assert asked(grids, 1), "relabels are asked like all other cells"
    for one in grids:
        assert (one.run_id, one.share, one.start) == (None, None, "no")
        assert {(tile.probability, tile.state) for tile in one.tiles} == {(None, None)}


def test_the_class_in_hand_is_asked_to_its_end_before_the_next(db):
    audit.draw(db, 54, seed=1)
    first = audit_grid.next_grids(db, replace(WANTED, class_id=2, want=1)).items
    rest = audit_grid.next_grids(db, replace(WANTED, want=2, have=cells(first))).items
    assert [one.class_id for one in first + rest] == [2, 2, 1]
    assert asked(first + rest, 2) == drawn(db, 2)


def test_another_class_can_be_asked_for_and_the_left_one_comes_last(db):
    audit.draw(db, 54, seed=1)
    grids = audit_grid.next_grids(db, replace(WANTED, but=1)).items
    assert [one.class_id for one in grids] == [2, 2, 3, 3, 1, 1]


def test_two_people_answer_different_cells(db):
    audit.draw(db, 54, seed=1)
    ann = cells(audit_grid.next_grids(db, replace(WANTED, want=2)).items)
    bob = cells(audit_grid.next_grids(db, replace(WANTED, holder="other", annotator="Bob")).items)
    assert len(ann) == 18 and not set(ann) & set(bob) and len(ann) + len(bob) == 54
    more = audit_grid.next_grids(db, replace(WANTED, holder="third"))
    assert more.items == [] and "54 audit questions are open elsewhere" in more.empty
    leases.hold_cells(db, "other", "Bob", [])
    assert cells(audit_grid.next_grids(db, replace(WANTED, holder="third")).items) == bob


def test_when_nothing_is_drawn_or_all_is_answered_it_says_so(db):
    assert "There is no audit yet" in audit_grid.next_grids(db, WANTED).empty
    audit.draw(db, 9, seed=1)
    grids = audit_grid.next_grids(db, WANTED).items
    on_the_way = audit_grid.next_grids(db, replace(WANTED, have=cells(grids)))
    assert on_the_way.items == [] and "Every audit question has been answered" in on_the_way.empty
    say(db, cells(grids), "audit", states=[truth(*cell) for cell in cells(grids)])
    assert "Every audit question has been answered" in audit_grid.next_grids(db, WANTED).empty


def test_a_class_that_is_not_there_is_refused(db):
    with pytest.raises(AnnotatorError, match="no class 9"):
        audit_grid.next_grids(db, replace(WANTED, class_id=9))
