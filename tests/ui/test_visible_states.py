"""What a person can tell at a glance: which buttons and tiles are chosen, also in forced colors."""

import numpy as np
import pytest
from harness.contexts import Contexts
from harness.grids import open_grid
from harness.person import looked, on_screen, open_page, served_photos, wait_for_another, wait_for_picture
from harness.projects import publish_run
from harness.served import until
from playwright.sync_api import Locator, Page, expect

from annotator.store.database.database import Database

pytestmark = pytest.mark.browser

# What is seen of an element without its text, the place of the focus, and what the forced colors have taken away.
LOOK = """(one) => {
  const name = one.querySelector(".name");
  const style = getComputedStyle(one);
  const parts = ["background-color", "border-top-color", "border-top-width", "border-top-style", "outline-style"];
  const sign = name ? getComputedStyle(name, "::before").content : "";
  return [...parts.map((part) => style.getPropertyValue(part)), sign].join(" ");
}"""


@pytest.fixture
def forced(browser: Contexts):
    """Opens pages in a window with forced colors, as high contrast is on Windows."""
    return lambda served, path: open_page(browser, served, "Ann", path, forced_colors="active")


def look(of: Locator) -> str:
    return of.first.evaluate(LOOK)


def class_button(page: Page, number: int) -> Locator:
    return page.locator(f".classes .class[data-class='{number}']")


def check_modes_and_unsure(page: Page) -> None:
    chosen, other = (page.locator(f".modes button[aria-pressed={pressed}]") for pressed in ("true", "false"))
    assert look(chosen) != look(other)
    before = look(page.get_by_role("button", name="Unsure"))
    page.keyboard.press("-")
    expect(page.get_by_role("button", name="Unsure")).to_have_attribute("aria-pressed", "true")
    assert look(page.get_by_role("button", name="Unsure")) != before
    page.keyboard.press("-")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/annotate", "/autopilot"])
def test_pressed_classes_and_switches_are_visible_in_forced_colors(forced, tmp_path, path):
    with served_photos(tmp_path, 12, ["fox", "heron", "deer", "owl", "hare"]) as served:
        page = forced(served, path)
        wait_for_picture(page)
        looked(page)
        check_modes_and_unsure(page)
        for key in ("Shift+Digit1", "Alt+2", "-", "Shift+Digit3"):
            page.keyboard.press(key)
        expect(class_button(page, 3)).to_have_attribute("data-state", "unsure")
        present, unsure, unanswered = (look(class_button(page, number)) for number in (1, 3, 4))
        assert len({present, unsure, unanswered}) == 3
        page.keyboard.press("/")
        page.keyboard.type("e")
        chosen, other = (page.locator(f".option[aria-selected={selected}]") for selected in ("true", "false"))
        assert look(chosen) != look(other)


def test_tile_marks_are_visible_in_forced_colors(forced, tmp_path):
    with served_photos(tmp_path, 30, ["fox", "heron"]) as served:
        publish_run(Database(served.project), np.tile([0.9, 0.1], (30, 1)))
        page = forced(served, "/grid")
        tiles = page.locator(".tiles:not(.skeleton) .tile")
        tiles.first.wait_for(timeout=60_000)
        looked(page)
        chosen, other = (page.locator(f".starts button[aria-pressed={pressed}]") for pressed in ("true", "false"))
        assert look(chosen) != look(other)
        tiles.nth(0).hover()
        page.keyboard.press("1")
        page.keyboard.press("u")
        page.keyboard.press("2")
        page.mouse.move(2, 2)
        states = ("unsure", "absent", "present")  # the last is the model's guess
        seen = {}
        for number, state in enumerate(states):
            expect(tiles.nth(number)).to_have_attribute("data-state", state)
            seen[number] = look(tiles.nth(number).locator(".mark"))
        page.get_by_role("button", name="Start with all No").click()
        page.keyboard.press("4")
        page.mouse.move(2, 2)
        expect(tiles.nth(3)).to_have_attribute("data-state", "present")
        seen |= {number: look(tiles.nth(number).locator(".mark")) for number in (3, 4)}  # present, and as tiles start
        assert len({seen[number] for number in range(4)}) == 4 and seen[3] != seen[4], seen


@pytest.mark.slow
def test_resting_pointer_marks_no_button_of_the_next_image_until_it_moves(browser: Contexts, tmp_path):
    with served_photos(tmp_path, 12, ["fox", "heron", "deer"]) as served:
        page = open_page(browser, served, "Ann")
        wait_for_picture(page)
        looked(page)
        image, unanswered = on_screen(page), look(class_button(page, 3))
        class_button(page, 2).click()
        wait_for_another(page, image)
        until(lambda: look(class_button(page, 2)) == unanswered)
        expect(page.locator(".card:popover-open")).to_have_count(0)
        box = class_button(page, 2).bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2 + 3, box["y"] + box["height"] / 2)
        until(lambda: look(class_button(page, 2)) != unanswered)


@pytest.mark.slow
def test_period_skips_on_every_page_and_f4_switches_the_answer_mode(browser: Contexts, tmp_path):
    with served_photos(tmp_path, 60, ["fox", "heron"]) as served:
        page = open_page(browser, served, "Ann")
        wait_for_picture(page)
        looked(page)
        image = on_screen(page)
        page.keyboard.press(".")
        wait_for_another(page, image)
        for path in ("/annotate", "/autopilot"):
            page.goto(served.address + path)
            wait_for_picture(page)
            pressed = page.locator(".modes button[aria-pressed=true]")
            before = pressed.inner_text()
            page.keyboard.press("F4")
            expect(pressed).not_to_have_text(before)
            page.keyboard.press("F4")
            expect(pressed).to_have_text(before)
        looked(page)
        image = on_screen(page)
        page.keyboard.press(".")
        wait_for_another(page, image)
        db = Database(served.project)
        chances = np.random.default_rng(0).uniform(0.6, 0.9, (60, 2))
        publish_run(db, chances)
        page.goto(served.address + "/review")
        page.locator(".suggestion").first.wait_for(timeout=60_000)
        image = on_screen(page)
        page.keyboard.press(".")
        wait_for_another(page, image)
        grid = open_grid(browser, served, "Bea")
        name = grid.locator(".class-name .name").inner_text()
        grid.keyboard.press(".")
        expect(grid.locator(".class-name .name")).not_to_have_text(name)
        assert page.troubles == grid.troubles == []
