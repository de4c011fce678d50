"""Relations of classes on the pages: declared with a look at what follows, and seen while labeling."""

import re

import pytest
from harness.contexts import Contexts
from harness.grids import open_grid, shown
from harness.person import looked, looked_around, open_page, wait_for_picture
from harness.served import serving, until
from playwright.sync_api import expect
from streamlit.testing.v1 import AppTest

from annotator.records import Batch
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.events import project_events
from annotator.store.labels import decisions, implied_cells
from annotator.store.relations import declared_relations
from annotator.store.relations.relation_edits import AT_MOST_ONE, EXACTLY_ONE, IS_A, Declaration
from annotator.ui.access import served_project

SCRIPT = """
from annotator.ui.pages.classes import classes_page
classes_page.page()
"""


def press(test: AppTest, label: str) -> AppTest:
    test = next(one for one in test.button if one.label == label).click().run()
    assert not test.exception, test.exception
    return test


def test_relation_is_previewed_declared_removed_and_undone_on_the_page(db: Database):
    served_project.open_project(db.paths.project)
    test = AppTest.from_string(SCRIPT, default_timeout=120)
    test.session_state["name"] = "Ann"
    test.run()
    fox, heron = (classes.load_classes_by_name(db)[name].id for name in ("fox", "heron"))
    test.selectbox(key="relation_child").set_value(fox)
    test.selectbox(key="relation_parent").set_value(heron).run()
    press(test, "Show what follows")
    assert any("0 cells would be implied to be present" in one.value for one in test.markdown)
    press(test, "Declare")
    assert [one.declared for one in declared_relations.load_relations(db).made] == [Declaration(IS_A, (fox, heron))]
    assert any("fox is a kind of heron" in one.value for one in test.success)
    press(test, "Remove")
    assert declared_relations.load_relations(db).made == ()
    declared_relations.undo(db, "Ann")
    test.run()
    press(test, "Undo the newest change of relations")
    assert declared_relations.load_relations(db).made == ()


@pytest.mark.slow
@pytest.mark.browser
def test_dragging_a_class_onto_another_declares_a_relation_only_after_confirmation(browser: Contexts, project):
    db = Database(project)
    fox, heron = (classes.load_classes_by_name(db)[name].id for name in ("fox", "heron"))
    with serving(project) as served:
        page = open_page(browser, served, "Ann", "/classes")
        row = lambda id_: page.locator(f".tree li[data-class='{id_}']")  # noqa: E731
        row(fox).drag_to(row(heron))
        expect(page.get_by_text("0 cells would be implied to be present")).to_be_visible()
        assert declared_relations.load_relations(db).made == ()
        page.get_by_role("button", name="Declare", exact=True).click()
        until(
            lambda: (
                [one.declared for one in declared_relations.load_relations(db).made]
                == [Declaration(IS_A, (fox, heron))]
            )
        )
        expect(page.locator(f".tree li[data-class='{heron}'] + li")).to_have_attribute("data-class", str(fox))
        row(heron).drag_to(row(fox))
        expect(page.get_by_text("that is a circle").first).to_be_visible()
        assert len(declared_relations.load_relations(db).made) == 1


@pytest.mark.browser
def test_annotate_shows_implied_labels_and_f8_undoes_an_earlier_answer_in_conflict(browser: Contexts, project):
    db = Database(project)
    fox, heron, deer = (classes.load_classes_by_name(db)[name].id for name in ("fox", "heron", "deer"))
    declared_relations.declare(
        db, [Declaration(IS_A, (fox, heron)), Declaration(AT_MOST_ONE, (fox, deer), "one")], "Ann"
    )
    with serving(project) as served:
        page = open_page(browser, served, "Ann", "/annotate")
        page.get_by_role("button", name="All labels").click()
        wait_for_picture(page)  # a press before decides nothing
        looked(page)
        page.locator(f"button.class[data-class='{deer}']").click()
        page.locator(f"button.class[data-class='{fox}']").click()
        expect(page.locator(".words")).to_contain_text("Fox present contradicts deer present.")
        page.keyboard.press("F8")
        for class_id, word in ((heron, "present"), (deer, "absent")):
            button = page.locator(f".classes button.class[data-class='{class_id}']")
            expect(button).to_have_attribute("data-implied", "")
            expect(button).to_have_attribute("data-state", word)
        until(lambda: implied_cells.count_by_state(db) == {"present": 1, "absent": 1})
        page.keyboard.press("F8")  # nothing is asked any more
        looked_around(page)
        page.keyboard.press("Enter")
        labels = "SELECT class_id, state FROM label ORDER BY class_id"
        until(lambda: db.tuples(labels) == [(fox, 1), (deer, -1)])
        page.keyboard.press("/")
        page.keyboard.type("heron")  # which a fox is a kind of
        expect(page.locator(".found [role=option]")).to_have_text([re.compile("^heron"), re.compile("^foxheron")])
        page.keyboard.press("Escape")
        assert db.value("SELECT count(*) FROM image WHERE stage = 3") == 1, "what is implied counts"


@pytest.mark.slow
@pytest.mark.browser
def test_answer_for_a_whole_event_adds_no_label_in_conflict_with_implied_labels(browser: Contexts, project):
    db = Database(project)
    fox, heron, deer = (classes.load_classes_by_name(db)[name].id for name in ("fox", "heron", "deer"))
    declared_relations.declare(db, [Declaration(IS_A, (fox, heron))], "Ann")
    with db.writing() as sql:  # a photo each 10 seconds
        sql.execute("UPDATE image SET captured_at = 1.7e9 + 10 * id")
    project_events.find_and_save(db)
    with serving(project) as served:
        page = open_page(browser, served, "Ann", "/annotate")
        page.get_by_role("button", name="All labels").click()
        wait_for_picture(page)
        looked(page)
        page.locator(f"button.class[data-class='{fox}']").click()
        page.locator(".strip").first.wait_for()
        looked_around(page)
        page.keyboard.press("Control+Enter")
        until(lambda: db.value("SELECT count(DISTINCT image_id) FROM label") > 5)
        assert set(db.tuples("SELECT class_id, state FROM label")) == {(fox, 1), (deer, -1)}
        assert implied_cells.count_by_state(db)["absent"] == 0 and declared_relations.find_contradictions(db, 1) == []


@pytest.mark.slow
@pytest.mark.browser
def test_annotate_class_list_indents_subclasses_and_shows_groups_of_class_relations(browser: Contexts, project):
    db = Database(project)
    fox, heron, deer = (classes.load_classes_by_name(db)[name].id for name in ("fox", "heron", "deer"))
    with serving(project) as served:
        page = open_page(browser, served, "Ann", "/annotate")
        enter = page.locator(".answers button.wide span")
        expect(enter).to_have_text("Nothing here: empty")
        shown = lambda: [one.get_attribute("data-class") for one in page.locator(".classes .class").all()]  # noqa: E731
        assert shown() == [str(fox), str(heron), str(deer)]
        declared_relations.declare(db, [Declaration(IS_A, (fox, deer))], "Ann")
        page.reload()
        expect(page.locator(f".classes .class[data-class='{deer}'] + .class")).to_have_attribute("data-class", str(fox))
        left = [page.locator(f".classes .class[data-class='{one}']").bounding_box()["x"] for one in (heron, deer, fox)]
        assert left[0] == left[1] < left[2], "indented"
        declared_relations.declare(db, [Declaration(EXACTLY_ONE, (deer, heron), "which")], "Ann")
        page.reload()
        expect(page.get_by_role("group", name="which · exactly one").locator(".class")).to_have_count(3)
        expect(enter).to_have_text("Nothing else here")


@pytest.mark.slow
@pytest.mark.browser
def test_grid_reports_earlier_answers_in_conflict_and_f8_undoes_them_in_one_step(browser: Contexts, project):
    db = Database(project)
    fox, deer = (classes.load_classes_by_name(db)[name].id for name in ("fox", "deer"))
    declared_relations.declare(db, [Declaration(AT_MOST_ONE, (fox, deer), "one")], "Ann")
    deers = "SELECT image_id FROM label WHERE class_id = ? AND state = 1 ORDER BY image_id"
    with serving(project) as served:
        page = open_grid(browser, served, "Ann", f"/grid?class={fox}")
        if shown(page)["start"] != "yes":
            page.keyboard.press("\\")
        grid = until(lambda: (now := shown(page))["start"] == "yes" and now)
        answers = [(image, deer, 1, None) for image, _ in grid["tiles"][:2]]  # somebody else, meanwhile
        decisions.save(db, [Batch(uuid="meanwhile", annotator="Bea", source="click", cells=answers)])
        looked_around(page)
        page.keyboard.press("Enter")
        expect(page.locator(".words")).to_contain_text(
            "Fox present contradicts deer present on 2 images", timeout=30_000
        )
        page.keyboard.press("F8")
        until(lambda: db.tuples(deers, [deer]) == [])
        expect(page.locator(".words")).to_have_text("")
        page.keyboard.press("Backspace")
        until(lambda: len(db.tuples(deers, [deer])) == 2)


@pytest.mark.slow
@pytest.mark.browser
def test_gallery_reports_answers_in_conflict_with_new_labels_and_f8_undoes_them(browser: Contexts, project):
    db = Database(project)
    fox, deer = (classes.load_classes_by_name(db)[name].id for name in ("fox", "deer"))
    declared_relations.declare(db, [Declaration(AT_MOST_ONE, (fox, deer), "one")], "Ann")
    decisions.save(db, [Batch("before", "Bea", "click", [(image, deer, 1, None) for image in (1, 2, 3)])])
    with serving(project) as served:
        page = open_page(browser, served, "Ann", "/gallery")
        page.locator(".thumb img").first.wait_for(timeout=60_000)
        page.keyboard.press("Control+a")
        page.locator(f".panel button[data-class='{fox}'][data-state='1']").click()
        page.keyboard.press("Control+Enter")
        expect(page.locator(".words")).to_contain_text(
            "Fox present contradicts deer present on 3 images", timeout=30_000
        )
        page.keyboard.press("F8")
        until(lambda: db.value("SELECT count(*) FROM label WHERE class_id = ? AND state = 1", [deer]) == 0)
