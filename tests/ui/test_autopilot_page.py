"""Autopilot in a real Chromium: whatever kind of action comes, what was on screen is what is saved."""

import re
import uuid
from collections.abc import Iterator

import numpy as np
import pytest
from conftest import CLASSES
from harness.autopilot_page import flown, fly, go_on, go_to, on, sure_of_the_fox
from harness.grids import DRAWN, KIND, MARKED, cells, shown
from harness.person import (
    decided,
    labels_of,
    looked,
    looked_around,
    on_screen,
    open_page,
    wait_until_fetched,
    wait_until_saved,
)
from harness.projects import publish_run
from harness.served import Served, until
from playwright.sync_api import Page, expect

from annotator.records import Batch
from annotator.store.database.database import Database
from annotator.store.labels import decisions

pytestmark = pytest.mark.browser


@pytest.fixture
def grids(tmp_path) -> Iterator[Served]:
    with flown(tmp_path, CLASSES, sure_of_the_fox(90), complete=20) as served:
        yield served


def asked(page: Page) -> str:
    """The class that the line is about."""
    return re.search("(?: show |again: )(.+?)(?:[?]| marked)", page.locator(".line").text_content())[1]


def test_autopilot_page_answers_every_action_kind_by_keyboard_and_stores_its_source(browser, tmp_path):
    with flown(tmp_path, CLASSES, None, complete=20, drawn=24) as served:
        page = fly(browser, served, "Keys")
        book: list[tuple[str, tuple[int, int, int]]] = []  # kind, and image, class, state, in the order of the answers
        is_published = False
        while {"audit", "image", "grid"} - (kinds := {kind for kind, _ in book}):
            if kinds == {"audit", "image"} and not is_published:
                publish_run(Database(served.project), sure_of_the_fox(60))
                is_published = True
            kind, name = on(page)
            if kind == "image":
                page.keyboard.press("3")
                book += [(kind, (int(name), *cell)) for cell in page.evaluate(MARKED)]
            else:
                page.keyboard.press("2")
                page.keyboard.press("ArrowRight")
                page.keyboard.press(" ")
                one = CLASSES.index(asked(page)) + 1
                book += [(kind, (image, one, state)) for image, state in cells(shown(page))]
            go_on(page)
        wait_until_saved(page)
        rows = [row for row in decided(served, "Keys") if row["action"] == "label"]
        of = lambda source: [row for row in rows if row["source"] == source]  # noqa: E731
        told = lambda source: [(row["image_id"], row["class_id"], row["state"]) for row in of(source)]  # noqa: E731
        # An audit may ask once more what a whole image has answered, and the other way round: the last counts.
        for (image, one), state in {cell[:2]: cell[2] for _, cell in book}.items():
            assert labels_of(served, image)[one] == state, "also where it had been answered before"
        images = [row for source in ("suggestion", "random", "exploration") for row in of(source)]
        assert {(row["image_id"], row["class_id"], row["state"]) for row in images} <= {
            cell for kind, cell in book if kind == "image"
        }
        for kind in ("audit", "grid"):
            assert told(kind) == [cell for of_kind, cell in book if of_kind == kind]
        assert [row for row in of("grid") if row["score"] is None or not row["run_id"]] == []
        assert all(row["score"] is None for row in of("audit"))
        assert all(row["milliseconds"] is not None for row in rows)
        found = sum(row["state"] == 1 for row in rows)
        expect(page.locator(".tally")).to_have_text(f"{found} labels found in under a minute")
        assert page.troubles == []


@pytest.mark.slow
def test_autopilot_page_hides_predictions_and_heat_map_during_an_audit(browser, tmp_path):
    # One action in twenty is drawn at random; which one follows from how much has been answered.
    with flown(tmp_path, CLASSES, sure_of_the_fox(60), complete=42, drawn=24) as served:
        page = fly(browser, served, "Blind")
        assert on(page)[0] == "audit" and shown(page)["start"] == "no"
        assert "%" not in page.locator(".root[data-kind]").inner_text()
        assert not page.locator(".tile .mark[aria-label*='%']").count()
        page.keyboard.press("ArrowRight")
        page.keyboard.down("Shift")
        expect(page.locator(".words")).to_have_text("No heat map: this is an audit.")
        page.keyboard.up("Shift")
        page.keyboard.press("PageUp")
        expect(page.locator(".enlarged .name")).to_have_text(
            page.locator(".enlarged img[data-image]").get_attribute("alt")
        )


@pytest.mark.slow
def test_autopilot_page_offers_likely_mistakes_again_without_showing_probabilities(browser, tmp_path):
    with flown(tmp_path, CLASSES, sure_of_the_fox(60), complete=60) as served:
        room = {"width": 1200, "height": 860}  # for 24 tiles below the hints of a first visit
        page = open_page(browser, served, "Doubt", "/autopilot", viewport=room)
        page.get_by_role("button", name="Check them").click(timeout=60_000)
        until(lambda: page.evaluate(KIND) == "grid")
        wait_until_fetched(page)
        page.evaluate(DRAWN)
        expect(page.locator(".line")).to_contain_text("Check 24 answers again: fox marked absent")
        assert shown(page)["start"] == "no" and len(shown(page)["tiles"]) == 24
        assert "%" not in page.locator(".root[data-kind]").inner_text()
        assert not page.locator(".tile .mark[aria-label*='%']").count()
        page.keyboard.down("Shift")
        expect(page.locator(".words")).to_have_text("No heat map: this is an audit.")
        page.keyboard.up("Shift")
        page.keyboard.press("1")
        marked, first = cells(shown(page)), on(page)
        assert [state for _, state in marked] == [1] + [-1] * 23
        go_on(page)
        wait_until_saved(page)
        rows = decided(served, "Doubt")
        assert [(row["image_id"], row["state"]) for row in rows] == marked
        assert {(row["class_id"], row["source"]) for row in rows} == {(1, "relabel")}
        assert all(row["score"] is None and row["run_id"] is None for row in rows)
        expect(page.locator(".tally")).to_have_text("1 label found in under a minute")
        page.keyboard.press("Backspace")
        until(lambda: on(page) == first)
        wait_until_saved(page)
        assert {labels_of(served, image)[1] for image, _ in marked} == {-1}, "as it was said before"
        assert page.troubles == []


@pytest.mark.slow
def test_class_key_on_the_autopilot_page_answers_one_class_and_shows_the_next_action(browser, tmp_path):
    names = [f"class {number:02}" for number in range(40)]
    with flown(tmp_path, names, np.full((60, 40), 0.03), complete=20) as served:
        page = fly(browser, served, "Clicker")
        go_to(page, "click")
        wait_until_saved(page)
        before = len(decided(served, "Clicker"))
        image = on_screen(page)
        go_on(page, "5")
        wait_until_saved(page)
        (row,) = decided(served, "Clicker")[before:]
        assert (row["image_id"], row["class_id"], row["state"], row["source"]) == (image, 5, 1, "click")
        page.keyboard.press("Backspace")
        until(lambda: on(page) == ("click", str(image)))
        wait_until_saved(page)
        assert labels_of(served, image) == {}
        for key, after in (("Shift+Digit5", {5: 1}), ("Alt+Digit6", {5: 1, 6: -1}), ("5", {6: -1}), ("Alt+Digit6", {})):
            looked(page)
            page.keyboard.press(key)
            wait_until_saved(page)
            assert (on(page), labels_of(served, image)) == (("click", str(image)), after), key
        expect(page.locator(".tally")).to_contain_text("0 labels found")
        page.keyboard.press("Backspace")
        wait_until_saved(page)
        assert labels_of(served, image) == {6: -1}
        page.get_by_role("button", name="History").click()
        page.locator(".history li", has_text="class 05: unanswered again").wait_for()
        page.keyboard.press("Escape")
        page.keyboard.press("F2")
        expect(page.get_by_role("button", name="Back to Autopilot")).to_be_visible()
        assert on_screen(page) == image


@pytest.mark.slow
def test_autopilot_undo_restores_an_action_with_its_marks_and_redo_saves_it_again(browser, grids):
    page = fly(browser, grids, "Undo")
    go_to(page, "grid")
    for key in "1u3":
        page.keyboard.press(key)
    first, name = shown(page), on(page)
    second = go_on(page)
    tally = page.locator(".tally").text_content()
    page.keyboard.press("Backspace")
    until(lambda: on(page) == name)
    assert shown(page) == first
    wait_until_saved(page)
    assert labels_of(grids, first["tiles"][0][0]) == {}, "all of it is taken back"
    page.keyboard.press("Shift+Backspace")
    until(lambda: on(page) == second)
    expect(page.locator(".tally")).to_have_text(tally)
    wait_until_saved(page)
    assert labels_of(grids, first["tiles"][0][0]) == {1: 0}


@pytest.mark.slow
def test_autopilot_page_marks_preselected_classes_as_suggested_until_changed_or_saved(browser, tmp_path):
    with flown(tmp_path, CLASSES, np.full((60, 3), 0.1), complete=30) as served:
        db = Database(served.project)
        for image in range(31, 37):  # such guesses were right so far
            cell = (image, 1, 1, 0.72)
            assert not decisions.save(db, [Batch(str(uuid.uuid4()), "Bob", "exploration", [cell], None)]).refused
        publish_run(db, np.tile([0.72, 0.72, 0.02], (60, 1)))
        page = fly(browser, served, "Guesser")
        go_to(page, "image")
        guessed = page.locator(".classes .class[data-state=guessed]")
        expect(guessed).to_have_count(2)
        expect(guessed.locator(".percent")).to_have_text(["72\u00a0%", "72\u00a0%"])
        expect(guessed.nth(0)).to_have_attribute("aria-pressed", "mixed")
        assert guessed.nth(0).evaluate("(one) => one.ariaDescription") == "guessed present, 72\u00a0%"
        assert guessed.nth(0).evaluate("(one) => getComputedStyle(one).borderStyle") == "dashed"
        expect(page.locator(".task")).to_have_text(
            "Check 2 guesses (dashed). Enter saves them as your answers, all others as absent."
        )
        expect(page.locator(".answers .sum")).to_have_text("2 guessed · 0 answered · 1 absent")
        page.keyboard.press("1")
        expect(guessed).to_have_count(1)
        expect(page.locator(".classes .class").nth(0)).to_have_attribute("data-state", "absent")
        expect(page.locator(".classes .class .guess")).to_have_count(1)
        expect(page.locator(".answers .sum")).to_have_text("1 guessed · 1 answered · 1 absent")
        looked(page)
        page.keyboard.press("1")
        expect(page.locator(".classes .class").nth(0)).to_have_attribute("data-state", "present")
        image = on_screen(page)
        go_on(page)
        wait_until_saved(page)
        assert labels_of(served, image) == {1: 1, 2: 1, 3: -1}
        rows = [row for row in decided(served, "Guesser") if row["image_id"] == image]
        assert {(row["annotator"], row["source"]) for row in rows} <= {
            ("Guesser", "exploration"),
            ("Guesser", "suggestion"),
        }
        assert [row["score"] for row in rows] == pytest.approx([0.72, 0.72, 0.02], abs=0.01), "as it was shown"
        page.keyboard.press("Backspace")
        until(lambda: on(page)[1] == str(image))
        expect(guessed).to_have_count(1)
        expect(page.locator(".answers .sum")).to_have_text("1 guessed · 1 answered · 1 absent")


@pytest.mark.slow
def test_skipped_autopilot_action_is_not_offered_again_soon_and_undo_restores_it(browser, tmp_path):
    # More than four grids can hold: there is always something else than what was skipped.
    with flown(tmp_path, CLASSES, sure_of_the_fox(300), complete=20) as served:
        page = fly(browser, served, "Skip")
        go_to(page, "grid")
        skipped, name, about = {image for image, _ in shown(page)["tiles"]}, on(page), asked(page)
        go_on(page, ".")
        page.keyboard.press("Backspace")
        until(lambda: on(page) == name)
        go_on(page, ".")
        for _ in range(4):
            kind, what = on(page)
            if kind == "image":
                assert int(what) not in skipped
            elif kind in ("grid", "audit") and asked(page) == about:
                assert not {image for image, _ in shown(page)["tiles"]} & skipped
            go_on(page)


@pytest.mark.slow
def test_autopilot_page_loses_no_answer_after_a_server_kill_and_a_reload(browser, grids):
    page = fly(browser, grids, "Killed")
    go_to(page, "grid")
    wait_until_saved(page)
    wait_until_fetched(page)
    grids.kill()
    page.keyboard.press("1")
    marked = shown(page)
    go_on(page)
    expect(page.locator(".foot")).to_contain_text("Nothing is lost")
    grids.start()
    page.reload()
    until(lambda: page.evaluate(KIND))
    wait_until_saved(page)
    for image, state in cells(marked):
        assert labels_of(grids, image)[1] == state
    page.keyboard.press("Backspace")
    expect(page.locator(".words")).to_contain_text(f"Undid: {len(marked['tiles'])} answers for fox")


@pytest.mark.slow
def test_autopilot_page_without_a_model_offers_whole_images_until_all_are_answered(browser, tmp_path):
    with flown(tmp_path, CLASSES, None, complete=57) as served:
        page = fly(browser, served, "Early")
        for left in (2, 1, 0):
            kind, name = on(page)
            page.keyboard.press("1")
            page.keyboard.press("-")
            page.keyboard.press("2")
            looked_around(page)
            page.keyboard.press("Enter")
            if left:
                until(lambda was=name: on(page)[1] != was)
            wait_until_saved(page)
            assert kind == "image" and labels_of(served, int(name)) == {1: 1, 2: 0, 3: -1}
        page.get_by_text("Every class of every image has an answer").wait_for()
        assert page.troubles == []
