"""Ruling out a class in a real Chromium: it is offered, confirmed, told and undone, with keys and without."""

import uuid
from collections.abc import Iterator

import numpy as np
import pytest
from conftest import CLASSES
from harness.autopilot_page import flown, fly, go_on, on
from harness.person import wait_until_fetched, wait_until_saved
from harness.served import Served, until
from playwright.sync_api import Page, expect

from annotator.quality import rule_out
from annotator.records import Batch
from annotator.store.database.database import Database
from annotator.store.labels import auto_accepted, decisions

pytestmark = pytest.mark.browser

DONE, DRAWN, IMAGES = 25, 100, 160  # images that are complete; random ones without a deer; all of them
WHOLE = 20  # of the random ones that were answered in every class
LEFT = IMAGES - DONE - DRAWN
DEER = 3


@pytest.fixture
def deerless(tmp_path) -> Iterator[Served]:
    """Everything is known but the deer, which nobody saw on 100 random images and of which there is no model."""
    chances = np.full((IMAGES, 3), 0.01)
    chances[:, DEER - 1] = np.nan
    with flown(tmp_path, CLASSES, chances, complete=DONE) as served:
        db = Database(served.project)
        grids = [("grid", range(WHOLE + 1, IMAGES - DONE + 1), (class_id,)) for class_id in (1, 2)]
        whole = [("random", [image_id], (1, 2, DEER)) for image_id in range(1, WHOLE + 1)]
        for source, image_ids, class_ids in [*whole, *grids, ("sample", range(WHOLE + 1, DRAWN + 1), (DEER,))]:
            together = [(image_id, class_id, -1, None) for image_id in image_ids for class_id in class_ids]
            assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Ann", source, together)]).refused
        yield served


def searching(browser, served: Served, name: str, **more) -> Page:
    """The page of a person who is asked to look for deer."""
    page = fly(browser, served, name, **more)
    go_on_to_search(page)
    return page


def go_on_to_search(page: Page) -> None:
    """Skip what is asked before: of the actions one in twenty is drawn at random."""
    for _ in range(5):
        on(page)
        if "Does any show deer?" in page.locator(".line").text_content():
            return
        go_on(page, ".")
    raise AssertionError(page.locator(".line").text_content())


@pytest.mark.slow
def test_class_is_marked_absent_everywhere_with_two_clicks_and_undone_with_one(browser, deerless):
    db = Database(deerless.project)
    page = searching(browser, deerless, "Rea")
    page.get_by_role("button", name="Treat 'deer' as absent").click()
    panel = page.get_by_role("group", name="Treat as absent")
    expect(panel).to_contain_text(
        f"{LEFT} images will count as absent for 'deer'. At most 3.0 % of all show it (95 %, 100 random images). "
        "Audits still ask about them."
    )
    page.keyboard.press("Enter")  # is not about the images behind it
    page.keyboard.press("1")
    panel.get_by_role("button", name="Cancel").click()
    expect(panel).to_be_hidden()
    assert rule_out.load_rulings(db) == [] and "Does any show deer?" in page.locator(".line").text_content()
    page.get_by_role("button", name="Treat 'deer' as absent").click()
    panel.get_by_role("button", name="Treat as absent").click()
    expect(page.locator(".words")).to_contain_text(f"'deer' counts as absent on {LEFT} images.")
    [ruling] = rule_out.load_rulings(db)
    assert (ruling.annotator, ruling.cells, auto_accepted.count_ruled_out(db)) == ("Rea", LEFT, LEFT)
    until(lambda: "Does any show deer?" not in page.locator(".line").text_content())
    expect(page.locator(".foot")).to_contain_text(f"{LEFT} ruled out after a sample")
    page.locator(".words").get_by_role("button", name="Undo").click()
    expect(page.locator(".words")).to_have_text(f"Undid: 'deer' is unanswered again on {LEFT} images.")
    assert rule_out.load_rulings(db) == []
    go_on_to_search(page)
    assert [label.image_id for label in decisions.load_labels(db, range(1, IMAGES + 1)) if label.class_id == DEER] == [
        *range(1, DRAWN + 1),
        *range(IMAGES - DONE + 1, IMAGES + 1),
    ], "no press was an answer"
    assert page.troubles == []


@pytest.mark.slow
def test_marking_absent_everywhere_is_done_undone_and_redone_by_keyboard(browser, deerless):
    db = Database(deerless.project)
    page = searching(browser, deerless, "Keys")
    for _ in range(80):  # past the navigation
        page.keyboard.press("Tab")
        if focused(page).startswith("Treat 'deer'"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name="Treat as absent")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("group", name="Treat as absent")).to_be_hidden()
    assert focused(page).startswith("Treat 'deer'")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert focused(page) == "Treat as absent"
    page.keyboard.press("Enter")
    until(lambda: len(rule_out.load_rulings(db)) == 1)
    expect(page.locator(".words")).to_contain_text("counts as absent")
    page.keyboard.press("Backspace")
    until(lambda: not rule_out.load_rulings(db))
    page.keyboard.press("Shift+Backspace")
    until(lambda: len(rule_out.load_rulings(db)) == 1)
    expect(page.locator(".words")).to_contain_text("counts as absent")
    assert page.troubles == []


def focused(page: Page) -> str:
    """The words of what has the focus."""
    return page.evaluate(
        """() => {
            let at = document.activeElement;
            while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
            return at?.textContent ?? "";
        }"""
    )


@pytest.mark.slow
def test_marking_absent_everywhere_shows_an_error_after_another_annotator_found_the_class(browser, deerless):
    page = searching(browser, deerless, "Late")
    wait_until_saved(page)
    wait_until_fetched(page)
    db = Database(deerless.project)
    seen = [(IMAGES - DONE, DEER, 1, None)]
    assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Ben", "gallery", seen)]).refused
    page.get_by_role("button", name="Treat 'deer' as absent").click()
    page.get_by_role("button", name="Treat as absent", exact=True).click()
    expect(page.locator(".words")).to_contain_text("'deer' cannot be ruled out: it is present on 1 image.")
    assert rule_out.load_rulings(db) == [] and on(page)[0] == "grid"
