"""Classes are edited, merged, split off, archived, restored; labels follow, and every change is undone as one."""

import random

import pytest
from harness.class_edits import DEER, FOX, HERON, answer, change_at_random, done, everything, labels
from harness.short_forms import mark_slow_after

from annotator.errors import AnnotatorError
from annotator.records import ABSENT, PRESENT, UNSURE, Batch, Decision
from annotator.store.classes import change_descriptions, class_changes, class_history, classes
from annotator.store.images import selections
from annotator.store.labels import decisions, disagreed_cells, project_counts
from annotator.store.upkeep import consistency


def test_class_edit_changes_several_classes_in_one_step_and_undo_restores_them(db):
    before = everything(db)
    change = class_changes.edit(
        db,
        "Ann",
        {
            FOX: {"name": "heron", "key": "2", "synonyms": ["vixen ", "reynard"], "colour": "#FF8800"},
            HERON: {"name": "fox", "heading": "birds", "examples": [4, 2], "position": 7, "description": "grey"},
        },
        "the-edit",
    )
    assert change is not None
    fox, heron, deer = classes.load_active_classes(db)
    assert (fox.name, fox.key, fox.synonyms, fox.colour) == ("heron", "2", ("reynard", "vixen"), "#ff8800")
    assert (heron.name, heron.heading, heron.examples, heron.position) == ("fox", "birds", (4, 2), 7)
    assert (heron.key, deer.key) == ("", "3"), "a key that is given away is lost by the class that had it"
    assert class_changes.edit(db, "Ann", {FOX: {"name": "wolf"}}, "the-edit") == change, "repeated, it changes nothing"
    assert class_changes.edit(db, "Ann", {DEER: {"name": "deer"}}) is None
    class_history.undo_change(db, "Bob")
    assert everything(db) == before
    assert [(one.kind, one.annotator, one.undone_by) for one in class_history.load_changes(db)[:2]] == [
        ("undo", "Bob", None),
        ("edit", "Ann", change.id + 1),
    ]


def test_invalid_class_edit_lists_all_errors_together_and_changes_nothing(db):
    class_changes.edit(db, "Ann", {DEER: {"synonyms": ["roe"]}})
    before = everything(db)
    with pytest.raises(AnnotatorError) as told:
        class_changes.edit(
            db,
            "Ann",
            {
                FOX: {"name": "a|b", "key": "/", "colour": "red", "examples": [1, 99], "size": 3},
                HERON: {"description": "x" * 2001, "synonyms": ["ok", " "]},
                77: {"name": "x"},
            },
        )
    for words in (
        "'a|b' contains '|'",
        "'/' of 'fox'",
        "'red' of",
        "no image 99",
        "'a|b' has no field 'size'",
        "2,001",
        "blank",
        "no class 77",
    ):
        assert words in str(told.value), words
    for taken, words in (
        ({FOX: {"name": "heron"}}, "'heron' is the name of another class"),
        ({FOX: {"name": "roe"}}, "the synonym 'roe' of 'deer' is the name of a class"),
        ({FOX: {"synonyms": ["roe"]}}, "'roe' is a synonym of 'fox' already"),
        ({FOX: {"synonyms": ["fox"]}}, "the synonym 'fox' of 'fox' is its own name"),
    ):
        with pytest.raises(AnnotatorError, match=words):
            class_changes.edit(db, "Ann", taken)
    assert everything(db) == before


def test_archived_class_hides_its_labels_and_restore_returns_them_all(db):
    answer(db, 1, DEER, PRESENT)
    answer(db, 1, DEER, ABSENT, "Bob")
    done(db, 1)
    done(db, 2)
    for class_id in (FOX, HERON):
        answer(db, 3, class_id, ABSENT)
    answer(db, 4, DEER, PRESENT)
    before = everything(db)
    assert disagreed_cells.count(db) == 1 and project_counts.count_images_by_stage(db)["complete"] == 2
    class_changes.archive(db, "Ann", [DEER])
    assert not labels(db, DEER) and disagreed_cells.count(db) == 0
    assert [row["class"] for row in project_counts.list_label_counts_by_class(db)] == ["fox", "heron"]
    assert project_counts.count_images_by_stage(db) == {
        "all": 24, "without_decision": 21, "skipped": 0, "incomplete": 0, "complete": 3,
    }  # fmt: skip
    late = answer(db, 5, DEER, PRESENT)  # by a page that still shows it
    done(db, 6)
    assert not labels(db, DEER) and consistency.find_problems(db) == []
    class_changes.restore(db, "Ann", [DEER])
    assert labels(db, DEER) == {1: ABSENT, 2: ABSENT, 4: PRESENT, 5: PRESENT}, "image 6 was done without deer"
    assert disagreed_cells.count(db) == 1 and consistency.find_problems(db) == []
    decisions.save(db, [Decision("back", "undo", "Ann", "click", undoes=late)])
    decisions.save(db, [Decision("back-2", "undo", "Ann", "click")])
    assert everything(db) == before


def test_merge_of_two_names_for_one_class_joins_their_labels_and_undo_separates_them(db):
    given = {
        1: (PRESENT, None),
        2: (ABSENT, PRESENT),
        3: (None, PRESENT),
        4: (None, ABSENT),
        5: (None, UNSURE),
        6: (ABSENT, UNSURE),
    }
    for image_id, (fox, heron) in given.items():
        for class_id, state in ((FOX, fox), (HERON, heron)):
            if state is not None:
                answer(db, image_id, class_id, state, "Ann" if class_id == FOX else "Bob")
    class_changes.edit(db, "Ann", {HERON: {"synonyms": ["egret"]}})
    before = everything(db)
    assert class_changes.preview_merge(db, [HERON], FOX, same=True) == class_changes.MergePreview(2, 1, 1, 1)
    assert class_changes.preview_merge(db, [HERON], FOX, same=False) == class_changes.MergePreview(2, 0, 1, 1)
    change = class_changes.merge(db, "Cy", [HERON], FOX, same=True, uuid="the-merge")
    assert change.decisions == 4
    assert labels(db, FOX) == {1: PRESENT, 2: PRESENT, 3: PRESENT, 4: ABSENT, 5: UNSURE, 6: ABSENT}
    assert classes.find_class(db, "heron").synonyms == ("egret", "heron")
    assert disagreed_cells.load_newest_cells(db, 9).tolist() == [[2, FOX]], (
        "Ann said that there is none: people settle it"
    )
    assert consistency.find_problems(db) == []
    assert class_changes.merge(db, "Cy", [HERON], FOX, same=True, uuid="the-merge") == change
    with pytest.raises(AnnotatorError, match="no decision by Cy"):
        decisions.undo(db, "Cy")
    decisions.save(db, [Decision("u", "undo", "Cy", "click", undoes="the-merge")])
    assert labels(db, FOX)[3] == PRESENT, "a merge is taken back as a whole only"
    class_history.undo_change(db, "Cy")
    assert everything(db) == before and consistency.find_problems(db) == []


def test_merge_of_a_subclass_transfers_only_present_labels(db):
    answer(db, 1, HERON, ABSENT)
    answer(db, 2, HERON, PRESENT)
    class_changes.merge(db, "Ann", [HERON], FOX, same=False)
    assert labels(db, FOX) == {2: PRESENT}
    answer(db, 3, HERON, ABSENT)
    assert labels(db, FOX) == {2: PRESENT}


def test_answers_for_a_class_merged_into_another_count_for_the_remaining_class(db):
    answer(db, 1, FOX, ABSENT)
    answer(db, 2, FOX, PRESENT)
    class_changes.merge(db, "Ann", [HERON], FOX, same=True)
    sent = Decision("late", "label", "Bob", "click", 3, HERON, PRESENT)
    assert decisions.save(db, [sent, sent]).saved == ["late", "late"], "resent, it is recognised"
    answer(db, 1, HERON, PRESENT, "Bob")
    answer(db, 2, HERON, ABSENT, "Bob")
    assert labels(db, FOX) == {1: PRESENT, 2: PRESENT, 3: PRESENT}
    assert disagreed_cells.load_newest_cells(db, 9).tolist() == [[1, FOX]]
    answer(db, 3, HERON, ABSENT, "Bob")
    assert labels(db, FOX)[3] == ABSENT, "whoever said present may take it back"
    answer(db, 3, HERON, None, "Bob")
    assert 3 not in labels(db, FOX)
    cells = [(4, FOX, ABSENT, None), (4, HERON, PRESENT, None), (4, DEER, ABSENT, None)]
    assert decisions.save(db, [Batch("grid", "Bob", "grid", cells)]).saved == ["grid"]
    assert labels(db, FOX)[4] == PRESENT and project_counts.count_images_by_stage(db)["complete"] == 1
    class_changes.merge(db, "Ann", [FOX], DEER, same=True)
    answer(db, 5, HERON, PRESENT, "Bob")
    assert labels(db, DEER) == {1: PRESENT, 2: PRESENT, 4: PRESENT, 5: PRESENT}
    assert consistency.find_problems(db) == []
    class_changes.restore(db, "Ann", [HERON])
    assert labels(db, HERON) == {1: PRESENT, 2: ABSENT, 4: PRESENT, 5: PRESENT} and 5 not in labels(db, DEER)
    assert consistency.find_problems(db) == []


def test_class_split_creates_an_unlabeled_class_and_a_selection_of_the_old_images(db):
    for image_id in (2, 5, 9):
        answer(db, image_id, FOX, PRESENT)
    done(db, 2)
    new_id, selection = class_changes.split_class(db, "Ann", FOX, "arctic fox")
    assert selections.load(db, selection).tolist() == [2, 5, 9]
    assert [one.name for one in classes.load_ordered_classes(db)] == ["fox", "arctic fox", "heron", "deer"]
    assert classes.find_class(db, "arctic fox").description == "Split off from fox."
    assert not labels(db, new_id) and project_counts.count_images_by_stage(db)["complete"] == 0
    class_history.undo_change(db, "Ann")
    assert project_counts.count_images_by_stage(db)["complete"] == 1
    with pytest.raises(AnnotatorError, match="archived class: restore it"):
        class_changes.split_class(db, "Ann", FOX, "arctic fox")


def test_undo_refuses_a_class_change_that_later_changes_depend_on(db):
    first = class_changes.merge(db, "Ann", [HERON], FOX, same=True)
    second = class_changes.merge(db, "Bob", [FOX], DEER, same=True)
    for later in (lambda: class_history.undo_change(db, "Ann", first.id),):
        with pytest.raises(AnnotatorError, match=f"the same classes. Undo first: {second.id}"):
            later()
    with pytest.raises(AnnotatorError, match="'fox' is archived"):
        class_changes.merge(db, "Ann", [DEER], FOX, same=True)
    for _ in range(2):
        class_history.undo_change(db, "Ann")
    assert [one.name for one in classes.load_active_classes(db)] == ["fox", "heron", "deer"]
    with pytest.raises(AnnotatorError, match="undone already"):
        class_history.undo_change(db, "Ann", first.id)


def test_class_reorder_can_be_undone_after_the_old_order_was_set_manually(db):
    before = everything(db)
    change = class_changes.reorder(db, "Ann", [DEER])
    class_changes.reorder(db, "Ann", [FOX, HERON, DEER])
    assert change is not None and class_history.undo_change(db, "Bob", change.id).undoes == change.id
    assert everything(db) == before
    with pytest.raises(AnnotatorError, match=f"Change {change.id} was undone already"):
        class_history.undo_change(db, "Ann", change.id)


def test_class_history_shows_class_names_as_of_each_change(db):
    class_changes.edit(db, "Ann", {FOX: {"name": "red fox"}, HERON: {"key": "h"}})
    class_changes.merge(db, "Ann", [HERON], FOX, same=True)
    class_changes.edit(db, "Ann", {FOX: {"name": "beast"}})
    class_history.undo_change(db, "Ann")
    class_changes.edit(db, "Ann", {FOX: {"name": "animal"}})
    assert [words for _, words in change_descriptions.describe_history(db)] == [
        "renamed 'red fox' to 'animal'",
        "undid change 4",
        "renamed 'red fox' to 'beast'",
        "merged 'heron' into 'red fox' (0 answers)",
        "renamed 'fox' to 'red fox'; key of 'heron': h",
        "added 'fox', 'heron', 'deer'",
    ]


def test_undo_refuses_the_class_change_that_added_the_first_classes_of_a_project(db):
    [first] = class_history.load_changes(db)
    assert (first.kind, first.is_first, first.can_be_undone) == ("add", True, False)
    before = everything(db)
    with pytest.raises(AnnotatorError, match=f"Change {first.id} added the project's first classes"):
        class_history.undo_change(db, "Ann", first.id)
    with pytest.raises(AnnotatorError, match="No change of classes is left to undo"):
        class_history.undo_change(db, "Ann")
    assert everything(db) == before
    classes.add_classes(db, [("owl", "")], "Ann")
    assert class_history.load_changes(db)[0].can_be_undone
    class_history.undo_change(db, "Ann")
    assert [one.name for one in classes.load_active_classes(db)] == ["fox", "heron", "deer"]


@pytest.mark.parametrize("seed", mark_slow_after(1, range(5)))
def test_labels_stay_consistent_with_decisions_after_random_class_changes(db, seed):
    rng = random.Random(seed)
    for number in range(100):
        change_at_random(db, rng)
        if number % 10 == 9:
            assert consistency.find_problems(db) == [], number
    assert consistency.find_problems(db) == []
