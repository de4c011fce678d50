"""An image that somebody has been shown is never answered blind by them: taking answers back hides nothing again."""

import numpy as np
import pytest
from convert_project import convert_project
from harness.blind_answers import CLASSES, asked, name_of, say, states, waiting

from annotator.quality.annotator_agreement import compute_agreement
from annotator.quality.certification import compute_certificate
from annotator.quality.double_reading_counts import count_double_readings
from annotator.records import Batch, Decision
from annotator.store.classes import class_changes, classes
from annotator.store.database.database import Database
from annotator.store.labels import decisions, disagreed_cells, image_overlap
from annotator.store.people import blindness, reference_answers
from annotator.store.upkeep import consistency


def take_back(db: Database, who: str, named: str) -> None:
    assert not decisions.save(db, [Decision(f"undo of {named}", "undo", who, "reading", undoes=named)]).refused


def throw_away(db: Database, who: str, how: str) -> None:
    """Answer image 1 somehow, only to see it, and take that back."""
    if how == "in one request":
        batch = Batch("thrown", who, "reading", [(1, class_id, 1, None) for class_id in CLASSES])
        undo = Decision("undone", "undo", who, "reading", undoes="thrown")
        assert not decisions.save(db, [batch, undo]).refused
        return
    given = {
        "blind": lambda: say(db, 1, who, (1, 2, 3)),
        "one class": lambda: decisions.save(db, [Decision("x", "label", who, "click", 1, 1, 1)]).saved[0],
        "nothing else here": lambda: decisions.save(db, [Decision("x", "done", who, "click", 1)]).saved[0],
        "a cleared class": lambda: decisions.save(db, [Decision("x", "clear", who, "click", 1, 3)]).saved[0],
    }[how]()
    take_back(db, who, given)


WAYS = ("blind", "one class", "nothing else here", "a cleared class", "in one request")


@pytest.mark.parametrize("how", WAYS)
def test_annotator_who_undid_a_blind_answer_is_not_asked_again_nor_measured_later(db, how):
    image_overlap.set_overlap(db, 3, 1.0)
    say(db, 1, "Ann", (1,))
    throw_away(db, "Ben", how)
    assert 1 not in asked(db, "Ben") and not blindness.find_hidden_images(db, "Ben", [1])
    say(db, 1, "Ben", (1,))  # what Ann said
    assert np.concatenate([*image_overlap.iterate_first_answers(db, ["Ann", "Ben"])])[:, 2].tolist() == [0, 0, 0]
    measured = count_double_readings(db, np.array(CLASSES))
    assert measured is None, "one person has answered it blind"
    assert compute_agreement(db).overall.cells == 0 and compute_certificate(db).compared == 0
    assert image_overlap.load_progress(db).answers == 1
    assert states(db, 1) == {1: (1, "Ann"), 2: (-1, "Ann"), 3: (-1, "Ann")} or how == "nothing else here"
    assert consistency.find_problems(db) == []


def test_second_answer_after_an_undone_blind_one_completes_overlap_but_resolves_nothing(db):
    image_overlap.set_overlap(db, 3, 1.0)
    say(db, 1, "Ann", (1,))
    say(db, 1, "Cid", (1, 2))
    assert disagreed_cells.load_newest_cells(db, 9).tolist() == [[1, 2]]
    throw_away(db, "Ben", "blind")
    assert 1 in waiting(db)
    say(db, 1, "Ben", (1,))
    assert disagreed_cells.load_newest_cells(db, 9).tolist() == [[1, 2]] and 1 not in waiting(db)
    assert np.concatenate([*image_overlap.iterate_first_answers(db, ["Ann", "Ben", "Cid"])])[:, 2].tolist() == [
        0,
        0,
        0,
        2,
        2,
        2,
    ]
    assert consistency.find_problems(db) == []


def test_answer_given_again_after_undo_counts_for_overlap_but_not_as_a_blind_answer(db):
    image_overlap.set_overlap(db, 2, 1.0)
    take_back(db, "Ann", say(db, 1, "Ann", (1,)))
    say(db, 1, "Ann", (2,))
    assert states(db, 1)[2] == (1, "Ann"), "the label is what she says now"
    say(db, 1, "Ben", (2,))
    assert (
        image_overlap.load_progress(db) == image_overlap.OverlapProgress(24, 23, 1)
        and count_double_readings(db, np.array(CLASSES)) is None
    )


def test_reference_image_results_use_the_first_answer_even_after_its_undo(db):
    say(db, 1, "Olga", (1,), "suggestion")
    reference_answers.choose_images(db, [name_of(db, 1)], 0.5)
    wrong = say(db, 1, "Ann", (2,), "known")
    counted = reference_answers.load_results(db)
    assert counted == [reference_answers.ReferenceResult("Ann", 1, 0, 1, 1, 2)]
    take_back(db, "Ann", wrong)
    say(db, 1, "Ann", (1,), "known")
    assert reference_answers.load_results(db) == counted and not blindness.find_hidden_images(db, "Ann", [1])
    assert reference_answers.find_next_images(db, "Ann", (), 9) == []
    assert compute_agreement(db).pairs == []


def test_annotator_who_viewed_an_image_is_not_asked_blind_after_overlap_is_increased(db):
    image_overlap.set_overlap(db, 2, 1.0)
    say(db, 1, "Ann", ())
    say(db, 1, "Ben", ())
    assert blindness.reveal_visible_images(db, "Cid", [1, 2]) == {2}, "image 1 has all its answers"
    image_overlap.set_overlap(db, 3, 1.0)
    assert 1 not in asked(db, "Cid") and asked(db, "Dora")[0] == 1
    assert not blindness.find_hidden_images(db, "Cid", [1]) and blindness.find_hidden_images(db, "Dora", [1]) == {1}
    say(db, 1, "Cid", ())
    assert 2 not in np.concatenate([*image_overlap.iterate_first_answers(db, ["Ann", "Ben", "Cid"])])[:, 2]


def test_labeled_image_is_not_asked_blind_after_overlap_was_turned_off_and_on(db):
    image_overlap.set_overlap(db, 2, 1.0)
    say(db, 1, "Ann", ())
    image_overlap.set_overlap(db, 1, 0)
    image_overlap.set_overlap(db, 2, 1.0)
    assert 1 not in asked(db, "Ben") and 1 not in waiting(db) and 2 in asked(db, "Ben")
    assert not blindness.find_hidden_images(db, "Ben", [1])


def test_adding_and_archiving_a_class_keeps_answers_hidden_from_blind_annotators(db):
    for image_id in (1, 2):
        say(db, image_id, "Olga", (1,), "suggestion")
    reference_answers.choose_images(db, [name_of(db, 1)], 0.5)
    image_overlap.set_overlap(db, 2, 1.0)
    say(db, 3, "Ann", (1,))
    classes.add_classes(db, [("badger", "")])
    assert blindness.find_hidden_images(db, "Ben", [1, 2, 3]) == {1, 3}
    class_changes.archive(db, "Olga", [classes.find_class(db, "badger").id])
    assert (
        blindness.find_hidden_images(db, "Ben", [1, 2, 3])
        == {1, 3}
        == blindness.find_all_hidden_images(db, "Ben") & {1, 2, 3}
    )


def test_conversion_counts_an_answer_given_after_an_undone_one_as_not_blind(tmp_path, db):
    image_overlap.set_overlap(db, 3, 1.0)
    say(db, 1, "Ann", (1,))
    take_back(db, "Ben", say(db, 1, "Ben", (1, 2, 3)))
    say(db, 1, "Ben", (1,))
    say(db, 1, "Cid", (2,))
    with db.writing() as sql:
        for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'apart%'"):
            sql.execute(f"DROP TRIGGER {name}")
        sql.execute("DROP VIEW kept_apart")
        sql.execute("DROP TABLE revealed")
        sql.execute("DELETE FROM tally WHERE kind LIKE 'apart%'")
        for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE '%displaced%'"):
            sql.execute(f"DROP TRIGGER {name}")
        sql.execute("DROP TABLE displaced_acceptance")  # of later steps
        sql.execute("ALTER TABLE worker DROP COLUMN progress_at")
        sql.execute("DELETE FROM _sqlite_migrations")
        steps = [(f"m{number:03}",) for number in range(1, 25) if number != 15]
        sql.conn.executemany("INSERT INTO _sqlite_migrations (migration_set, name) VALUES ('annotator', ?)", steps)
    db.close()
    assert len(list(convert_project(db.paths.project))) == 3
    upgraded = Database(db.paths.project)
    said = np.concatenate([*image_overlap.iterate_first_answers(upgraded, ["Ann", "Ben", "Cid"])])
    assert said[:, 2].tolist() == [0, 0, 0, 2, 2, 2]
    assert consistency.find_problems(upgraded) == []
