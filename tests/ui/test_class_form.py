"""The form that adds classes: it says what it did, and asks first where that may be a surprise."""

import uuid
from collections.abc import Callable

import pytest
from harness.short_forms import mark_slow_after
from streamlit.testing.v1 import AppTest

from annotator.records import Decision
from annotator.store.classes import classes
from annotator.store.labels import decisions, project_counts
from annotator.ui.access import served_project
from annotator.ui.shared.class_form import parse_lines
from annotator.ui.shared.markdown_text import escape_markdown

SCRIPT = """
from annotator.ui.pages.classes import classes_page
classes_page.page()
"""


@pytest.fixture
def add(db) -> Callable[[str], AppTest]:
    """Opens Classes and gives these lines to the form."""
    served_project.open_project(db.paths.project)

    def given(lines: str) -> AppTest:
        test = AppTest.from_string(SCRIPT, default_timeout=120)
        test.session_state["name"] = "Ann"
        test.run()
        test.text_area(key="class_lines").input(lines)
        next(one for one in test.button if one.label == "Add classes").click().run()
        assert not test.exception
        return test

    return given


def names(db) -> list[str]:
    return [one.name for one in classes.load_active_classes(db)]


def told(test: AppTest) -> str:
    return " ".join(one.value for one in test.success)


@pytest.mark.parametrize(
    ("lines", "says", "added"),
    mark_slow_after(
        1,
        [
            ("owl\nhare\nnewt", ["3 classes (owl, hare, newt) added"], ["owl", "hare", "newt"]),
            ("owl\nfox", ["1 class (owl) added", "Already there: fox"], ["owl"]),
            ("fox\ndeer", ["No class added", "Already there: fox, deer"], []),
            ("fox | red", ["Already there, description updated: fox"], []),
            ("owl\nowl | of the night", ["1 class (owl) added", "Listed twice: owl"], ["owl"]),
        ],
    ),
)
def test_class_form_reports_added_and_existing_classes_and_clears_its_box(add, db, lines, says, added):
    test = add(lines)
    for words in says:
        assert escape_markdown(words) in told(test), told(test)
    assert names(db) == ["fox", "heron", "deer", *added]
    assert test.text_area(key="class_lines").value == ""


def test_class_form_line_contains_a_description_after_a_bar_or_tab():
    lines = "fox | red | and quick\nheron\tgrey\n\n  deer  \nroe deer"
    assert parse_lines(lines) == [("fox", "red | and quick"), ("heron", "grey"), ("deer", ""), ("roe deer", "")]


def test_empty_class_form_adds_nothing_and_reports_it(add, db):
    assert any("Nothing to add" in one.value for one in add(" \n").info)
    assert names(db) == ["fox", "heron", "deer"]


def complete(db, image_id: int) -> None:
    one = Decision(str(uuid.uuid4()), "done", "Ann", "done", image_id=image_id)
    assert not decisions.save(db, [one]).refused


@pytest.mark.parametrize(
    ("lines", "asks"), mark_slow_after(1, [("owl", "2 complete images become"), ("Fox", "looks like 'fox'")])
)
def test_class_form_asks_before_adding_similar_names_or_reopening_images(add, db, lines, asks):
    for image_id in (1, 2):
        complete(db, image_id)
    test = add(lines)
    assert any(asks in one.value for one in test.warning), test.warning
    assert names(db) == ["fox", "heron", "deer"] and project_counts.count_images_by_stage(db)["complete"] == 2
    test.button(key="classes_no").click().run()
    assert names(db) == ["fox", "heron", "deer"] and not test.warning
    test.text_area(key="class_lines").input(lines)
    next(one for one in test.button if one.label == "Add classes").click().run()
    test.button(key="classes_yes").click().run()
    assert names(db) == ["fox", "heron", "deer", lines] and project_counts.count_images_by_stage(db)["complete"] == 0
    assert "1 class" in told(test) and not test.warning


def test_class_form_adds_existing_classes_without_a_question_or_reopened_images(add, db):
    complete(db, 1)
    test = add("fox\nheron | grey")
    assert not test.warning and project_counts.count_images_by_stage(db)["complete"] == 1


@pytest.mark.parametrize(
    ("lines", "button", "label", "added"),
    mark_slow_after(
        1,
        [
            ("fox, hare; newt\nowl", "classes_split", "Add 4 classes: fox, hare, newt, owl", ["hare", "newt", "owl"]),
            ("hare, newt", "classes_split", "Add 2 classes: hare, newt", ["hare", "newt"]),
            ("Hare, brown", "classes_keep", "Add 1 class, named Hare, brown", ["Hare, brown"]),
            (
                "Hare, brown\nOwl, tawny",
                "classes_keep",
                "Add 2 classes, with commas in their names",
                ["Hare, brown", "Owl, tawny"],
            ),
        ],
    ),
)
def test_class_form_adds_names_with_commas_as_several_classes_or_one_as_chosen(add, db, lines, button, label, added):
    test = add(lines)
    assert names(db) == ["fox", "heron", "deer"], "nothing before that is said"
    assert test.button(key=button).label.replace("\\", "") == label
    test.button(key=button).click().run()
    assert names(db) == ["fox", "heron", "deer", *added] and not test.exception
    assert test.text_area(key="class_lines").value == ""


def test_class_form_question_about_commas_offers_one_or_several_classes_and_cancel(add, db):
    test = add("hare, newt")
    assert "Is this 2 classes, hare and newt, or one class named hare, newt?" in test.info[0].value.replace("\\", "")
    test.button(key="classes_none").click().run()
    assert names(db) == ["fox", "heron", "deer"] and not test.info


def test_class_form_asks_no_question_about_commas_in_described_decimal_or_existing_names(add, db):
    test = add("Hare, brown | in fields\nlens 1,4 mm")
    assert not test.info and names(db)[3:] == ["Hare, brown", "lens 1,4 mm"]
    test.text_area(key="class_lines").input("Hare, brown")
    next(one for one in test.button if one.label == "Add classes").click().run()
    assert not test.info and names(db)[3:] == ["Hare, brown", "lens 1,4 mm"]
