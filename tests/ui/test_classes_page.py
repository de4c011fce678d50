"""The Classes page: everything about classes is changed there, in the open, and can be taken back there."""

import json
import uuid
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qsl

import pytest
from harness.browser import open_by_menu
from harness.person import open_page, served_photos
from harness.served import until
from playwright.sync_api import Error, expect
from streamlit.testing.v1 import AppTest

from annotator.errors import AnnotatorError
from annotator.queues import grid_queue
from annotator.records import ABSENT, PRESENT, Decision, WantedGrids
from annotator.store.classes import class_changes, class_history, classes
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.ui.access import served_project
from annotator.ui.pages.classes.classes_page import build_rows, find_edits, save_changes
from annotator.ui.shared import page_classes

SCRIPT = """
from annotator.ui.pages.classes import classes_page
classes_page.page()
"""
FOX, HERON, DEER = 1, 2, 3


@pytest.fixture
def page(db) -> Callable[[], AppTest]:
    """Opens the page for Ann."""
    served_project.open_project(db.paths.project)

    def opened() -> AppTest:
        test = AppTest.from_string(SCRIPT, default_timeout=120)
        test.session_state["name"] = "Ann"
        return fine(test.run())

    return opened


def fine(test: AppTest) -> AppTest:
    assert not test.exception, test.exception
    return test


def press(test: AppTest, label: str) -> AppTest:
    return fine(next(one for one in test.button if one.label == label).click().run())


def told(test: AppTest) -> str:
    return plain(test.success)


def plain(elements) -> str:
    """What stands there, without the escapes of Markdown."""
    return " ".join(one.value for one in elements).replace("\\", "")


def answer(db, image_id: int, class_id: int, state: int) -> None:
    one = Decision(str(uuid.uuid4()), "label", "Ben", "click", image_id, class_id, state)
    assert not decisions.save(db, [one]).refused


def labels(db, class_id: int) -> dict[int, int]:
    return {label.image_id: label.state for label in decisions.load_all_labels(db) if label.class_id == class_id}


def names(db) -> list[str]:
    return [class_.name for class_ in classes.load_ordered_classes(db)]


def typed(shown, *rows: dict) -> list[dict]:
    """The rows of the table after somebody typed these fields into them."""
    return [before | new for before, new in zip(build_rows(shown), [*rows, *[{}] * len(shown)], strict=False)]


def test_class_table_edits_are_saved_and_undone_in_one_step(page, db):
    shown = classes.load_ordered_classes(db)
    fields = {"name": "red fox", "key": "3", "heading": "mammals", "synonyms": "fox | vixen", "description": None}
    changes = find_edits(shown, typed(shown, fields, {"place": 3}))
    assert save_changes(db, "Ann", changes) == ["Saved.", "Key 3 moved from deer to red fox."]
    fox, _, deer = classes.load_active_classes(db)
    assert (fox.name, fox.key, fox.heading, fox.synonyms) == ("red fox", "3", "mammals", ("fox", "vixen"))
    assert deer.key == "" and names(db) == ["deer", "heron", "red fox"], "those without a heading come first"
    test = page()
    assert list(test.data_editor[0].value["name"]) == names(db)
    assert any("red fox" in one.value and "Ann" in one.value for one in test.markdown)
    test = press(test, "Undo 2")
    assert names(db) == ["fox", "heron", "deer"] and "Undid change 2" in told(test)
    assert not [one for one in test.button if one.label in ("Undo 1", "Undo 2")], "nor what added the first classes"
    assert save_changes(db, "Ann", {}) == ["Nothing was changed."]


@pytest.mark.parametrize(
    ("place", "order"), [(1, [DEER, FOX, HERON]), (2, [FOX, DEER, HERON]), (9, [FOX, HERON, DEER])]
)
def test_class_table_place_column_moves_a_class_and_shifts_the_others(db, place, order):
    shown = classes.load_ordered_classes(db)
    changes = find_edits(shown, typed(shown, {}, {}, {"place": place}))
    class_changes.edit(db, "Ann", changes)
    assert [class_.id for class_ in classes.load_ordered_classes(db)] == order


def test_invalid_class_table_edits_list_all_errors_together_and_save_nothing(db):
    shown = classes.load_ordered_classes(db)
    rows = typed(shown, {"key": "ab"}, {"name": "image"}, {"synonyms": "fox", "key": "ü!"})
    before = classes.load_active_classes(db)
    with pytest.raises(AnnotatorError) as error:
        save_changes(db, "Ann", find_edits(shown, rows))
    assert all(part in str(error.value) for part in ("'ab'", "'image'", "'ü!'"))
    assert classes.load_active_classes(db) == before and len(class_history.load_changes(db)) == 1, (
        "that the classes were added"
    )


def test_class_table_saves_only_edited_values_and_keeps_changes_by_other_owners(db):
    shown = classes.load_ordered_classes(db)  # as the table was opened
    class_changes.edit(db, "Ben", {FOX: {"name": "red fox"}, HERON: {"key": "h"}})
    save_changes(db, "Ann", find_edits(shown, typed(shown, {"heading": "mammals"})))
    fox, heron, _ = classes.load_active_classes(db)
    assert (fox.name, fox.heading, heron.key) == ("red fox", "mammals", "h")


def test_class_table_shows_changes_by_other_owners_when_nothing_was_edited(page, db):
    test = page()
    class_changes.edit(db, "Ben", {FOX: {"name": "red fox"}})
    test = fine(test.run())
    assert list(test.data_editor[0].value["name"]) == ["red fox", "heron", "deer"]


def test_class_merge_shows_a_preview_merges_and_can_be_undone(page, db):
    for image_id, class_id, state in ((1, FOX, PRESENT), (2, FOX, PRESENT), (2, HERON, ABSENT), (3, FOX, ABSENT)):
        answer(db, image_id, class_id, state)
    test = page()
    test = fine(test.selectbox(key="merge_into").select(HERON).run())
    text = plain(test.markdown)
    assert "New answers for heron: 2 present, 1 absent." in text
    assert "1 image labeled absent for heron will be present." in text
    kind = fine(test.radio(key="merge_means").set_value("fox is a kind of heron").run())
    assert "New answers for heron: 2 present." in plain(kind.markdown)
    test = press(kind, "Merge fox into heron")
    assert "Merged fox into heron." in told(test)
    assert names(db) == ["heron", "deer"] and labels(db, HERON) == {1: 1, 2: 1}
    test = press(test, "Undo 2")
    assert names(db) == ["fox", "heron", "deer"]
    assert (labels(db, FOX), labels(db, HERON)) == ({1: 1, 2: 1, 3: -1}, {2: -1})


def test_classes_page_archives_restores_and_splits_classes(page, db):
    answer(db, 1, FOX, PRESENT)
    test = press(page(), "Archive fox")
    assert names(db) == ["heron", "deer"] and labels(db, FOX) == {}
    test = press(test, "Restore fox")
    assert names(db) == ["fox", "heron", "deer"] and labels(db, FOX) == {1: 1}
    test = fine(test.selectbox(key="one_class").select(FOX).run())
    test.text_input(key="split_name").input("young fox")
    test = press(test, "Split off")
    assert names(db) == ["fox", "young fox", "heron", "deer"] and not test.error
    test.text_input(key="split_name").input("heron")
    assert "'heron'" in press(test, "Split off").error[0].value


def test_class_split_asks_whether_a_name_with_commas_means_several_classes(page, db):
    test = page()
    test.text_input(key="split_name").input("cub, vixen")
    test = press(test, "Split off")
    assert "Is this 2 classes, cub and vixen, or one class named cub, vixen?" in plain(test.info)
    assert names(db) == ["fox", "heron", "deer"]
    test = fine(test.button(key="split_apart").click().run())
    assert sorted(names(db)) == ["cub", "deer", "fox", "heron", "vixen"]
    assert [link.proto.label for link in test.get("page_link")] == ["Answer cub", "Answer vixen"]
    test.text_input(key="split_name").input("Fox, red")
    test = press(test, "Split off")
    fine(test.button(key="split_whole").click().run())
    assert "Fox, red" in names(db)


@pytest.mark.slow
@pytest.mark.browser
def test_unsaved_class_edits_survive_a_page_change_until_saved_or_discarded(browser, tmp_path):
    with served_photos(tmp_path, 6, ["fox", "heron", "deer"]) as served:
        browser_page = open_page(browser, served, "Editor", "/classes")
        unsaved = browser_page.get_by_text("unsaved change")
        box = browser_page.get_by_role("combobox", name="Class", exact=True)
        expect(box).to_have_value("fox")

        def write(text: str) -> None:
            """Into the name of the first class; again where the table was drawn anew meanwhile."""
            until(lambda: written(text))

        def written(text: str) -> bool:
            cells = browser_page.get_by_test_id("stDataFrame").first
            cells.scroll_into_view_if_needed()
            area = cells.bounding_box()
            browser_page.mouse.dblclick(area["x"] + area["width"] * 0.28, area["y"] + 52)
            browser_page.locator("#portal :is(input, textarea)").wait_for()  # its script is loaded when it is needed
            browser_page.keyboard.press("Control+a")
            browser_page.keyboard.type(text)
            browser_page.keyboard.press("Enter")
            with suppress(Error):
                unsaved.wait_for(timeout=5000)
            return unsaved.is_visible()

        def away_and_back() -> None:
            for title in ("Images", "Classes"):
                open_by_menu(browser_page, title)
                browser_page.get_by_role("heading", name=title).first.wait_for()

        write("red fox")
        expect(unsaved).to_have_text("1 unsaved change")
        away_and_back()
        expect(unsaved).to_have_text("1 unsaved change")
        assert names(Database(served.project)) == ["fox", "heron", "deer"]
        browser_page.get_by_role("button", name="Save", exact=True).click()
        expect(unsaved).to_have_count(0)
        until(lambda: names(Database(served.project)) == ["red fox", "heron", "deer"])
        expect(box).to_have_value("red fox")
        write("vixen")
        expect(unsaved).to_have_text("1 unsaved change")
        away_and_back()
        browser_page.get_by_role("button", name="Discard changes").click()
        expect(unsaved).to_have_count(0)
        away_and_back()
        expect(unsaved).to_have_count(0)
        assert names(Database(served.project)) == ["red fox", "heron", "deer"]


def test_link_after_a_class_split_opens_a_grid_of_images_labeled_with_the_old_class(page, db):
    for image_id in (2, 5, 9):
        answer(db, image_id, FOX, PRESENT)
    test = page()
    test.text_input(key="split_name").input("arctic fox")
    [link] = press(test, "Split off").get("page_link")
    assert (link.proto.page, link.proto.label) == ("grid", "Answer arctic fox")
    asked = dict(parse_qsl(link.proto.query_string))
    new_id = classes.find_class(db, "arctic fox").id
    offered = grid_at(asked)
    assert (offered["class"], offered["selection"]["count"]) == (new_id, 3)
    wanted = WantedGrids("tab", "Ann", offered["class"], 24, (), 2, selection=offered["selection"]["id"])
    assert [[tile.image.id for tile in one.tiles] for one in grid_queue.lease_next_grids(db, wanted).items] == [
        [2, 5, 9]
    ]
    gone = grid_at(asked | {"selection": "0" * 16})
    assert (gone["class"], gone["selection"]) == (new_id, None), "without it, the class is asked of all images"


def grid_at(address: dict[str, str]) -> dict:
    """What the Grid page gives its component for an address with these parameters."""
    test = AppTest.from_string("from annotator.ui.pages.grid import grid_page\ngrid_page.page()", default_timeout=120)
    test.session_state["name"] = "Ann"
    for name, value in address.items():
        test.query_params[name] = value
    [component] = fine(test.run()).get("bidi_component")
    [data] = json.loads(component.proto.json)
    return data


def test_classes_page_saves_example_images_and_a_color(page, db):
    for image_id in (1, 2):
        answer(db, image_id, FOX, PRESENT)
    test = page()
    test.checkbox(key="example_1_2").check()
    test.checkbox(key="coloured_1").check()
    test.color_picker(key="colour_1").pick("#cc4422")
    press(test, "Save examples and color")
    fox = classes.load_active_classes(db)[0]
    assert (fox.examples, fox.colour) == ((2,), "#cc4422")


def test_classes_page_toggle_disables_adding_classes_while_labeling(page, db):
    test = page()
    assert page_classes.is_adding_allowed(db) and test.toggle(key="classes_allowed").value
    fine(test.toggle(key="classes_allowed").set_value(False).run())
    assert not page_classes.is_adding_allowed(db)


def test_class_form_lists_all_invalid_names_together(page, db):
    test = page()
    test.text_area(key="class_lines").input("lynx\ta cat\n|\nimage\nx\x07")
    test = press(test, "Add classes")
    assert all(part in test.error[0].value for part in ("a blank name", "'image'", "control character"))
    test.text_area(key="class_lines").input("lynx\ta cat")
    press(test, "Add classes")
    assert classes.find_class(db, "lynx").description == "a cat"
    assert class_history.load_changes(db)[0].annotator == "Ann"
