"""A server that is stopped while people label: the page says so, keys work on, and all decisions arrive once."""

from collections.abc import Iterator

import pytest
from harness.person import (
    list_stored_cells,
    open_page,
    press_class_keys,
    served_photos,
    wait_until_saved,
)
from harness.served import Served, until
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

# Counts Streamlit's dialogs, and the frames that showed one.
COUNT_DIALOGS = """() => {
  window.dialogs = window.dialogFrames = 0;
  const find = () => document.querySelector("[data-testid=stDialog]");
  const count = () => { if (find()) window.dialogs += 1; };
  new MutationObserver(count).observe(document.body, {childList: true, subtree: true});
  const look = () => { if (find()?.checkVisibility()) window.dialogFrames += 1; requestAnimationFrame(look); };
  look();
}"""
NOTICE_TEXT = "The server does not answer. Your answers are kept here and sent later."


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Iterator[Served]:
    with served_photos(tmp_path_factory.mktemp("many"), 60, ("fox", "heron", "deer")) as served:
        yield served


@pytest.mark.slow
def test_keys_pressed_while_the_server_is_stopped_are_stored_once_after_its_restart(browser, many):
    page = open_page(browser, many, "Night")
    given = press_class_keys(page, "1", "2")
    wait_until_saved(page)
    page.evaluate(COUNT_DIALOGS)
    many.kill()
    given += press_class_keys(page, "3")
    expect(page.get_by_text(NOTICE_TEXT)).to_be_visible()
    # Streamlit shows its dialog after its sixth vain attempt.
    page.wait_for_function("window.dialogs > 0", timeout=90_000)
    given += press_class_keys(page, "1", "2", "3")
    assert page.get_by_text("Is Streamlit still running").count() == 0
    assert page.evaluate("window.dialogFrames") == 0
    expect(page.locator(".foot")).to_contain_text("4 unsent")
    many.start()
    wait_until_saved(page)
    assert list_stored_cells(many, "Night") == given
    expect(page.get_by_text(NOTICE_TEXT)).to_be_hidden()
    given += press_class_keys(page, "2")
    wait_until_saved(page)
    assert list_stored_cells(many, "Night") == given
    assert page.troubles == []


@pytest.mark.slow
def test_page_without_keys_of_its_own_shows_that_the_server_is_stopped(browser, many):
    page = open_page(browser, many, "Night", "/settings")
    expect(page.get_by_text("Switch user")).to_be_visible(timeout=60_000)
    page.evaluate(COUNT_DIALOGS)
    many.kill()
    expect(page.get_by_text(NOTICE_TEXT)).to_be_visible(timeout=90_000)
    assert page.evaluate("window.dialogFrames") == 0
    many.start()
    expect(page.get_by_text(NOTICE_TEXT)).to_be_hidden(timeout=90_000)
    until(lambda: page.get_by_text("Switch user").is_visible())
