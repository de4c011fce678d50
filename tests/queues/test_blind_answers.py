"""Overlap: some images are answered by several people, blind to each other, and by nobody twice."""

from dataclasses import replace

import numpy as np
import pytest
from harness.blind_answers import CLASSES, asked, given, name_of, say, states, waiting
from harness.published_runs import publish

from annotator.errors import AnnotatorError
from annotator.quality.certification import compute_certificate
from annotator.queues import image_queue
from annotator.queues.autopilot import planner
from annotator.records import Decision, SuggestionFilter, WantedActions, WantedImages
from annotator.store.classes import classes
from annotator.store.labels import decisions, disagreed_cells, image_overlap
from annotator.store.people import blindness, reference_answers
from annotator.store.upkeep import consistency
from spmll.statistics.allowed_mistakes import ASSUMED_RATES, READ_TWICE


def test_overlap_asks_exactly_two_annotators_once_each_about_an_image(db):
    image_overlap.set_overlap(db, 2, 1.0)
    assert 1 in asked(db, "Ann")
    say(db, 1, "Ann", (1,))
    assert 1 not in asked(db, "Ann") and asked(db, "Ben")[0] == 1, "what somebody has begun comes first"
    say(db, 1, "Ben", (1,))
    assert 1 not in asked(db, "Ben") + asked(db, "Cid")
    assert image_overlap.load_progress(db) == image_overlap.OverlapProgress(24, 23, 2)


def test_annotator_who_labeled_an_image_elsewhere_is_not_asked_blind_even_after_undo(db):
    image_overlap.set_overlap(db, 2, 1.0)
    assert not decisions.save(db, [Decision("u", "label", "Ann", "click", 1, 1, 1)]).refused
    assert 1 not in asked(db, "Ann") and 1 in asked(db, "Ben")
    assert not decisions.save(db, [Decision("v", "undo", "Ann", "click", undoes="u")]).refused
    assert 1 not in asked(db, "Ann") and 1 in asked(db, "Ben"), "meanwhile she could see what others said"


def test_overlap_skips_images_labeled_by_an_annotator_but_not_imported_ones(db):
    assert not decisions.save(db, [Decision("u", "label", "Ann", "click", 1, 1, 1)]).refused
    assert not decisions.save(db, [Decision("i", "label", "a file", "import", 2, 1, 1)]).refused
    image_overlap.set_overlap(db, 2, 1.0)
    assert 1 not in waiting(db) and 2 in waiting(db), "a file is not a person"
    assert 1 in given(db, "Ben")


def test_image_with_a_cleared_answer_stays_in_regular_queues_under_full_overlap(db):
    assert not decisions.save(db, [Decision("u", "label", "Ann", "click", 1, 1, 1)]).refused
    assert not decisions.save(db, [Decision("v", "clear", "Ann", "click", 1, 1)]).refused
    image_overlap.set_overlap(db, 2, 1.0)
    assert given(db, "Ben") == {1}


def test_blind_answer_replaces_an_imported_label(db):
    assert not decisions.save(db, [Decision("i", "label", "a file", "import", 1, 1, 1)]).refused
    image_overlap.set_overlap(db, 2, 1.0)
    say(db, 1, "Ann", ())
    say(db, 1, "Ben", (1,))
    assert states(db, 1)[1] == (-1, "Ann") and disagreed_cells.load_newest_cells(db, 9).tolist() == [[1, 1]]
    assert consistency.find_problems(db) == []


def test_second_blind_answer_keeps_the_label_and_records_a_disagreement(db):
    image_overlap.set_overlap(db, 3, 1.0)
    say(db, 1, "Ann", (1,))
    say(db, 1, "Ben", (1, 2))
    assert states(db, 1) == {1: (1, "Ann"), 2: (-1, "Ann"), 3: (-1, "Ann")}
    assert disagreed_cells.load_newest_cells(db, 9).tolist() == [[1, 2]]
    say(db, 1, "Cid", (1,))
    assert disagreed_cells.load_newest_cells(db, 9).tolist() == [[1, 2]], "a third opinion settles nothing"
    voices = disagreed_cells.load_answers_by_cell(db, [1])[1][2]
    assert [(voice.person, voice.state) for voice in voices] == [("Ann", -1), ("Ben", 1), ("Cid", -1)]
    assert not decisions.save(db, [Decision("s", "label", "Rea", "settlement", 1, 2, 1)]).refused
    assert states(db, 1)[2] == (1, "Rea") and disagreed_cells.count(db) == 0
    assert consistency.find_problems(db) == []


def test_undo_of_a_blind_answer_keeps_the_other_answer_and_asks_a_third_annotator(db):
    image_overlap.set_overlap(db, 2, 1.0)
    first = say(db, 1, "Ann", (1,))
    say(db, 1, "Ben", (2,))
    assert not decisions.save(db, [Decision("u", "undo", "Ann", "click", undoes=first)]).refused
    assert states(db, 1) == {1: (-1, "Ben"), 2: (1, "Ben"), 3: (-1, "Ben")}
    assert asked(db, "Cid")[0] == 1 and 1 not in asked(db, "Ann") and disagreed_cells.count(db) == 0
    assert consistency.find_problems(db) == []


def test_regular_queues_skip_images_that_await_blind_answers_for_overlap(db):
    publish(db, np.full((24, 3), 0.6))
    image_overlap.set_overlap(db, 2, 0.5)
    kept = waiting(db)
    assert 0 < len(kept) < 24
    assert given(db, "Ann") == set(range(1, 25)) - kept
    one = min(kept)
    say(db, one, "Ann", ())
    say(db, one, "Ben", ())
    assert one not in waiting(db)
    image_overlap.set_overlap(db, 1, 0.5)
    assert given(db, "Ann") == set(range(1, 25)) - {one}


def test_autopilot_offers_overlap_images_without_labels_or_suggestions(db):
    publish(db, np.full((24, 3), 0.9))
    image_overlap.set_overlap(db, 2, 1.0)
    say(db, 1, "Ann", (1,))
    action = planner.lease_next_actions(db, WantedActions("tab", "Ben", (), 1)).items[0]
    assert action.kind == action.source == "reading" and action.item.image.id == 1
    assert (action.item.labels, action.item.suggestions, action.item.likely) == ([], [], b"")
    assert (action.preset, action.scores, action.models) == ((), (), ())
    other = planner.lease_next_actions(db, WantedActions("other tab", "Cid", (), 1)).items[0]
    assert other.item.image.id != 1, "no image is in two hands"


def test_autopilot_mixes_blind_and_regular_actions_under_partial_overlap(db):
    publish(db, np.full((24, 3), 0.9))
    image_overlap.set_overlap(db, 2, 0.5)
    kinds = [
        planner.lease_next_actions(db, WantedActions(f"tab {n}", f"person {n}", (), 1, passed=[(99, n)] * n))
        .items[0]
        .kind
        for n in range(12)
    ]
    assert 0 < kinds.count("reading") < 12


def test_class_added_after_the_blind_answers_returns_the_image_to_regular_queues(db):
    image_overlap.set_overlap(db, 2, 1.0)
    say(db, 1, "Ann", ())
    say(db, 1, "Ben", ())
    assert given(db, "Cid") == set()
    classes.add_classes(db, [("badger", "")])
    assert given(db, "Cid") == {1}, "all others wait"


def test_raising_the_overlap_share_keeps_chosen_images_and_samples_new_ones(db):
    image_overlap.set_overlap(db, 2, 0.3)
    few = waiting(db)
    image_overlap.set_overlap(db, 2, 0.8)
    assert few < waiting(db)
    with db.writing() as sql:
        for number, digits in enumerate(("00000000", "ffffffff")):
            sql.execute(
                "INSERT INTO image (id, name, sha256, width, height) VALUES (?, ?, ?, 1, 1)",
                [100 + number, f"new {number}", f"{number:08x}{digits}{48 * '0'}"],
            )
    assert 100 in waiting(db) and 101 not in waiting(db)


def test_changing_the_number_of_overlap_annotators_keeps_existing_answers(db):
    image_overlap.set_overlap(db, 2, 1.0)
    say(db, 1, "Ann", ())
    say(db, 1, "Ben", ())
    image_overlap.set_overlap(db, 3, 1.0)
    assert asked(db, "Cid")[0] == 1 and 1 not in asked(db, "Ann")
    image_overlap.set_overlap(db, 1, 1.0)
    assert image_overlap.load_overlap(db) is None and not waiting(db) and states(db, 1)[1] == (-1, "Ann")


@pytest.mark.parametrize(("people", "share"), [(0, 0.5), (21, 0.5), (2, -0.1), (2, 1.1), (2, float("nan"))])
def test_overlap_settings_out_of_bounds_are_refused_and_change_nothing(db, people, share):
    image_overlap.set_overlap(db, 2, 0.5)
    before = waiting(db)
    with pytest.raises(AnnotatorError):
        image_overlap.set_overlap(db, people, share)
    assert waiting(db) == before


def test_reference_image_is_asked_once_per_annotator_and_changes_no_label(db):
    for image_id in (1, 2):
        say(db, image_id, "Olga", (1,), "suggestion")
    reference_answers.choose_images(db, [name_of(db, 1), name_of(db, 2)], 0.5)
    assert (
        sorted(reference_answers.find_next_images(db, "Ann", (), 9)) == [1, 2]
        and reference_answers.find_next_images(db, "Olga", (), 9) == []
    )
    say(db, 1, "Ann", (1, 2), "known")
    assert reference_answers.find_next_images(db, "Ann", (), 9) == [2]
    assert states(db, 1) == {1: (1, "Olga"), 2: (-1, "Olga"), 3: (-1, "Olga")} and disagreed_cells.count(db) == 0
    assert reference_answers.load_results(db) == [reference_answers.ReferenceResult("Ann", 1, 1, 1, 1, 2)]
    assert consistency.find_problems(db) == []
    kinds = {
        (one.kind, one.source, one.item.image.id)
        for n in range(12)
        for one in planner.lease_next_actions(db, WantedActions(f"tab {n}", "Ben", (), 1, passed=[(99, n)] * n)).items
        if one.source == "known"
    }
    assert kinds and kinds <= {("reading", "known", 1), ("reading", "known", 2)}


def test_reference_images_are_hidden_from_unasked_annotators_and_absent_from_their_review(db):
    for image_id in (1, 2):
        say(db, image_id, "Olga", (1,), "suggestion")
    publish(db, np.full((24, 3), 0.01), decisions.get_newest_decision_id(db))  # the model doubts that class 1 is there

    def doubted(who: str, blind: bool) -> set[int]:
        only = SuggestionFilter(low=0.0, kind="likely_mistakes")
        wanted = WantedImages("review", f"{who} {blind}", who, (), 100, only, may_review=not blind)
        shown = {item.image.id for item in image_queue.lease_next_work(db, wanted).items}
        image_queue.lease_next_work(db, replace(wanted, want=0))
        return shown

    assert doubted("Ann", blind=True) == {1, 2} and blindness.find_hidden_images(db, "Ann", [1, 2, 3]) == set()
    reference_answers.choose_images(db, [name_of(db, 1), name_of(db, 2)], 0.5)
    assert blindness.find_hidden_images(db, "Ann", [1, 2, 3]) == blindness.find_all_hidden_images(db, "Ann") == {1, 2}
    assert blindness.find_hidden_images(db, "Olga", [1, 2, 3]) == set(), "she has answered them"
    assert doubted("Ann", blind=True) == set() and doubted("Ann", blind=False) == {1, 2}
    say(db, 1, "Ann", (1, 2), "known")
    assert blindness.find_hidden_images(db, "Ann", [1, 2, 3]) == {2} and doubted("Ann", blind=True) == {1}
    reference_answers.set_share(db, 0)
    assert blindness.find_hidden_images(db, "Ann", [1, 2, 3]) == set(), "nobody is asked any more"


def test_reference_image_list_refuses_incomplete_images_and_unknown_names(db):
    assert not decisions.save(db, [Decision("u", "label", "Ann", "click", 1, 1, 1)]).refused
    with pytest.raises(AnnotatorError, match="2 of 2 images are not complete"):
        reference_answers.choose_images(db, [name_of(db, 1), name_of(db, 2)], 0.1)
    with pytest.raises(AnnotatorError, match="2 of 3 lines name no image of this project: 'a', 'b'"):
        reference_answers.choose_images(db, [name_of(db, 1), "a", "b"], 0.1)
    assert reference_answers.count_images(db) == 0 and reference_answers.get_share(db) == 0


def test_certificate_recall_decreases_by_the_misses_that_overlap_answers_reveal(db):
    image_overlap.set_overlap(db, 2, 1.0)
    for image_id in range(1, 25):
        truth = tuple(class_id for class_id in CLASSES if image_id >> (class_id - 1) & 1)
        say(db, image_id, "Ann", truth)
        # Ben misses class 1 on three of four images that show it, and sees class 2 on one that does not.
        missed = (1,) if image_id % 8 in (3, 5, 7) else ()
        say(db, image_id, "Ben", tuple(c for c in (*truth, *((2,) if image_id == 1 else ())) if c not in missed))
    before = compute_certificate(db)
    assert before.overall.recall.estimate == 1.0, "everything is answered, and taken as right"
    assert before.compared == 12 + 3 + 2 * 24 and before.unsettled == 10
    assert before.mistakes == READ_TWICE, "10 of 63 is more than 1 in 50"
    for image_id in range(1, 25):
        if image_id % 8 not in (3, 5, 7):
            continue
        cell = Decision(f"settle {image_id}", "label", "Cid", "settlement", image_id, 1, 1)
        assert not decisions.save(db, [cell]).refused
    assert not decisions.save(db, [Decision("settle 2", "label", "Cid", "settlement", 1, 2, -1)]).refused
    settled = compute_certificate(db)
    assert settled.unsettled == 0
    one, _, three = (row.recall_allowing for row in settled.classes)
    # Ann found 12 of 12, Ben 3 of 12: on average 5 of 8, and both miss 9 of 64, for 55 that one of them finds.
    assert one.estimate == pytest.approx(55 / 64, abs=1e-4) and one.low < 0.85 and one.high == 1.0
    assert three.estimate == 1.0
    assert before.overall.recall_allowing.low < settled.overall.recall_allowing.low, "it counts either way"
    assert "for 0 of 3 classes. With 95 % confidence at all looks together, allowing" in settled.sentence(0.98)


def test_certificate_assumes_mistakes_until_enough_answers_were_given_twice(db):
    image_overlap.set_overlap(db, 2, 1.0)
    found = []
    for annotator in ("Ann", "Ben"):
        for image_id in range(1, 25):
            say(db, image_id, annotator, tuple(class_id for class_id in CLASSES if image_id >> (class_id - 1) & 1))
        found.append(compute_certificate(db))
    once, twice = found
    assert once.mistakes == twice.mistakes == ASSUMED_RATES and twice.compared == 72, (
        "72 answers without a mistake are few"
    )
    assert twice.overall.recall_allowing.low > once.overall.recall_allowing.low, "two people have to miss a label"


def test_first_overlap_answers_exclude_undone_answers_and_answers_not_given_blind(db):
    image_overlap.set_overlap(db, 2, 1.0)
    taken_back = say(db, 1, "Cid", (1,))
    assert not decisions.save(db, [Decision("u", "undo", "Cid", "reading", undoes=taken_back)]).refused
    say(db, 1, "Ann", (2,))
    say(db, 1, "Ben", (2, 3))
    say(db, 2, "Ann", (1,), "click")
    say(db, 2, "Ben", (1,), "click")
    rows = np.concatenate(list(image_overlap.iterate_first_answers(db, ["Ann", "Ben"])))
    assert sorted(map(tuple, rows.tolist())) == [
        (1, 1, 0, -1, -1, 0),
        (1, 1, 1, -1, -1, 0),
        (1, 2, 0, 1, 1, 0),
        (1, 2, 1, 1, 1, 0),
        (1, 3, 0, -1, -1, 1),
        (1, 3, 1, 1, -1, 1),
    ]
    assert not len(np.concatenate([np.zeros((0, 6)), *image_overlap.iterate_first_answers(db, [])]))
    image_overlap.set_overlap(db, 1, 0.0)
    assert len(np.concatenate(list(image_overlap.iterate_first_answers(db, ["Ann", "Ben"])))) == 6, (
        "what was said stays known"
    )
