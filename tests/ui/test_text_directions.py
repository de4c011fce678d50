"""Names written from right to left, and words without end: nothing of them is cut off at the wrong side."""

import numpy as np
import pytest
from harness.contexts import Contexts
from harness.person import open_page, served_photos, wait_for_picture
from harness.projects import publish_run
from playwright.sync_api import expect

from annotator.store.database.database import Database

LONG_HEBREW = "שועל " * 20 + "אדום"
NAMES = [LONG_HEBREW, "fox", "heron"]
# How each of these elements is written, of those that hold the name.
DIRECTIONS = """(name) => {
  const inner = (one) => (one.shadowRoot ? within(one.shadowRoot) : []);
  const within = (node) => [...node.querySelectorAll("*")].flatMap((one) => [one, ...inner(one)]);
  const holds = (one) => [...one.childNodes].some((part) => part.nodeType === 3 && part.data.includes(name));
  const seen = (one) => holds(one) && !one.matches("script, style, option, title") && one.checkVisibility();
  const isOwn = ({ direction, unicodeBidi }) => direction === "rtl" || unicodeBidi === "plaintext";
  const wrong = within(document).filter((one) => seen(one) && !isOwn(getComputedStyle(one)));
  return wrong.map((one) => `${one.tagName}.${one.className} in ${one.parentElement?.className}`);
}"""


@pytest.mark.slow
def test_right_to_left_class_names_are_written_from_the_right_on_every_page(browser: Contexts, tmp_path):
    with served_photos(tmp_path, 30, NAMES) as served:
        publish_run(Database(served.project), np.tile([0.9, 0.1, 0.2], (30, 1)))
        places = {
            "/annotate": ".classes .class",
            "/grid": ".class-name",
            "/review": ".suggestion",
            "/gallery": ".row-of-class",
            "/classes": ".tree li",
            "/progress": "[data-testid=stMetric], canvas",
        }
        for path, place in places.items():
            page = open_page(browser, served, "Ann", path)
            page.locator(place).first.wait_for(timeout=60_000)
            page.wait_for_load_state("networkidle")
            if path == "/annotate":
                page.keyboard.press("Shift+Digit1")
                page.keyboard.press("/")
                page.locator(".found .option").first.wait_for()
            assert page.evaluate(DIRECTIONS, "שועל") == [], path


@pytest.mark.slow
def test_word_of_a_thousand_characters_stays_inside_the_finder(browser: Contexts, tmp_path):
    with served_photos(tmp_path, 6, ["fox", "heron"]) as served:
        page = open_page(browser, served, "Ann")
        wait_for_picture(page)
        page.keyboard.press("/")
        page.keyboard.insert_text("x" * 1000)
        found = page.locator(".found")
        expect(found).to_contain_text("as a new class")
        assert found.evaluate("(one) => one.scrollWidth <= one.clientWidth")
