"""Who is at work stands on every page with what they have done today; an image's history is one key away."""

import re
import uuid

import pytest
from harness.browser import open_by_menu
from harness.person import (
    Scribe,
    decided,
    looked_around,
    on_screen,
    open_page,
    served_photos,
    wait_for_another,
    wait_for_picture,
    wait_until_saved,
)
from playwright.sync_api import expect

from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.gallery.image_history import load_image_history
from annotator.store.labels import decisions

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with served_photos(tmp_path_factory.mktemp("people"), 24, ["fox", "heron", "deer"]) as served:
        yield served


def test_daily_figures_in_the_page_header_follow_decisions_and_undo_on_all_pages(browser, served):
    page = open_page(browser, served, "Ann", viewport={"width": 1366, "height": 768})
    figures, measure = page.locator(".figures"), page.locator(".measure")
    expect(figures).to_have_text("today 0 min · 0 images · 0 labels")
    expect(measure).to_have_text("0 of 72 pairs answered · 0 of 24 images complete")
    expect(page.locator(".foot .saved")).to_have_text("All saved")
    wait_for_picture(page)
    for key in ("1", "Shift+2", "3"):
        before = on_screen(page)
        page.keyboard.press(key)
        if not key.startswith("Shift"):
            wait_for_another(page, before)
    expect(figures).to_have_text("today 0 min · 2 images · 3 labels")
    expect(measure).to_contain_text("3 of 72 pairs answered · 0 of 24 images complete")
    looked_around(page)
    page.keyboard.press("Enter")  # nothing else on the third image
    expect(figures).to_have_text("today 0 min · 3 images · 3 labels")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    expect(figures).to_have_text("today 0 min · 2 images · 2 labels")
    page.route("**/api/decisions", lambda route: route.abort())  # counted here until the server can be reached
    page.keyboard.press("Shift+3")
    expect(figures).to_have_text("today 0 min · 2 images · 3 labels")
    page.unroute("**/api/decisions")
    wait_until_saved(page)
    assert sum(row["milliseconds"] or 0 for row in decided(served, "Ann")) < 60_000
    place = page.get_by_role("button", name="Switch user").bounding_box()
    open_by_menu(page, "Images")  # by which what looks at answers is listed
    open_by_menu(page, "Progress")
    page.get_by_text("Complete images").wait_for()
    expect(measure).to_contain_text("3 of 72 pairs answered")
    expect(figures).to_have_text("today 0 min · 2 images · 3 labels")
    assert page.get_by_role("button", name="Switch user").bounding_box() == place
    page.get_by_role("button", name="Switch user").click()
    page.get_by_label("Your name").fill("Bob")
    page.get_by_role("button", name="Start").click()
    expect(figures).to_have_text("today 0 min · 0 images · 0 labels")
    page.reload()
    expect(page.locator(".who b", has_text="Bob")).to_be_visible()
    assert page.troubles == []


def test_image_history_shows_decisions_and_comments_can_be_undone_or_removed(browser, served):
    page = open_page(browser, served, "Cy")
    wait_for_picture(page)
    image_id, db = on_screen(page), Database(served.project)
    given = [
        Decision(str(uuid.uuid4()), "label", "Ben", "suggestion", image_id, 1, 1, run_id=1, score=0.71),
        Decision(str(uuid.uuid4()), "label", "Ben", "click", image_id, 2, 1),
        Decision(str(uuid.uuid4()), "done", "Ben", "done", image_id),
    ]
    assert not decisions.save(db, given).refused
    decisions.save(db, [Decision(str(uuid.uuid4()), "undo", "Ann", "click", undoes=given[1].uuid)])
    before, told = decisions.load_all_labels(db), len(load_image_history(db, image_id)) - 3  # of the test before
    page.keyboard.press(";")
    lines = page.locator(".history li")
    expect(lines).to_have_count(told + 3)
    expect(lines.nth(told)).to_contain_text(re.compile(r"Ben today \d\d:\d\d fox: present.*the model said 71\s%"))
    expect(lines.nth(told + 1).locator("s")).to_have_text("heron: present")
    expect(lines.nth(told + 1)).to_contain_text("undone by Ann, today")
    expect(lines.nth(told + 2)).to_contain_text("nothing else here: 1 class absentdeer")
    for text in ("is this a fox?", "a young one; yes"):
        page.keyboard.type(text)
        page.keyboard.press("Enter")
    expect(lines).to_have_count(told + 5)
    page.keyboard.press("Escape")
    caption = page.locator(".caption")
    expect(caption).to_contain_text("2 comments")
    page.keyboard.press("Backspace")
    expect(caption).to_contain_text("1 comment")
    page.keyboard.press("Shift+Backspace")
    expect(caption).to_contain_text("2 comments")
    page.keyboard.press(";")
    lines.filter(has_text="is this a fox?").get_by_role("button", name="Remove").click()
    expect(page.locator(".history s", has_text="is this a fox?")).to_be_visible()
    page.keyboard.press("Escape")
    expect(caption).to_contain_text("1 comment")
    with page.expect_response("**/api/recent"):
        page.reload()
    wait_for_picture(page)
    page.keyboard.press("Backspace")  # the comment is the newest decision of Cy that holds
    wait_until_saved(page, 1)
    assert decisions.load_all_labels(db) == before and page.troubles == []
    rows = decided(served, "Cy")
    undone = {row["undoes"] for row in rows if row["action"] == "undo"}
    assert {row["action"] for row in rows} == {"comment", "undo"}
    assert {row["id"] for row in rows if row["action"] == "comment"} == undone


TOLD = """(midnight) => window.dispatchEvent(new CustomEvent("annotator:today", { detail: {
  counted: { milliseconds: 0, images: 7, labels: 7, newest: 1e6, midnight },
  ahead: { milliseconds: 0, images: 0, labels: 0 } } }))"""


def test_daily_figures_are_reloaded_after_midnight_and_ignore_outdated_counts(browser, served):
    page = open_page(browser, served, "Dee", "/settings", clock=True)
    figures = page.locator(".figures")
    expect(figures).to_contain_text("0 images", timeout=60_000)
    given = Decision(str(uuid.uuid4()), "label", "Dee", "click", 20, 1, 1)
    assert not decisions.save(Database(served.project), [given]).refused
    page.clock.fast_forward(24 * 3600 * 1000 + 60_000)
    expect(figures).to_contain_text("1 image · 1 label", timeout=30_000)
    page.evaluate(TOLD, 0)
    expect(figures).to_contain_text("1 image · 1 label")
    page.evaluate(TOLD, 9e9)
    expect(figures).to_contain_text("7 images · 7 labels")
    assert page.troubles == []


def test_open_progress_page_follows_decisions_and_undo_of_another_annotator(browser, tmp_path):
    with served_photos(tmp_path, 6, ["fox", "heron"]) as served:
        watching = open_page(browser, served, "Ben", "/progress")
        metrics = watching.locator("[data-testid=stMain] [data-testid=stMetric]")
        labeled, present = metrics.filter(has_text="Labeled images"), metrics.filter(has_text="Present")
        expect(labeled).to_contain_text("0 of 6", timeout=60_000)
        watching.evaluate("window.reloaded = false")
        page = open_page(browser, served, "Ann")
        assert watching.context is not page.context
        scribe = Scribe(page)
        scribe.press("1")
        scribe.press("Shift+1", "2")
        wait_until_saved(page, 3)
        expect(labeled).to_contain_text("2 of 6", timeout=30_000)
        expect(present).to_contain_text("3")
        page.keyboard.press("Backspace")
        page.keyboard.press("Backspace")
        wait_until_saved(page, 5)
        expect(labeled).to_contain_text("1 of 6", timeout=30_000)
        assert watching.evaluate("window.reloaded") is False, "the page is the one that was opened"
        assert page.troubles == watching.troubles == []
