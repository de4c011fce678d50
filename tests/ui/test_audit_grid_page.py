"""The audit grid in a real Chromium: nothing of the model is on the page, and answers arrive as those of an audit."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
from harness.autopilot_page import flown
from harness.grids import GRID, after, cells, open_grid, saved, shown
from harness.person import decided, looked_around, open_page, wait_until_saved
from harness.served import Served, until
from playwright.sync_api import expect

from annotator.quality import audit_sampling
from annotator.quality.certification import compute_certificate
from annotator.store.database.database import Database

pytestmark = pytest.mark.browser

TEXT = """() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".root"));
  return host.shadowRoot.querySelector(".root").outerHTML;
}"""
NOTHING = ".nothing .empty"
OF_THE_MODEL = re.compile(r"\d %|percent|heatmap|\d to find")


@pytest.fixture
def drawn(tmp_path) -> Iterator[Served]:
    """An app with 90 images, a run, and 60 drawn cells of two classes."""
    chances = np.random.default_rng(0).uniform(0.31, 0.99, (90, 2))
    with flown(tmp_path, ["fox", "heron"], chances, drawn=60) as served:
        yield served


@pytest.mark.slow
def test_audit_grid_page_hides_predictions_and_stores_audit_answers(browser, drawn):
    page = open_grid(browser, drawn, "Blind", "/grid?audit=1")
    book, asked = [], audit_sampling.load_open_cells(Database(drawn.project))
    shown(page)
    page.keyboard.press(";")
    expect(page.locator(".words")).to_have_text("Earlier answers are hidden here.")
    assert page.locator("dialog[open]").count() == 0
    for number in range(4):
        grid = shown(page)
        assert grid["start"] == "no" and {state for _, state in grid["tiles"]} == {"absent"}
        page.keyboard.press("3")
        page.keyboard.press("3")  # absent again: present answers would be asked a second time
        page.keyboard.down("Shift")
        expect(page.locator(".words")).to_contain_text("this is an audit")
        book.append(cells(shown(page)))
        assert not OF_THE_MODEL.findall(page.evaluate(TEXT))
        page.keyboard.up("Shift")
        if number < 3:
            after(page, "Enter", grid["id"])
        else:
            looked_around(page)
            page.keyboard.press("Enter")
    expect(page.locator(NOTHING)).to_contain_text("Every audit question has been answered")
    wait_until_saved(page, 4)
    assert saved(drawn, "Blind") == book
    assert [image for one in book for image, _ in one] == [one.image_id for one in asked], (
        "in the order they were drawn"
    )
    rows = decided(drawn, "Blind")
    assert {(row["source"], row["run_id"], row["score"]) for row in rows} == {("audit", None, None)}
    found = compute_certificate(Database(drawn.project))
    assert found.overall.waiting == 0 and found.overall.audited == 60
    page.get_by_role("link", name="See the certificate").click()
    page.get_by_text("Every audit question has been answered.").wait_for(timeout=60_000)
    assert page.troubles == []


@pytest.mark.slow
def test_audit_grid_opens_and_closes_by_keyboard_and_survives_a_reload(browser, drawn):
    page = open_grid(browser, drawn, "Keys")
    ordinary = shown(page)
    assert OF_THE_MODEL.findall(page.evaluate(TEXT)), "an ordinary grid says what the model thinks"
    page.keyboard.press("/")
    for _ in range(2):
        page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Audit grid", exact=True)).to_be_focused()
    after(page, "Enter", ordinary["id"])
    until(lambda: "audit=1" in page.url)
    expect(page.locator(".selection")).to_contain_text("predictions hidden")
    first = shown(page)
    page.reload()
    page.locator(GRID).wait_for(timeout=60_000)
    assert shown(page)["tiles"] == first["tiles"], "the same cells come back"
    page.get_by_role("button", name="Leave the audit grid").click()
    until(lambda: shown(page)["id"].split("-")[0] == ordinary["id"].split("-")[0])
    assert "audit" not in page.url
    looked_around(page)
    page.keyboard.press("Enter")
    wait_until_saved(page, 1)
    assert {row["source"] for row in decided(drawn, "Keys")} == {"grid"}


@pytest.mark.slow
def test_undo_reopens_an_audit_grid_in_one_step(browser, drawn):
    page = open_grid(browser, drawn, "Back", "/grid?audit=1")
    first = shown(page)
    page.keyboard.press("2")
    marked = shown(page)
    after(page, "Enter", first["id"])
    page.keyboard.press("Backspace")
    assert until(lambda: (now := shown(page))["id"] == first["id"] and now) == marked
    wait_until_saved(page, 2)
    assert len(audit_sampling.load_open_cells(Database(drawn.project))) == 60


@pytest.mark.slow
def test_certificate_page_fits_a_phone_and_links_to_the_audit_grid(browser, drawn):
    page = open_page(browser, drawn, "Thumb", "/certificate", viewport={"width": 390, "height": 844}, has_touch=True)
    link = page.get_by_role("link", name="Answer in the audit grid")
    link.wait_for(timeout=60_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    link.click()
    page.locator(GRID).wait_for(timeout=60_000)
    expect(page.locator(".selection")).to_contain_text("Audit grid")
    assert page.troubles == []
