"""One label or all labels: the switch does the same on Annotate and Autopilot, and each person keeps their choice."""

from collections.abc import Iterator

import numpy as np
import pytest
from harness.autopilot_page import flown, go_to
from harness.browser import open_by_menu
from harness.contexts import Contexts
from harness.grids import KIND
from harness.person import (
    labels_of,
    looked,
    looked_around,
    on_screen,
    open_page,
    wait_for_another,
    wait_for_picture,
    wait_until_saved,
)
from harness.served import Served, until
from playwright.sync_api import Locator, Page, expect

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.labels import answer_mode

NAMES = [f"class {number:02}" for number in range(40)]


@pytest.fixture
def served(tmp_path) -> Iterator[Served]:
    """Autopilot has single clicks: of many classes nothing is known."""
    with flown(tmp_path, NAMES, np.full((60, 40), 0.03), complete=20) as served:
        yield served


def way(page: Page, words: str) -> Locator:
    return page.get_by_role("button", name=words, exact=True)


def pressed(page: Page) -> str:
    return page.locator(".modes button[aria-pressed=true]").inner_text()


def test_answer_mode_defaults_to_the_project_setting_and_is_stored_per_annotator(db):
    assert answer_mode.get_annotator_mode(db, "Ann") == answer_mode.MODE_ONE
    answer_mode.set_project_mode(db, answer_mode.MODE_ALL)
    assert answer_mode.get_annotator_mode(db, "Ann") == answer_mode.MODE_ALL
    answer_mode.set_annotator_mode(db, "Ann", answer_mode.MODE_ONE)
    assert (answer_mode.get_annotator_mode(db, "Ann"), answer_mode.get_annotator_mode(db, "Ben")) == (
        answer_mode.MODE_ONE,
        answer_mode.MODE_ALL,
    )
    with pytest.raises(AnnotatorError, match="no way to answer called 'both'"):
        answer_mode.set_annotator_mode(db, "Ann", "both")


@pytest.mark.slow
@pytest.mark.browser
def test_answer_mode_persists_across_pages_reloads_and_browsers(browser: Contexts, served):
    page = open_page(browser, served, "Ann", "/autopilot")
    until(lambda: page.evaluate(KIND))
    go_to(page, "click")
    assert pressed(page) == "One label"
    way(page, "All labels").click()
    open_by_menu(page, "Annotate")
    wait_for_picture(page)
    assert pressed(page) == "All labels"
    page.reload()
    wait_for_picture(page)
    assert pressed(page) == "All labels"
    image = on_screen(page)
    for key, after in (("1", {1: 1}), ("2", {1: 1, 2: 1}), ("1", {2: 1})):  # pressed again, it is taken back
        looked(page)
        page.keyboard.press(key)
        wait_until_saved(page)
        assert (on_screen(page), labels_of(served, image)) == (image, after), key
    page.keyboard.press("F4")
    until(lambda: answer_mode.get_annotator_mode(Database(served.project), "Ann") == answer_mode.MODE_ONE)
    other = open_page(browser, served, "Ann")
    wait_for_picture(other)
    assert pressed(other) == "One label"
    image = on_screen(other)
    other.keyboard.press("3")
    wait_for_another(other, image)
    assert page.troubles == other.troubles == []


@pytest.mark.browser
def test_class_keys_in_all_labels_mode_toggle_classes_until_enter_shows_the_next_image(browser, served):
    page = open_page(browser, served, "Ann", "/autopilot")
    until(lambda: page.evaluate(KIND))
    go_to(page, "click")
    wait_until_saved(page)
    image = on_screen(page)
    expect(page.locator(".task")).to_have_text("One label is enough; the model asks for the rest.")
    way(page, "All labels").click()
    expect(page.locator(".task")).to_contain_text("Mark every class you see")
    expect(page.locator(".line")).to_have_text("Label this image")
    for key, after in (("5", {5: 1}), ("6", {5: 1, 6: 1}), ("5", {6: 1})):
        looked(page)
        page.keyboard.press(key)
        wait_until_saved(page)
        assert (on_screen(page), labels_of(served, image)) == (image, after), key
    looked_around(page)
    page.keyboard.press("Enter")
    wait_for_another(page, image)
    wait_until_saved(page)
    assert labels_of(served, image) == {number: 1 if number == 6 else -1 for number in range(1, 41)}
    page.keyboard.press("Backspace")
    page.locator(f".stage img[data-image='{image}']").wait_for()
    wait_until_saved(page)
    assert labels_of(served, image) == {6: 1}
    way(page, "One label").click()
    looked(page)
    page.keyboard.press("7")
    wait_for_another(page, image)
    wait_until_saved(page)
    assert labels_of(served, image) == {6: 1, 7: 1}
    assert page.troubles == []


@pytest.mark.slow
@pytest.mark.browser
def test_answer_mode_switch_is_disabled_while_an_autopilot_task_asks_for_every_class(browser, tmp_path):
    with flown(tmp_path, ["fox", "heron", "deer"], None, complete=2) as served:
        page = open_page(browser, served, "Ann", "/autopilot")
        until(lambda: page.evaluate(KIND))
        go_to(page, "image")
        image = on_screen(page)
        assert pressed(page) == "All labels" and way(page, "One label").is_disabled()
        expect(page.get_by_text("This task asks for every class.")).to_be_visible()
        looked(page)
        page.keyboard.press("1")
        assert on_screen(page) == image and labels_of(served, image) == {}, "marked, and saved by Enter"
        assert answer_mode.get_annotator_mode(Database(served.project), "Ann") == answer_mode.MODE_ONE
