"""What people decide is appended once, holds until something newer, and can be taken back."""

import subprocess
import sys
import uuid
from dataclasses import replace

import pytest

from annotator.errors import AnnotatorError, DiskFull
from annotator.records import Batch, Decision
from annotator.snapshot.time_model import load_time_model
from annotator.store.classes import classes
from annotator.store.images import images
from annotator.store.labels import answer_times, decisions, project_counts

PRESENT, ABSENT, UNSURE = 1, -1, 0


def label(image_id: int, class_id: int, state: int = PRESENT, **more) -> Decision:
    given = {"uuid": str(uuid.uuid4()), "annotator": "Ann", "source": "click"} | more
    return Decision(action="label", image_id=image_id, class_id=class_id, state=state, **given)


def act(action: str, image_id: int | None = None, **more) -> Decision:
    given = {"uuid": str(uuid.uuid4()), "annotator": "Ann", "source": "click"} | more
    return Decision(action=action, image_id=image_id, **given)


def cells(db, image_id: int) -> dict[int, int]:
    return {one.class_id: one.state for one in decisions.load_labels(db, [image_id])}


def test_decision_with_a_repeated_uuid_is_stored_once(db):
    first = label(1, 1)
    assert decisions.save(db, [first, first]).saved == [first.uuid, first.uuid]
    decisions.save(db, [label(1, 1, ABSENT), first])
    assert cells(db, 1) == {1: ABSENT}
    assert project_counts.count_decisions_by_source(db) == {"click": 2}


def test_invalid_decisions_are_refused_with_a_reason_and_valid_ones_are_saved(db):
    bad = [label(999, 1), label(1, 99), label(1, 1, 7), act("wave", 1), label(1, 1, source="rumour")]
    good = label(1, 2)
    result = decisions.save(db, [*bad[:3], good, *bad[3:]])
    assert result.saved == [good.uuid]
    assert set(result.refused) == {one.uuid for one in bad}
    assert "no image 999" in result.refused[bad[0].uuid]
    assert "no class 99" in result.refused[bad[1].uuid]
    assert "skip" in result.refused[bad[3].uuid]


def test_done_action_marks_only_the_unanswered_classes_of_its_image_absent(db):
    decisions.save(db, [label(1, 1), label(1, 2, UNSURE), act("done", 1)])
    assert cells(db, 1) == {1: PRESENT, 2: UNSURE, 3: ABSENT}
    assert {one.class_id: one.source for one in decisions.load_labels(db, [1])} == {1: "click", 2: "click", 3: "done"}
    assert project_counts.count_images_by_stage(db)["complete"] == 1


def test_undo_restores_the_previous_label(db):
    decisions.save(db, [label(1, 1), label(1, 1, ABSENT)])
    decisions.undo(db)
    assert cells(db, 1) == {1: PRESENT}
    decisions.undo(db)
    assert cells(db, 1) == {}
    assert project_counts.count_images_by_stage(db)["without_decision"] == 24
    with pytest.raises(AnnotatorError, match="no decision left to undo"):
        decisions.undo(db)


def test_undo_of_an_answer_leaves_its_class_unanswered_despite_a_later_done_action(db):
    first = label(1, 1)
    decisions.save(db, [first, act("done", 1), act("undo", undoes=first.uuid)])
    assert cells(db, 1) == {2: ABSENT, 3: ABSENT}


def test_undo_of_a_done_action_clears_only_the_labels_set_by_it(db):
    decisions.save(db, [label(1, 1), act("done", 1), act("undo")])
    assert cells(db, 1) == {1: PRESENT}


def test_undo_of_a_batch_clears_all_its_labels_together(db):
    grid = [label(image, 1, batch="grid-1", source="grid") for image in (1, 2, 3)]
    decisions.save(db, [label(4, 1), *grid])
    undone = decisions.undo(db)
    assert [row["image"] for row in undone] == [images.load_images(db, [n])[n].name for n in (1, 2, 3)]
    assert cells(db, 1) == cells(db, 2) == cells(db, 3) == {}
    assert cells(db, 4) == {1: PRESENT}


def test_undo_of_one_annotator_keeps_the_decisions_of_others(db):
    decisions.save(db, [label(1, 1), label(2, 1, annotator="Bob")])
    decisions.undo(db, "Ann")
    assert cells(db, 1) == {}
    assert cells(db, 2) == {1: PRESENT}


def test_undo_sent_twice_takes_effect_once(db):
    first, second = label(1, 1), label(2, 1)
    undo = act("undo", undoes=second.uuid)
    decisions.save(db, [first, second, undo, undo, act("undo", undoes=second.uuid)])
    assert cells(db, 1) == {1: PRESENT}
    assert cells(db, 2) == {}


def test_class_added_later_is_unanswered_on_complete_images(db):
    decisions.save(db, [act("done", 1)])
    assert classes.add_classes(db, [("boar", "")]) == ["boar"]
    assert 4 not in cells(db, 1)
    assert project_counts.count_images_by_stage(db)["complete"] == 0
    decisions.save(db, [label(1, 1), act("undo")])
    assert cells(db, 1) == {1: ABSENT, 2: ABSENT, 3: ABSENT}


def test_skip_stores_no_answer_and_can_be_undone(db):
    decisions.save(db, [act("skip", 1)])
    assert project_counts.count_images_by_stage(db)["skipped"] == 1
    assert cells(db, 1) == {}
    decisions.undo(db)
    assert project_counts.count_images_by_stage(db)["skipped"] == 0


def grid(*cells: tuple, **more) -> Batch:
    given = {"uuid": str(uuid.uuid4()), "annotator": "Ann", "source": "grid", "run_id": 7, "milliseconds": 100} | more
    return Batch(cells=cells, **given)


def test_grid_is_saved_completely_once_and_undone_in_one_step(db):
    one = grid((1, 1, PRESENT, 0.9), (2, 1, ABSENT, None), (3, 1, UNSURE, 0.4))
    assert decisions.save(db, [label(2, 1), one, one]).saved[1:] == [one.uuid, one.uuid]
    assert [cells(db, image).get(1) for image in (1, 2, 3)] == [PRESENT, ABSENT, UNSURE]
    stored = db.rows("SELECT uuid, batch, score, run_id, milliseconds FROM decision WHERE batch NOT NULL ORDER BY id")
    assert [row["uuid"] for row in stored] == [f"{one.uuid}:{n}" for n in range(3)]
    assert {(row["batch"], row["run_id"]) for row in stored} == {(one.uuid, 7)}
    assert [row["score"] for row in stored] == [0.9, None, 0.4]
    assert sum(row["milliseconds"] for row in stored) == 100
    decisions.save(db, [act("undo", undoes=f"{one.uuid}:0")])
    assert [cells(db, image) for image in (1, 2, 3)] == [{}, {1: PRESENT}, {}]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ((999, 1, PRESENT, None), "answer 2 of 2: there is no image 999"),
        ((2, 99, PRESENT, None), "answer 2 of 2: there is no class 99"),
        ((2, 1, 5, None), "answer 2 of 2: 5 is not a state"),
        ((1, 1, ABSENT, None), "answer 2 of 2: it answers class 1 on image 1 twice"),
    ],
)
def test_one_invalid_label_refuses_its_whole_grid_but_not_other_decisions(db, bad, reason):
    one, good = grid((1, 1, PRESENT, 0.5), bad), label(3, 1)
    result = decisions.save(db, [one, good])
    assert result.saved == [good.uuid]
    assert result.refused[one.uuid].startswith(reason)
    assert cells(db, 1) == {}


def test_saving_a_grid_decision_without_labels_is_refused(db):
    assert "without answers" in decisions.save(db, [empty := grid()]).refused[empty.uuid]


def test_flag_changes_no_label_or_stage_and_its_newest_comment_is_shown(db):
    decisions.save(db, [act("skip", 2), act("flag", 1, note="blurred"), act("flag", 2, note="a twin of 1?")])
    assert project_counts.count_images_by_stage(db)["without_decision"] == 24
    assert project_counts.count_images_by_stage(db)["skipped"] == 1
    decisions.save(db, [act("flag", 1, note="blurred, and dark", annotator="Bob"), act("flag", 2, note="")])
    assert project_counts.load_flag_notes(db, [1, 2, 3]) == {1: "blurred, and dark"}
    [flag] = project_counts.load_flagged_images(db, 10)
    assert (flag["id"], flag["image"], flag["annotator"]) == (1, images.load_images(db, [1])[1].name, "Bob")
    decisions.undo(db, "Bob")
    decisions.undo(db, "Ann")
    assert project_counts.load_flag_notes(db, [1, 2]) == {1: "blurred", 2: "a twin of 1?"}
    assert project_counts.count_flagged_images(db) == 2


def test_image_comment_over_the_length_limit_is_refused(db):
    assert "2,001 characters" in decisions.save(db, [long := act("flag", 1, note="x" * 2001)]).refused[long.uuid]


def test_load_undoable_returns_the_newest_steps_as_saved_with_a_grid_as_one_step(db):
    first, one, last = label(4, 2), grid((1, 1, PRESENT, 0.9), (2, 1, ABSENT, None)), act("flag", 1, note="odd")
    decisions.save(db, [first, label(9, 1, annotator="Bob"), label(5, 1), act("undo"), one, last])
    found = decisions.load_undoable(db, "Ann", 200, 2000)
    assert [step.uuid for step in found] == [first.uuid, one.uuid, last.uuid]
    assert [tuple(cell) for cell in found[1].cells] == list(one.cells) and found[1].milliseconds == 100
    assert found[2].note == "odd"
    assert [step.uuid for step in decisions.load_undoable(db, "Ann", 2, 2000)] == [one.uuid, last.uuid]
    assert [step.uuid for step in decisions.load_undoable(db, "Ann", 200, 2)] == [last.uuid], "half a grid is none"
    decisions.save(db, [large := grid(*((image, 3, PRESENT, None) for image in range(1, 6)))])
    [whole] = decisions.load_undoable(db, "Ann", 200, 2)
    assert (whole.uuid, [tuple(cell) for cell in whole.cells]) == (large.uuid, list(large.cells)), "the newest is whole"


def test_decisions_with_a_shared_batch_form_one_undoable_step(db):
    decisions.save(db, [label(1, number, batch="all-of-1") for number in (1, 2)])
    [step] = decisions.load_undoable(db, "Ann", 200, 2000)
    decisions.save(db, [act("undo", undoes=f"{step.uuid}:0")])
    assert cells(db, 1) == {}


def test_full_disk_raises_an_error_and_stores_all_or_nothing_of_a_batch(db):
    decisions.save(db, [label(1, 1)])
    pages = db.value("PRAGMA page_count")
    db.sql.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(DiskFull, match="Free some space"):
        decisions.save(db, [label(2, 1, annotator="x" * 900) for _ in range(300)])
    db.sql.execute("PRAGMA max_page_count = 1073741823")
    assert cells(db, 2) == {}
    assert decisions.get_newest_decision_id(db) == 1
    assert decisions.save(db, [label(2, 1)]).refused == {}


WRITER = """
import sys, uuid
from pathlib import Path
from annotator.records import Batch, Decision
from annotator.store.labels import decisions
from annotator.store.database.database import Database
db = Database(Path(sys.argv[1]))
for number in range(60):
    one = Decision(str(uuid.uuid4()), "label", sys.argv[2], "click", image_id=number % 24 + 1, class_id=1, state=1)
    assert decisions.save(db, [one]).saved == [one.uuid]
"""


@pytest.mark.process
def test_three_processes_can_save_decisions_concurrently(db, project):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(project), name]) for name in "ABC"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert project_counts.count_decisions_by_source(db) == {"click": 180}


WITHIN = {"milliseconds": 86_400_000, "score": 1.0, "run_id": 2**53, "note": "x" * 2000, "batch": "grid-1"}
NEVER = [
    ({"image_id": 2**63}, "is not the id of an image"),
    ({"class_id": 0}, "0 is not the id of a class"),
    ({"class_id": True}, "True is not the id of a class"),
    ({"run_id": -(2**70)}, "is not the id of a run"),
    ({"score": 5}, "5 is not a probability"),
    ({"score": float("nan")}, "nan is not a probability"),
    ({"state": True}, "True is not a state"),
    ({"state": 0.6}, "0.6 is not a state"),
    ({"note": "\ud800"}, "cannot be stored as text"),
    ({"annotator": "\udfff"}, "cannot be stored as text"),
    ({"batch": "b" * 1001}, "1,001 characters"),
    ({"uuid": "of-a-grid:1"}, "a colon"),
    ({"uuid": "\ud800-half"}, "cannot be stored as text"),
]


@pytest.mark.parametrize(("values", "reason"), NEVER)
def test_unstorable_decision_is_refused_without_affecting_valid_ones(db, values, reason):
    bad, good = label(1, 1, **values) if "state" in values else replace(label(1, 1), **values), label(2, 1)
    result = decisions.save(db, [bad, good])
    assert result.saved == [good.uuid]
    assert reason in result.refused[bad.uuid]
    assert db.value("SELECT count(*) FROM decision") == 1


def test_decision_with_values_exactly_at_the_limits_is_stored(db):
    assert decisions.save(db, [replace(label(1, 1), **WITHIN)]).refused == {}


@pytest.mark.parametrize("milliseconds", [-1, 86_400_001, 2**62, 2**70, float("inf"), float("nan"), "soon"])
def test_invalid_answer_time_is_stored_as_unknown(db, milliseconds):
    both = [
        replace(label(1, 1), milliseconds=milliseconds),
        replace(grid(), cells=[(2, 1, 1, None)], milliseconds=milliseconds),
    ]
    assert decisions.save(db, both).refused == {}
    assert db.tuples("SELECT DISTINCT milliseconds FROM decision") == [(None,)]


OTHERS = [
    {"state": ABSENT},
    {"class_id": 2},
    {"image_id": 2},
    {"annotator": "Bob"},
    {"source": "grid"},
    {"action": "skip"},
    {"action": "undo"},
]


@pytest.mark.parametrize("values", OTHERS)
def test_uuid_reused_with_other_content_is_refused_and_other_decisions_are_saved(db, values):
    first, good = label(1, 1), label(3, 1)
    decisions.save(db, [first])
    again = replace(first, milliseconds=7, run_id=3, score=0.5)
    result = decisions.save(db, [again, replace(first, **values), good])
    assert result.saved == [good.uuid] and "belongs to another decision" in result.refused[first.uuid]
    assert decisions.save(db, [again]).saved == [first.uuid], "what it says is the same"
    assert cells(db, 1) == {1: PRESENT}


def test_grid_resent_with_other_content_under_its_uuid_is_refused(db):
    first = grid((1, 1, PRESENT, 0.9), (2, 1, ABSENT, None))
    assert decisions.save(db, [first, first]).saved == [first.uuid] * 2
    longer, other = (
        replace(first, cells=[*first.cells, (3, 1, 1, None)]),
        replace(first, cells=[(1, 1, ABSENT, 0.9)] * 2),
    )
    for one in (longer, other, replace(first, cells=first.cells[:1]), label(5, 1, uuid=first.uuid)):
        assert "belongs to another decision" in decisions.save(db, [one]).refused[first.uuid]
    back = act("undo", undoes=f"{first.uuid}:0")
    assert decisions.save(db, [back, back]).saved == [back.uuid] * 2
    other = replace(back, undoes="something-else")
    assert "belongs to another decision" in decisions.save(db, [other]).refused[back.uuid]
    assert "belongs to another decision" in decisions.save(db, [grid(uuid=back.uuid)]).refused[back.uuid]
    assert cells(db, 1) == cells(db, 2) == {}


def test_out_of_range_values_of_older_versions_do_not_break_times_or_undo(db):
    """They were stored by an older version, and no decision is ever changed."""
    decisions.save(db, [label(image, 1, milliseconds=900, source="grid", batch="one") for image in (1, 2, 3)])
    decisions.save(db, [label(4, 1, milliseconds=1200)])
    db.sql.execute("UPDATE decision SET milliseconds = ?, score = 5 WHERE id <= 3", [2**62])
    db.sql.execute(
        """INSERT INTO decision
        SELECT 90, 'older', action, 5, 1, 1, note, NULL, source, annotator, NULL, 1, -3, 1e300, 1
        FROM decision WHERE id = 4"""
    )
    assert [one.seconds for one in answer_times.load_newest_answers(db, "Ann", 100)] == [1.2]
    assert load_time_model(db, "Ann").click > 0
    assert len(decisions.load_undoable(db, "Ann", 10, 100)) == 3
