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
from harness.served import until
from playwright.sync_api import APIResponse, Page, Route, expect

from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.gallery.image_history import load_image_history
from annotator.store.labels import decisions

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with served_photos(tmp_path_factory.mktemp("people"), 24, ["fox", "heron", "deer"]) as served:
        yield served


@pytest.mark.slow
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


RECORD_TEXTS = """(element) => {
  const texts = (window.texts ??= {})[element.className] = [];
  const changes = { childList: true, characterData: true, subtree: true };
  new MutationObserver(() => texts.push(element.textContent)).observe(element, changes);
}"""
RECORD_COUNTS = """() => {
  window.counts = [];
  addEventListener("annotator:progress", ({ detail }) => counts.push(parseInt(detail)));
}"""
ASK_FOR_NEWS = "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"


def count_answered_pairs(page: Page) -> int:
    return int(page.locator(".measure").inner_text().split()[0])


def announce_news(page: Page) -> list[int]:
    """Wait until the page has drawn counts that the server reads now, and return the pairs answered in all drawings."""
    for _ in range(3):  # the first answer may be older, and the last may not be drawn
        with page.expect_response("**/api/work"):
            page.evaluate(ASK_FOR_NEWS)
    before = page.evaluate("counts.length")
    page.wait_for_function("(before) => counts.length > before", arg=before)
    return page.evaluate("counts")


def hold_answers(page: Page, path: str, count: int) -> list[tuple[Route, APIResponse]]:
    """Keep back what the server answers to the next requests; what is kept is in the list."""
    held = []

    def hold(route: Route) -> None:
        if len(held) == count:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    page.route(path, hold)
    return held


def release(*held: tuple[Route, APIResponse]) -> None:
    for route, answer in held:
        route.fulfill(response=answer)


def test_counts_include_a_stored_decision_once_before_its_acknowledgment_arrives(browser, served):
    page = open_page(browser, served, "Eve")
    wait_for_picture(page)
    expect(page.locator(".foot .saved")).to_have_text("All saved")
    before = count_answered_pairs(page)
    page.evaluate(RECORD_COUNTS)
    page.locator(".figures").evaluate(RECORD_TEXTS)
    page.locator(".measure").evaluate(RECORD_TEXTS)
    held = hold_answers(page, "**/api/decisions", 1)
    with page.expect_request("**/api/decisions"):
        page.keyboard.press("1")
    until(lambda: page.evaluate("1") and held)
    assert max(announce_news(page)) == before + 1
    given = Decision(str(uuid.uuid4()), "label", "Ben", "click", 24, 3, 1)
    assert not decisions.save(Database(served.project), [given]).refused
    page.route("**/api/work", lambda route: route.fulfill(status=401, body="{}"), times=1)
    page.evaluate(ASK_FOR_NEWS)  # the page's script runs again, and counts anew
    page.wait_for_function("(text) => texts.measure.some((one) => one.startsWith(text))", arg=f"{before + 2} of 72")
    release(*held)
    wait_until_saved(page, 1)
    expect(page.locator(".measure")).to_contain_text(f"{before + 2} of 72")
    assert set(page.evaluate("texts.figures")) == {"today 0 min · 1 image · 1 label"}
    assert page.troubles == []


@pytest.mark.slow
def test_counts_do_not_go_back_when_older_ones_arrive_after_a_decision_is_saved(browser, served):
    page = open_page(browser, served, "Flo")
    wait_for_picture(page)
    expect(page.locator(".foot .saved")).to_have_text("All saved")
    before = count_answered_pairs(page)
    page.evaluate(RECORD_COUNTS)
    held = hold_answers(page, "**/api/work", 2)
    with page.expect_request("**/api/work"):
        page.evaluate(ASK_FOR_NEWS)
    until(lambda: page.evaluate("1") and held)
    image_id = on_screen(page)
    page.keyboard.press("1")
    wait_for_another(page, image_id)
    wait_until_saved(page, 1)
    release(held[0])
    until(lambda: page.evaluate("1") and len(held) == 2)  # what was released is on the page
    page.keyboard.press("2")
    page.wait_for_function("(count) => counts.includes(count)", arg=before + 2)
    counts = page.evaluate("counts")
    assert counts == sorted(counts)
    release(held[1])
    wait_until_saved(page, 2)
    assert page.troubles == []


@pytest.mark.slow
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


@pytest.mark.slow
def test_daily_figures_are_reloaded_after_midnight_and_ignore_outdated_counts(browser, served):
    page = open_page(browser, served, "Dee", "/settings", clock=True)
    figures = page.locator(".figures")
    expect(figures).to_contain_text("0 images", timeout=60_000)
    given = Decision(str(uuid.uuid4()), "label", "Dee", "click", 20, 1, 1)
    assert not decisions.save(Database(served.project), [given]).refused
    page.clock.fast_forward(24 * 3600 * 1000 + 60_000)
    expect(figures).to_contain_text("1 image · 1 label")
    page.evaluate(TOLD, 0)
    expect(figures).to_contain_text("1 image · 1 label")
    page.evaluate(TOLD, 9e9)
    expect(figures).to_contain_text("7 images · 7 labels")
    assert page.troubles == []


@pytest.mark.slow
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
        expect(labeled).to_contain_text("2 of 6")
        expect(present).to_contain_text("3")
        page.keyboard.press("Backspace")
        page.keyboard.press("Backspace")
        wait_until_saved(page, 5)
        expect(labeled).to_contain_text("1 of 6")
        assert watching.evaluate("window.reloaded") is False, "the page is the one that was opened"
        assert page.troubles == watching.troubles == []
