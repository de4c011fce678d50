"""The history of an image tells all of it, in order, with what was taken back; comments are counted beside labels."""

import json
import random

import pytest
from harness.random_decisions import anything

from annotator.records import Batch, Decision
from annotator.store.classes import classes
from annotator.store.gallery.image_history import load_image_history
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.labels.comments import count_comments, count_comments_by_image, load_comments


def say(db, *given: Decision | Batch) -> None:
    assert not decisions.save(db, given).refused


@pytest.mark.parametrize("seed", range(2))
def test_image_history_lists_every_decision_once_and_its_replay_yields_the_labels(db, seed):
    chance, given = random.Random(seed), []
    for _ in range(200):
        one = anything(chance, given)
        decisions.save(db, [one])
        given.append(f"{one.uuid}:0" if isinstance(one, Batch) else one.uuid)
    names = {class_.name: class_.id for class_ in classes.load_active_classes(db)}
    for image_id in range(1, 25):
        events = load_image_history(db, image_id)
        rows = db.rows("SELECT id FROM decision WHERE image_id = ? AND action != 'undo' ORDER BY id", [image_id])
        assert [event.id for event in events] == [row["id"] for row in rows]
        cells: dict[int, int] = {}
        for event in events:
            if event.undone_by is not None:
                assert event.undone_at >= event.at
            elif event.action == "label":
                cells[event.class_id] = event.state
            elif event.action == "clear":
                cells.pop(event.class_id, None)
            elif event.action == "done":
                cells = {names[name]: -1 for name in event.covered} | cells
        assert cells == {label.class_id: label.state for label in decisions.load_labels(db, [image_id])}


def test_image_history_names_who_undid_a_decision_and_the_classes_done_covered(db):
    fox, heron, deer = (class_.name for class_ in classes.load_active_classes(db))
    say(db, Decision("the-first", "label", "Ann", "suggestion", 1, 1, 1, run_id=1, score=0.71))
    say(db, Decision("the-rest", "done", "Bob", "done", 1), Decision("a-note", "flag", "Ann", "click", 1, note="dark"))
    say(db, Batch("a-batch-of-two", "Ann", "grid", [(1, 2, 1, 0.4), (2, 2, -1, 0.1)]))
    decisions.undo(db, "Ann", by="Bob")
    say(db, Decision("cleared", "clear", "Ann", "click", 1, 1))
    told = [(one.annotator, one.action, one.class_name, one.state, one.score) for one in load_image_history(db, 1)]
    assert told == [
        ("Ann", "label", fox, 1, 0.71),
        ("Bob", "done", "", None, None),
        ("Ann", "flag", "", None, None),
        ("Ann", "label", heron, 1, 0.4),
        ("Ann", "clear", fox, None, None),
    ]
    events = load_image_history(db, 1)
    assert events[1].covered == (heron, deer) and events[2].note == "dark"
    assert [one.undone_by for one in events] == [None, None, None, "Bob", None]
    assert [one.undone_by for one in load_image_history(db, 2)] == ["Bob"] and load_image_history(db, 3) == []


def test_comments_are_counted_per_image_and_undone_one_by_one(db):
    say(db, Decision("label-of-1", "label", "Ann", "click", 1, 1, 1))
    before = decisions.load_all_labels(db)
    say(
        db,
        *(
            Decision(f"comment-{n}", "comment", "Ann", "click", image, note=f"n{n}")
            for n, image in enumerate([1, 1, 2])
        ),
    )
    say(db, Decision("by-bob", "comment", "Bob", "click", 1, note="tail only"))
    assert count_comments_by_image(db, [1, 2, 3]) == {1: 3, 2: 1} and count_comments(db) == 4
    say(db, Decision("taken-back", "undo", "Ann", "click", undoes="comment-0"))
    assert count_comments_by_image(db, [1, 2, 3]) == {1: 2, 2: 1}
    assert [(one["id"], one["note"], one["annotator"]) for one in load_comments(db)] == [
        (1, "tail only", "Bob"),
        (2, "n2", "Ann"),
        (1, "n1", "Ann"),
    ]
    assert load_comments(db, 1) == load_comments(db)[:1] and decisions.load_all_labels(db) == before
    assert decisions.save(db, [Decision("empty", "comment", "Ann", "click", 1, note="  ")]).refused


def test_history_command_lists_the_decisions_of_an_image(db, annotator):
    name = images.load_images(db, [1])[1].name
    assert "Nothing was decided" in annotator("history", db.paths.project, name).stdout
    say(db, Decision("the-first", "label", "Ann", "suggestion", 1, 1, 1, run_id=1, score=0.71))
    say(db, Decision("a-comment", "comment", "Bob", "click", 1, note="two\nlines \x1b[31m"))
    decisions.undo(db, "Bob")
    first, second = annotator("history", db.paths.project, name).stdout.splitlines()
    assert "Ann: fox: present (" in first and "the model said 71 %)" in first
    assert second.endswith("Bob: comment: two\\nlines \\x1b[31m (undone by Bob)")
    told = json.loads(annotator("history", db.paths.project, name, "--json").stdout)
    assert [event["note"] for event in told] == ["", "two\nlines \x1b[31m"] and told[1]["undone_by"] == "Bob"
