"""Annotate in a real Chromium: each key goes to the image on screen, and the store ends up with what was pressed."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness.person import (
    RENEW,
    Scribe,
    decided,
    labels_of,
    looked,
    looked_around,
    on_screen,
    open_page,
    served_photos,
    wait_for_another,
    wait_for_image,
    wait_for_picture,
    wait_until_saved,
)
from harness.projects import publish_run
from harness.served import PAGES_ALONE, Served, until
from playwright.sync_api import Page, Route, expect

from annotator.queues import query_order
from annotator.store.classes import class_changes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.people import leases

pytestmark = pytest.mark.browser

LINES = ["fox\tred, with a white tip on its tail", "heron", "deer", "red fox", "owl"]


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Iterator[Served]:
    """An app with 600 tiny images and five classes; each test is somebody else."""
    with served_photos(tmp_path_factory.mktemp("many"), 600, LINES) as served:
        yield served


def press_sixty(page: Page) -> list[list[int]]:
    """Sixty keys 20 ms apart, pressed inside the page; for each the image then on screen and the class of the key."""
    return page.evaluate(
        """async () => {
          const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".stage"));
          const seen = [];
          const pause = (ms) => new Promise((done) => setTimeout(done, ms));
          let next = performance.now();
          const shown = () => host.shadowRoot.querySelector(".stage img")?.dataset.image;
          for (let number = 0; number < 60; number += 1) {
            while (!shown()) await pause(20);  // the server of a slow machine is behind
            const key = String(number % 3 + 1);
            seen.push([Number(shown()), Number(key)]);
            const press = { key, code: `Digit${key}`, bubbles: true, composed: true };
            document.body.dispatchEvent(new KeyboardEvent("keydown", press));
            document.body.dispatchEvent(new KeyboardEvent("keyup", press));
            next += 20;
            await pause(Math.max(0, next - performance.now()));
          }
          return seen;
        }"""
    )


def test_annotate_labels_the_image_on_screen_for_sixty_key_presses_20_ms_apart(browser, many):
    page = open_page(browser, many, "Burst")
    wait_for_picture(page)
    page.wait_for_load_state("networkidle")  # the pictures that come next are there: that is what they are fetched for
    seen = press_sixty(page)
    wait_until_saved(page, 60)
    rows = decided(many, "Burst")
    assert [[row["image_id"], row["class_id"]] for row in rows] == seen
    assert len({row["image_id"] for row in rows}) == 60


@pytest.mark.slow
def test_key_presses_without_a_prior_click_label_the_shown_image(browser, many):
    page = open_page(browser, many, "Keys")
    wait_for_picture(page)
    shown = []
    for key in "123123":
        shown.append((on_screen(page), int(key)))
        page.keyboard.press(key)
        expect(page.locator(f".stage img[data-image='{shown[-1][0]}']")).to_have_count(0)
        wait_for_picture(page)
    wait_until_saved(page, 6)
    rows = decided(many, "Keys")
    assert [(row["image_id"], row["class_id"]) for row in rows] == shown
    assert all(row["source"] == "click" and row["state"] == 1 and row["milliseconds"] > 0 for row in rows)


def test_annotate_keys_for_skip_unsure_undo_and_done_store_the_expected_labels(browser, many):
    page = open_page(browser, many, "Tools")
    db = Database(many.project)

    def now(image_id: int) -> dict[int, int]:
        return {one.class_id: one.state for one in decisions.load_labels(db, [image_id])}

    wait_for_picture(page)
    looked(page)
    first = on_screen(page)
    page.keyboard.press(" ")
    expect(page.locator(f".stage img[data-image='{first}']")).to_have_count(0)
    page.keyboard.press("Backspace")
    expect(page.locator(f".stage img[data-image='{first}']")).to_have_count(1)
    page.keyboard.press("-")
    page.keyboard.press("2")
    assert on_screen(page) == first, "an unsure class leaves the image open for its positive"
    page.keyboard.press("Shift+Digit1")
    assert on_screen(page) == first
    expect(page.locator(".chips")).to_contain_text("fox")
    expect(page.locator(".chips")).to_contain_text("heron (unsure)")
    looked(page)
    page.get_by_role("button", name="Nothing else here").click()
    expect(page.locator(f".stage img[data-image='{first}']")).to_have_count(0)
    wait_until_saved(page, 5)
    assert now(first) == {1: 1, 2: 0, 3: -1, 4: -1, 5: -1}
    page.reload()
    wait_for_picture(page)
    looked(page)
    page.keyboard.press("Backspace")
    expect(page.locator(f".stage img[data-image='{first}']")).to_have_count(1)
    wait_until_saved(page, 1)
    assert now(first) == {1: 1, 2: 0}, "undo reaches back over a reload"
    page.keyboard.press("Control+z")
    wait_until_saved(page, 2)
    assert now(first) == {2: 0}


@pytest.mark.slow
def test_annotate_skips_images_with_deleted_files(browser, project, processes, photos):
    for path in sorted(photos.glob("*.jpg"))[:20]:
        path.unlink()
    served = Served(project, processes, python=PAGES_ALONE)
    page = open_page(browser, served, "Ann")
    page.locator(".stage img, .stage .empty").first.wait_for()
    deadline = time.monotonic() + 30
    while not page.locator(".stage img").count() and time.monotonic() < deadline:
        page.keyboard.press(" ")
        page.wait_for_timeout(100)
    wait_for_picture(page)
    assert Path(photos / images.load_images(Database(project), [on_screen(page)])[on_screen(page)].name).exists()


@pytest.mark.slow
def test_hundred_images_labeled_by_keyboard_are_stored_as_pressed(browser, many):
    page = open_page(browser, many, "Scribe")
    scribe = Scribe(page)
    flags = {}
    for number in range(100):
        match number % 10:
            case 0:  # found by typing
                scribe.write(scribe.press("/", "o", "w", "Enter"), c5=1)
            case 1:  # two labels, then on
                scribe.write(scribe.press("Shift+Digit1", "3"), c1=1, c3=1)
            case 2:
                scribe.press(" ")
            case 3:  # flagged and labeled
                image_id = scribe.press(",", leaves=False)
                expect(page.get_by_role("dialog")).to_be_visible()
                page.keyboard.type(f"odd 1 {number}")
                page.keyboard.press("Enter")
                expect(page.locator(".chip.flag")).to_have_text(f"Flag: odd 1 {number}")
                flags[image_id] = f"odd 1 {number}"
                scribe.write(scribe.press("2"), c2=1)
            case 4:  # taken back, given to another class
                image_id = scribe.press("1")
                page.keyboard.press("Backspace")
                wait_for_image(page, image_id)
                scribe.write(scribe.press("2"), c2=1)
            case 5:  # taken back and done again
                image_id = scribe.press("3")
                page.keyboard.press("Control+z")
                wait_for_image(page, image_id)
                page.keyboard.press("Control+y")
                wait_for_another(page, image_id)
                scribe.write(image_id, c3=1)
            case 6:
                scribe.write(scribe.press("-", "4", "1"), c4=0, c1=1)
            case 7:
                scribe.write(scribe.press("Enter"), c1=-1, c2=-1, c3=-1, c4=-1, c5=-1)
            case 8:  # stay until Space
                scribe.write(scribe.press("F4", "2", "3", "F4", " "), c2=1, c3=1)
            case _:
                scribe.write(scribe.press("1"), c1=1)
    wait_until_saved(page)
    assert len(scribe.labels) == 90, "each image came once"
    found = {image_id: labels_of(many, image_id) for image_id in scribe.labels}
    assert found == scribe.labels
    flagged = [row for row in decided(many, "Scribe") if row["action"] == "flag"]
    assert {row["image_id"]: row["note"] for row in flagged} == flags
    assert page.troubles == []


@pytest.mark.slow
def test_class_key_right_after_enter_closes_the_comment_labels_the_image(browser, many):
    page = open_page(browser, many, "Quick")
    wait_for_picture(page)
    image_id = on_screen(page)
    page.keyboard.press(",")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.type("odd")
    # Both in one task of the browser: whatever it would put right with its next frame, it has not yet.
    page.evaluate("""() => {
      for (const [key, code] of [["Enter", "Enter"], ["2", "Digit2"]]) {
        let at = document.activeElement;
        while (at.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
        at.dispatchEvent(new KeyboardEvent("keydown", { key, code, bubbles: true, composed: true, cancelable: true }));
      }
    }""")
    wait_for_another(page, image_id)
    wait_until_saved(page, 2)
    assert labels_of(many, image_id) == {2: 1}


def test_redo_restores_undone_decisions_until_a_new_decision(browser, many):
    page = open_page(browser, many, "Redo")
    scribe = Scribe(page)
    first, second = scribe.press("1"), scribe.press("2")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    wait_for_image(page, first)
    page.keyboard.press("Shift+Backspace")
    wait_for_image(page, second)
    assert scribe.press("3") == second
    page.keyboard.press("Control+Shift+z")
    expect(page.locator(".words")).to_have_text("Nothing to redo.")
    wait_until_saved(page, 6)
    assert (labels_of(many, first), labels_of(many, second)) == ({1: 1}, {3: 1})


@pytest.mark.slow
def test_undo_after_a_reload_shows_the_image_and_restores_its_labels(browser, many):
    page = open_page(browser, many, "Loader")
    scribe = Scribe(page)
    image_id = scribe.press("Shift+Digit2", "1")
    wait_until_saved(page, 2)
    page.reload()
    wait_for_picture(page)
    page.wait_for_load_state("networkidle")
    page.keyboard.press("Backspace")
    wait_for_image(page, image_id)
    expect(page.locator(".words")).to_have_text(re.compile(r"^Undid: fox on \S+\.$"))
    expect(page.locator(".chips .chip")).to_have_text(["heron×"])
    page.keyboard.press("Backspace")
    expect(page.locator(".chips .chip")).to_have_count(0)
    page.keyboard.press("Control+y")
    expect(page.locator(".chips .chip")).to_have_text(["heron×"])
    wait_until_saved(page, 3)
    assert labels_of(many, image_id) == {2: 1}


@pytest.mark.slow
def test_every_page_names_the_image_file_when_undoing_a_decision_from_before_a_reload(browser, many):
    page = open_page(browser, many, "Namer")
    image_id = Scribe(page).press("1")
    wait_until_saved(page, 1)
    name = images.load_images(Database(many.project), [image_id])[image_id].name
    for path in ("/grid", "/review", "/autopilot", "/gallery", "/annotate"):
        with page.expect_response("**/api/recent"):
            page.goto(many.address + path)
        page.wait_for_load_state("networkidle")
        page.keyboard.press("Backspace")
        expect(page.locator(".words"), path).to_have_text(f"Undid: fox on {name}.")
        page.keyboard.press("Shift+Backspace")
        expect(page.locator(".words"), path).to_have_text(f"Redid: fox on {name}.")
        wait_until_saved(page, 2)


@pytest.mark.slow
def test_undo_message_disappears_at_the_next_decision(browser, many):
    page = open_page(browser, many, "Teller")
    scribe = Scribe(page)
    image_id = scribe.press("Shift+Digit2", "1")
    wait_until_saved(page, 2)
    page.keyboard.press("Backspace")
    wait_for_image(page, image_id)
    expect(page.locator(".words")).to_have_text(re.compile(r"^Undid: fox on \S+\.$"))
    page.keyboard.press("Shift+Digit3")
    expect(page.locator(".words")).to_have_text("")
    page.keyboard.press("Shift+Digit1")
    wait_until_saved(page, 5)
    page.reload()
    wait_for_picture(page)
    page.wait_for_load_state("networkidle")
    held: list[Route] = []
    page.route("**/api/items", lambda route: route.continue_() if held else held.append(route))
    page.keyboard.press("Backspace")
    until(lambda: page.evaluate("1") and held)
    page.keyboard.press("Shift+Digit2")  # before the image of the undone step has come
    with page.expect_response("**/api/items"):
        held[0].continue_()
    wait_for_image(page, image_id)
    expect(page.locator(".words")).to_have_text("")


@pytest.mark.slow
def test_arrow_keys_return_to_earlier_images_for_relabeling(browser, many):
    page = open_page(browser, many, "Second thoughts")
    scribe = Scribe(page)
    seen = [scribe.press("1") for _ in range(3)]
    newest = on_screen(page)
    for image_id in reversed(seen):
        page.keyboard.press("ArrowLeft")
        wait_for_image(page, image_id)
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".words")).to_have_text("There is no previous image.")
    page.keyboard.press("ArrowRight")
    wait_for_image(page, seen[1])
    expect(page.locator(".chips .chip")).to_have_text(["fox×"])
    page.get_by_role("button", name="fox is not on the image").click()
    expect(page.locator(".chips .chip")).to_have_text(["fox (absent)"])
    page.keyboard.press("Shift+Digit3")
    for image_id in (seen[2], newest):
        page.keyboard.press("ArrowRight")
        wait_for_image(page, image_id)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".words")).to_contain_text("This is the newest image")
    page.get_by_role("button", name="Previous").click()
    wait_for_image(page, seen[2])
    assert scribe.press("2") == seen[2]
    wait_for_image(page, newest)
    wait_until_saved(page, 6)
    assert [labels_of(many, image_id) for image_id in seen] == [{1: 1}, {1: -1, 3: 1}, {1: 1, 2: 1}]


@pytest.mark.slow
def test_annotate_labels_the_image_on_screen_for_sixty_fast_keys_with_a_thousand_classes(browser, tmp_path):
    with served_photos(tmp_path, 70, [f"class {number}" for number in range(1000)]) as served:
        page = open_page(browser, served, "Burst")
        wait_for_picture(page)
        page.wait_for_load_state("networkidle")
        seen = press_sixty(page)
        wait_until_saved(page, 60)
        assert [[row["image_id"], row["class_id"]] for row in decided(served, "Burst")] == seen


@pytest.mark.slow
def test_class_key_set_in_the_project_labels_that_class(browser, tmp_path):
    with served_photos(tmp_path, 5, ["fox", "heron"]) as served:
        class_changes.edit(Database(served.project), "Ann", {1: {"key": "h"}, 2: {"key": "x"}})
        page = open_page(browser, served, "Ann")
        scribe = Scribe(page)
        scribe.press("1", leaves=False)
        scribe.press("x")
        wait_until_saved(page, 1)
        assert [row["class_id"] for row in decided(served, "Ann")] == [2]


@pytest.mark.slow
def test_order_selection_applies_immediately_and_persists_after_a_reload(browser, tmp_path):
    with served_photos(tmp_path, 30, LINES) as served:
        db = Database(served.project)
        run_id = publish_run(db, np.full((30, len(LINES)), 0.5))
        query_order.save(db.paths.run(run_id), {"diversity": np.arange(30, 0, -1)})
        page = open_page(browser, served, "Ann")
        wait_for_picture(page)
        page.get_by_label("Order").select_option(label="Most varied")
        wait_for_image(page, 30)
        expect(page.locator(".order")).to_have_attribute("title", re.compile("as unlike the ones before"))
        page.get_by_label("Order").focus()
        page.keyboard.press("1")  # is about the choice, not about the image
        page.keyboard.press("Escape")
        page.keyboard.press("2")
        wait_for_image(page, 29)
        wait_until_saved(page, 1)
        assert labels_of(served, 30) == {2: 1}
        page.reload()
        wait_for_image(page, 29)
        expect(page.get_by_label("Order")).to_have_value("diversity")


@pytest.mark.slow
def test_annotate_continues_with_incomplete_images_and_ends_with_links_to_other_pages(browser, tmp_path):
    with served_photos(tmp_path, 4, ["fox", "heron"]) as served:
        page = open_page(browser, served, "Ann", clock=True)
        scribe = Scribe(page)
        seen = [scribe.press("1") for _ in range(4)]
        assert len(set(seen)) == 4
        expect(page.locator(".caption")).to_contain_text("1 of 2 classes answered")
        wait_until_saved(page, 4)
        page.clock.fast_forward(RENEW)
        expect(page.locator(".foot")).to_contain_text("4 of 8 pairs answered · 0 of 4 images complete")
        expect(page.locator(".foot progress")).to_have_attribute("value", "0.5")
        first = scribe.press(" ")
        again = [scribe.press("Enter") for _ in range(3)]
        assert set(again) == set(seen) - {first}, "what was passed by comes last"
        wait_for_image(page, first)
        page.keyboard.press("Backspace")
        looked_around(page)
        page.keyboard.press("Enter")
        wait_for_image(page, first)
        looked_around(page)
        page.keyboard.press("Enter")
        expect(page.locator(".stage .empty")).to_contain_text("Every image is complete")
        wait_until_saved(page)
        page.clock.fast_forward(RENEW)
        all_done = "8 of 8 pairs answered · 4 of 4 images complete"
        expect(page.locator(".foot .far")).to_have_text(all_done)
        expect(page.locator(".foot progress")).to_have_attribute("value", "1")
        expect(page.get_by_role("link", name="Go to Certificate")).to_be_visible()
        page.get_by_role("link", name="Go to Review").click()
        expect(page.get_by_role("link", name="Go to Autopilot")).to_be_visible()
        actions = [row["action"] for row in decided(served, "Ann")]
        assert actions == ["label"] * 4 + ["skip"] + ["done"] * 3 + ["undo", "done", "done"]
        assert page.troubles == []


@pytest.mark.slow
def test_annotate_page_idle_for_30_s_keeps_only_the_shown_image_leased(browser, tmp_path):
    with served_photos(tmp_path, 12, LINES) as served:
        db = Database(served.project)

        def held() -> list[int]:
            return [image_id for image_id, _ in leases.load_leases_of_others(db, "bob")]

        page = open_page(browser, served, "Ann", clock=True)
        wait_for_picture(page)
        first = on_screen(page)
        until(held)  # half of what there is: somebody else may come
        page.clock.fast_forward(RENEW)
        until(lambda: len(held()) == 12)
        page.clock.fast_forward(31_000)
        until(lambda: held() == [first])
        left = max(image.id for image in images.load_all_images(db) if image.id != first)
        leases.lease_images(
            db, "bob", "Bob", [image.id for image in images.load_all_images(db) if image.id != left], 12
        )
        page.route("**/api/work", lambda route: None)  # no answer
        page.keyboard.press("1")
        wait_for_another(page, first)
        page.keyboard.press("2")
        words = "Reserving the image for you after the pause... Nothing was answered."
        expect(page.locator(".words")).to_have_text(words)
        page.unroute("**/api/work")
        wait_for_image(page, left)
        until(lambda: left in held())
        looked(page)
        page.keyboard.press("2")
        wait_until_saved(page, 2)
        assert [(row["image_id"], row["class_id"]) for row in decided(served, "Ann")] == [(first, 1), (left, 2)]
        assert page.troubles == []


def test_annotate_buttons_on_a_phone_have_the_minimum_touch_size_and_label_on_tap(browser, many):
    page = open_page(browser, many, "Phone", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    wait_for_picture(page)
    small = page.locator(".root button:visible").evaluate_all(
        """all => all.filter((one) => one.getBoundingClientRect().width < 44 || one.getBoundingClientRect().height < 44)
                 .map((one) => one.textContent)"""
    )
    assert small == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    image_id = on_screen(page)
    page.locator(".class[data-class='2']").tap()
    wait_for_another(page, image_id)
    wait_until_saved(page, 1)
    assert labels_of(many, image_id) == {2: 1}
