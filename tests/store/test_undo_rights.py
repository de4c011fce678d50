"""Whose decisions a member may take back: their own; reviewers and owners those of others, too."""

import pytest
from harness.member_acts import acts
from harness.short_forms import mark_slow_after

from annotator.records import Batch, Decision
from annotator.store.database.database import Database
from annotator.store.labels import comments, decisions
from annotator.store.people import members
from annotator.store.upkeep import consistency

__all__ = ["acts"]  # a fixture

# Decisions of Ann's, and what names each of them in an undo.
OF_ANN = {
    "a label": (Decision("ann-1", "label", "Ann", "click", 1, 1, 1), "ann-1"),
    "a batch": (Batch("ann-2", "Ann", "grid", [(1, 1, 1, None), (2, 1, -1, None)]), "ann-2:0"),
    "a part of a batch": (Batch("ann-3", "Ann", "grid", [(1, 1, 1, None), (2, 1, -1, None)]), "ann-3:1"),
    "the name of a batch": (Decision("ann-4", "label", "Ann", "click", 1, 1, 1, batch="shared"), "shared"),
    "nothing else here": (Decision("ann-5", "done", "Ann", "click", 1), "ann-5"),
    "a cleared cell": (Decision("ann-6", "clear", "Ann", "click", 1, 1), "ann-6"),
    "a skip": (Decision("ann-7", "skip", "Ann", "click", 1), "ann-7"),
    "a flag": (Decision("ann-8", "flag", "Ann", "click", 1, note="what is it?"), "ann-8"),
    "a comment": (Decision("ann-9", "comment", "Ann", "click", 1, note="a heron"), "ann-9"),
    "a settlement": (Decision("ann-10", "label", "Ann", "settlement", 1, 1, 1), "ann-10"),
    "a blind answer": (Batch("ann-11", "Ann", "reading", [(1, 1, 1, None)]), "ann-11"),
}


def undone(db: Database) -> int:
    return db.value("SELECT count(*) FROM decision WHERE undoes IS NOT NULL")


@pytest.mark.parametrize("what", mark_slow_after(12, OF_ANN))
@pytest.mark.parametrize(("role", "may"), [("annotator", False), ("reviewer", True), ("owner", True)])
def test_only_reviewers_and_owners_undo_decisions_of_others(db, acts, what, role, may):
    given, named = OF_ANN[what]
    ben = members.add(db, "Ben", role, "test")
    assert decisions.save(db, [given]).saved
    acts(ben)
    said = decisions.save(db, [Decision("of-ben", "undo", "Ben", "click", undoes=named)])
    acts(None)
    if may:
        assert said.saved and undone(db)
    else:
        assert "is Ann's, and Ben has the role annotator" in said.refused["of-ben"] and not undone(db)
    assert consistency.find_problems(db) == []


@pytest.mark.parametrize("what", OF_ANN)
def test_member_undoes_every_kind_of_their_own_decisions(db, acts, what):
    given, named = OF_ANN[what]
    ann = members.add(db, "Ann", "annotator", "test")
    assert decisions.save(db, [given]).saved  # a settlement is of the time when she was a reviewer
    acts(ann)
    assert decisions.save(db, [Decision("u", "undo", "Ann", "click", undoes=named)]).saved
    assert undone(db)


def test_undo_of_a_batch_ignores_a_batch_of_the_same_name(db, acts):
    ann, ben = members.add(db, "Ann", "annotator", "test"), members.add(db, "Ben", "annotator", "test")
    acts(ben)
    assert decisions.save(db, [Decision("of-ben", "label", "Ben", "click", 2, 2, 1, batch="guessed")]).saved
    acts(ann)
    assert decisions.save(db, [Decision("of-ann", "label", "Ann", "click", 1, 1, 1, batch="guessed")]).saved
    assert decisions.save(db, [Decision("u", "undo", "Ann", "click", undoes="guessed")]).saved
    assert decisions.save(db, [Decision("v", "comment", "Ann", "click", 1, note="mine")]).saved
    assert [(one.image_id, one.annotator) for one in decisions.load_all_labels(db)] == [(2, "Ben")]
    assert [one["note"] for one in comments.load_comments(db)] == ["mine"]
