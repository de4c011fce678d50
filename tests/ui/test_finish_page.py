"""The end of Autopilot in a real Chromium: what a complete project shows; nothing begins before it is pressed."""

import uuid
import zipfile

import numpy as np
import pytest
from conftest import CLASSES
from harness.autopilot_page import flown, go_on, on, sure_of_the_fox
from harness.contexts import Contexts
from harness.grids import DRAWN, KIND, cells, shown
from harness.person import (
    decided,
    looked,
    looked_around,
    open_page,
    wait_for_picture,
    wait_until_fetched,
    wait_until_saved,
)
from harness.projects import publish_run
from harness.served import Served, until
from playwright.sync_api import Page, Route, expect

from annotator.quality import audit_sampling
from annotator.records import Batch, Decision
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions, project_counts

pytestmark = pytest.mark.browser

TAKEN = 30_000


ROOMY = {"width": 1200, "height": 860}  # for 24 tiles below the hints of a first visit


def finished(browser: Contexts, served: Served, name: str, **more) -> Page:
    page = open_page(browser, served, name, "/autopilot", **more)
    expect(page.get_by_role("heading", name="Complete")).to_be_visible(timeout=60_000)
    return page


def news(page: Page) -> None:
    """Wait until the page has asked the server once more, and was answered."""
    with page.expect_response(lambda answer: answer.url.endswith("/api/autopilot"), timeout=TAKEN):
        pass
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def label_all(db: Database, class_id: int, image_ids: range) -> None:
    for image_id in image_ids:
        given = Decision(str(uuid.uuid4()), "label", "Bob", "click", image_id=image_id, class_id=class_id, state=1)
        assert not decisions.save(db, [given]).refused


@pytest.mark.slow
def test_complete_page_starts_relabeling_of_likely_mistakes_only_on_request_and_returns(browser, tmp_path):
    with flown(tmp_path, CLASSES, sure_of_the_fox(30), complete=30) as served:
        page = finished(browser, served, "Check", viewport=ROOMY)
        finish = page.locator(".finish")
        expect(finish).to_contain_text("Every class of every image has an answer: 30 images, 0 labels.")
        expect(finish).to_contain_text("of 30 answers that the model contradicts may be wrong.")
        finish.get_by_text("Every class of every image").dblclick()  # the second press came late
        assert page.evaluate("getSelection().toString()") == ""
        places = [button.bounding_box() for button in finish.locator("button, a").all()]
        label_all(Database(served.project), 2, range(1, 4))
        news(page)
        expect(finish).to_contain_text("30 images, 3 labels.", timeout=TAKEN)
        assert not page.evaluate(KIND) and decided(served, "Check") == []
        assert [button.bounding_box() for button in finish.locator("button, a").all()] == places, "nothing has moved"
        page.keyboard.press("Tab")
        page.get_by_role("button", name="Check them").focus()
        page.keyboard.press("Enter")
        until(lambda: page.evaluate(KIND) == "grid")
        expect(finish).to_be_hidden()
        expect(page.locator(".line")).to_contain_text("Check 24 answers again: fox marked absent")
        page.evaluate(DRAWN)
        looked(page)
        page.keyboard.press("1")
        first = cells(shown(page))
        assert [state for _, state in first] == [1] + [-1] * 23
        go_on(page)
        assert len(shown(page)["tiles"]) == 6
        looked_around(page)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Complete")).to_be_visible(timeout=TAKEN)
        expect(finish).to_contain_text("The model contradicts no answer that is not checked yet.")
        expect(page.get_by_role("button", name="Check them")).to_be_hidden()
        rows = decided(served, "Check")
        assert len(rows) == 30 and {row["source"] for row in rows} == {"relabel"}
        assert [(row["image_id"], row["state"]) for row in rows[:24]] == first
        expect(page.get_by_role("row", name="fox 1")).to_be_visible()
        assert page.troubles == []


@pytest.mark.slow
def test_skipped_check_of_likely_mistakes_returns_to_the_complete_page_and_stays_offered(browser, tmp_path):
    with flown(tmp_path, CLASSES, sure_of_the_fox(12), complete=12) as served:
        page = finished(browser, served, "Skip")
        page.get_by_role("button", name="Check them").click()
        until(lambda: page.evaluate(KIND) == "grid")
        looked(page)
        page.keyboard.press(".")
        expect(page.get_by_role("heading", name="Complete")).to_be_visible(timeout=TAKEN)
        expect(page.locator(".finish")).to_contain_text("of 12 answers that the model contradicts may be wrong")
        assert decided(served, "Skip") == []


@pytest.mark.slow
def test_complete_page_appears_after_the_last_answer_and_leads_to_newly_unanswered_labels(browser, tmp_path):
    with flown(tmp_path, CLASSES, None, complete=59) as served:
        page = open_page(browser, served, "Last", "/autopilot")
        until(lambda: page.evaluate(KIND))
        last = on(page)
        looked_around(page)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Complete")).to_be_visible(timeout=TAKEN)
        expect(page.locator(".finish")).to_contain_text("There is no model to compare the answers with.")
        page.keyboard.press("Backspace")
        until(lambda: page.evaluate(KIND) and on(page) == last)
        wait_until_saved(page)
        looked_around(page)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Complete")).to_be_visible(timeout=TAKEN)
        wait_until_saved(page)
        db = Database(served.project)
        image = images.load_all_images(db)[-1].id
        cleared = Decision(str(uuid.uuid4()), "clear", "Bob", "click", image_id=image, class_id=1)
        assert not decisions.save(db, [cleared]).refused
        expect(page.get_by_text("Something is unanswered again.")).to_be_visible(timeout=TAKEN)
        news(page)
        assert not page.evaluate(KIND)
        page.get_by_role("button", name="Go on").click()
        until(lambda: page.evaluate(KIND))
        assert on(page)[1] == str(image)
        assert page.troubles == []


@pytest.mark.slow
def test_audit_started_on_the_complete_page_ends_on_the_complete_page(browser, tmp_path):
    with flown(tmp_path, CLASSES, sure_of_the_fox(12), complete=12) as served:
        page = finished(browser, served, "Audit")
        expect(page.locator(".finish")).to_contain_text("An audit of 36 random pairs tells how many answers are wrong.")
        page.get_by_role("button", name="Start an audit").click()
        until(lambda: page.evaluate(KIND) == "audit")
        for number in range(3):
            before = on(page)
            looked_around(page)
            page.keyboard.press("Enter")
            if number < 2:
                until(lambda was=before: page.evaluate(KIND) == "audit" and on(page) != was)
        expect(page.get_by_role("heading", name="Complete")).to_be_visible(timeout=TAKEN)
        rows = decided(served, "Audit")
        assert len(rows) == 36 and {row["source"] for row in rows} == {"audit"}
        expect(page.get_by_role("button", name="Start an audit")).to_be_visible()
        expect(page.locator(".finish")).to_contain_text(
            "The audit: 36 answers asked again, blind: of 36 absent labels, 0 missed (0 % to "
        )


@pytest.mark.slow
def test_complete_page_repeats_the_last_export_with_one_click(browser, tmp_path):
    with flown(tmp_path, CLASSES, None, complete=60) as served:
        page = finished(browser, served, "Exporter")
        expect(page.get_by_role("button", name="Export")).to_be_hidden()
        page.get_by_role("link", name="Choose how to export").click()
        page.get_by_text("jsonl (one file)").click(timeout=60_000)
        page.get_by_role("textbox", name="Name", exact=True).fill("foxes")
        page.keyboard.press("Enter")
        expect(page.get_by_text("foxes.jsonl").first).to_be_visible(timeout=TAKEN)  # in the command
        page.get_by_test_id("stMain").get_by_role("button", name="Export", exact=True).click()
        expect(page.get_by_role("link", name="Download foxes.zip")).to_be_visible(timeout=60_000)
        page.goto(served.address + "/autopilot")
        expect(page.locator(".finish")).to_contain_text("Export as last time: jsonl, foxes.zip.", timeout=60_000)
        with page.expect_download(timeout=60_000) as download:
            page.get_by_role("button", name="Export").click()
        with zipfile.ZipFile(download.value.path()) as files:
            assert [name for name in files.namelist() if name.endswith(".jsonl")]
        expect(page.locator(".finish .said")).to_contain_text("Downloaded: foxes.zip")
        assert page.locator(".finish").is_visible() and page.troubles == []

        def die(route) -> None:
            served.kill()
            route.fulfill(json={})

        page.route("**/api/export", die, times=1)
        page.get_by_role("button", name="Export").click()
        expect(page.locator(".finish .said")).to_contain_text("The server does not answer.")
        served.start()
        expect(page.locator(".finish .said")).to_contain_text("nothing was exported. Export again.", timeout=60_000)
        with page.expect_download(timeout=60_000):
            page.get_by_role("button", name="Export").click()


@pytest.mark.slow
def test_annotate_page_announces_ready_suggestions_once(browser, tmp_path):
    with flown(tmp_path, CLASSES, None) as served:
        page = open_page(browser, served, "Waiting")
        wait_for_picture(page)
        note = page.get_by_text("Suggestions are ready")
        expect(note).to_have_count(0)
        publish_run(Database(served.project), np.full((60, 3), 0.5))
        expect(note).to_be_visible(timeout=TAKEN)
        looked(page)
        page.keyboard.press("1")
        wait_until_saved(page)
        expect(note).to_be_visible()
        assert note.get_by_role("link", name="Go to Autopilot").get_attribute("href") == "./"
        page.reload()
        wait_for_picture(page)
        wait_until_saved(page)
        expect(note).to_have_count(0)


# What the page shows from now on: [kind of task, heading, words in place of a task], each once in a row. An answer of
# the server that ends the project adds what the first frame after it shows.
WATCH = """() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector("[data-kind]"));
  const root = host.shadowRoot.querySelector("[data-kind]");
  const text = (name) => root.querySelector(name)?.textContent ?? "";
  const state = () => [root.dataset.kind, text(".line"), text(".empty")].join(" | ");
  window.states = [state()];
  window.frames = [];
  const look = () => window.states.at(-1) !== state() && window.states.push(state());
  new MutationObserver(look).observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
  const read = Response.prototype.json;
  Response.prototype.json = async function () {
    const answer = await read.call(this);
    if (answer.complete) requestAnimationFrame(() => setTimeout(() => window.frames.push(state())));
    return answer;
  };
}"""


@pytest.mark.parametrize("by", ["key", "mouse"])
def test_last_answer_shows_complete_in_the_first_frame_after_the_server_answers(browser, tmp_path, by):
    with flown(tmp_path, CLASSES, None, complete=59) as served:
        page = open_page(browser, served, "Last", "/autopilot")
        until(lambda: page.evaluate(KIND))
        wait_until_fetched(page)
        page.evaluate(WATCH)
        looked_around(page)
        held: list[Route] = []
        page.route("**/api/autopilot", lambda route: held.append(route), times=1)
        if by == "key":
            page.keyboard.press("Enter")
        else:
            page.get_by_role("button", name="Save").click()
        until(lambda: page.wait_for_timeout(20) or held)
        assert len(decided(served, "Last")) == 3, "the server is asked once it has the last answer"
        assert page.evaluate("window.states")[1:] == [" | Saving your last answers... | "]
        held[0].continue_()
        until(lambda: page.evaluate("window.frames"))
        assert page.evaluate("window.frames")[0] == " | Complete | "
        assert page.evaluate("window.states")[1:] == [" | Saving your last answers... | ", " | Complete | "]
        finish = page.locator(".finish")
        for part in ("60 images, 0 labels", "You have not exported yet", "There is no model to compare", "An audit of"):
            expect(finish).to_contain_text(part)
        assert page.troubles == []


def test_checks_that_were_queued_are_not_asked_after_the_last_answer(browser, tmp_path):
    with flown(tmp_path, CLASSES, sure_of_the_fox(40), complete=30) as served:
        db = Database(served.project)
        others = [(image.id, class_id, -1, None) for image in images.load_all_images(db)[:10] for class_id in (2, 3)]
        assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Bob", "grid", others)]).refused
        page = open_page(browser, served, "Last", "/autopilot", viewport=ROOMY)
        until(lambda: page.evaluate(KIND))
        while project_counts.count_open_cells(db):
            page.evaluate(WATCH)
            looked_around(page)
            page.keyboard.press("Enter")
            wait_until_saved(page)
        expect(page.get_by_role("heading", name="Complete")).to_be_visible(timeout=TAKEN)
        expect(page.locator(".finish")).to_contain_text("answers that the model contradicts may be wrong")
        later = page.evaluate("window.states")[1:]
        assert later == [" | Saving your last answers... | ", " | Complete | "], later


def test_undo_on_the_complete_page_brings_the_task_back_without_a_contradiction(browser, tmp_path):
    with flown(tmp_path, CLASSES, None, complete=59) as served:
        page = open_page(browser, served, "Undo", "/autopilot")
        until(lambda: page.evaluate(KIND))
        last = on(page)
        looked_around(page)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Complete")).to_be_visible(timeout=TAKEN)
        wait_until_saved(page)
        page.reload()
        expect(page.get_by_role("heading", name="Complete")).to_be_visible(timeout=60_000)
        wait_until_fetched(page)
        page.evaluate(WATCH)
        page.keyboard.press("Backspace")
        until(lambda: page.evaluate(KIND) and on(page) == last)
        kinds = [state.split(" | ")[0] for state in page.evaluate("window.states")]
        assert kinds == [""] * kinds.count("") + ["image"] * kinds.count("image")
        assert page.evaluate("window.states")[0] == " | Complete | "
        assert not any("longer" in state for state in page.evaluate("window.states"))
        expect(page.locator(".finish")).to_be_hidden()


def test_autopilot_stops_at_the_certified_target_and_counts_what_is_done_beyond_it(browser, tmp_path):
    with flown(tmp_path, [f"class {number}" for number in range(12)], None) as served:
        db = Database(served.project)
        ids = [image.id for image in images.load_all_images(db)]
        cells = [(image_id, class_id, 1, None) for class_id in range(1, 13) for image_id in ids]
        assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Bob", "grid", cells[:-6])]).refused
        audit_sampling.draw_audit(db, 5, seed=1)
        asked = [(one.image_id, one.class_id, -1, None) for one in audit_sampling.load_open_cells(db)]
        assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Bob", "audit", asked)]).refused
        assert project_counts.count_open_cells(db) == 1
        page = open_page(browser, served, "Beyond", "/autopilot")
        expect(page.get_by_role("heading", name="95 % recall reached")).to_be_visible(timeout=60_000)
        finish = page.locator(".finish")
        expect(finish).to_contain_text("if 1 answer in 50 is wrong")
        expect(finish).to_contain_text("1 pair is unanswered.")
        expect(finish.get_by_role("link", name="Choose how to export")).to_be_visible()
        page.get_by_role("button", name="Go on").click()
        until(lambda: page.evaluate(KIND))
        page.evaluate(WATCH)
        looked_around(page)
        page.keyboard.press(".")  # it is all there is, so it comes again
        until(lambda: [state.startswith(" | ") for state in page.evaluate("window.states")][-2:] == [True, False])
        assert not any("recall reached" in state for state in page.evaluate("window.states"))
        looked_around(page)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Complete")).to_be_visible(timeout=TAKEN)
        expect(page.locator(".tally")).to_contain_text("Beyond the target: 1 answer, 0 labels found in under a minute")
        page.keyboard.press("Backspace")
        until(lambda: page.evaluate(KIND))
        expect(page.locator(".tally")).to_have_text("")
