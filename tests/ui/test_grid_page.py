"""The grid in a real Chromium: what Enter saves are the tiles that were on screen, each as it was marked there."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness.grids import DRAWN, GRID, SHOWN, after, cells, open_grid, saved, shown
from harness.person import decided, labels_of, looked_around, served_photos, wait_until_saved
from harness.served import Served, until
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from annotator.store.database import arrays
from annotator.store.database.database import Database
from annotator.store.images import images, selections
from annotator.store.runs import runs

pytestmark = pytest.mark.browser

HELD_LONG = "() => new Promise((done) => setTimeout(done, 700))"  # longer than a long press takes
TILE_KEYS = "1234567890qwertyiopasdfghjklzxcvbnm"


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Iterator[Served]:
    """An app with 960 tiny images and four classes, of which no model knows anything."""
    with served_photos(tmp_path_factory.mktemp("many"), 960, ["fox", "heron\tgrey", "deer", "red fox"]) as served:
        yield served


@pytest.fixture
def ranked(tmp_path) -> Iterator[Served]:
    """An app with 120 images and a run: the first 60 are likely to show the fox, the last 30 the heron."""
    with served_photos(tmp_path, 120, ["fox", "heron", "deer"]) as served:
        db = Database(served.project)
        ids = np.array(sorted(image.id for image in images.load_all_images(db)))
        chances = np.full((120, 3), np.nan)
        chances[:, 0] = np.where(np.arange(120) < 60, 0.99, 0.2) - np.arange(120) / 1000
        chances[:, 1] = np.where(np.arange(120) >= 90, 0.7, 0.05) - np.arange(120) / 1000 * 0.1
        facts = {"method": "gr", "parameters": {}, "backbone": "none", "class_ids": [1, 2, 3], "images": 120}
        run = runs.begin(db, **facts, last_decision_id=0, threshold=0.5)
        arrays.save_array(db.paths.run(run) / "image_ids.npy", ids)
        arrays.save_array(db.paths.run(run) / "probabilities.npy", chances.astype(np.float16))
        runs.publish(db, run, epochs=1, seconds=0.1, loss=[0.5])
        yield served


def test_grids_answered_by_keyboard_are_stored_as_shown(browser, many):
    page = open_grid(browser, many, "Keys")
    book = []
    for number in range(5):
        if shown(page)["start"] != "yes":
            page.keyboard.press("\\")
        grid = until(lambda: (now := shown(page))["start"] == "yes" and now)
        assert {state for _, state in grid["tiles"]} == {"present"} and len(grid["tiles"]) == 24
        for place in (number, 12, 20, 20):
            page.keyboard.press(TILE_KEYS[place])
            if place == 12:
                page.keyboard.press("u")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press(" ")
        marked = shown(page)
        assert marked["tiles"][12][1] == "unsure", "U is about the tile that was touched last"
        assert marked["tiles"][20][1] == "present", "a second press is as it began"
        assert marked["tiles"][22][1] == "absent", "two to the right of the tile that was pressed last"
        book.append(cells(marked))
        after(page, "Enter", grid["id"])
    wait_until_saved(page, 5)
    assert saved(many, "Keys") == book
    rows = decided(many, "Keys")
    assert {row["source"] for row in rows} == {"grid"} and {row["class_id"] for row in rows} == {1}
    assert all(row["milliseconds"] is not None for row in rows)
    assert len({image for one in book for image, _ in one}) == 120, "no image twice"
    assert page.troubles == []


@pytest.mark.slow
def test_fast_key_presses_save_each_grid_as_shown(browser, many):
    page = open_grid(browser, many, "Burst")
    seen = page.evaluate(
        """async (shown) => {
          const now = eval(shown);
          const seen = [];
          const pause = (ms) => new Promise((done) => setTimeout(done, ms));
          for (let number = 0; number < 48; number += 1) {
            const before = now();
            const key = number % 4 === 3 ? "Enter" : String(number % 4 + 1);
            const press = { key, code: key === "Enter" ? key : `Digit${key}`, bubbles: true, composed: true };
            if (key === "Enter") await pause(320);
            document.body.dispatchEvent(new KeyboardEvent("keydown", press));
            document.body.dispatchEvent(new KeyboardEvent("keyup", press));
            if (key === "Enter" && before && now()?.id !== before.id) seen.push(before);
            await pause(20);
          }
          return seen;
        }""",
        SHOWN,
    )
    assert len(seen) >= 4, "the grids in hand, at the least, are decided without a pause"
    wait_until_saved(page, len(seen))
    assert saved(many, "Burst") == [cells(grid) for grid in seen]
    assert len({image for grid in seen for image, _ in grid["tiles"]}) == 24 * len(seen)


@pytest.mark.slow
def test_enter_key_held_down_saves_only_one_grid(browser, many):
    page = open_grid(browser, many, "Held")
    page.keyboard.down("Enter")
    for _ in range(10):
        page.keyboard.down("Enter")  # pressed again while it is down: the browser calls it a repeat
    page.keyboard.up("Enter")
    wait_until_saved(page, 1)
    assert len(saved(many, "Held")) == 1


@pytest.mark.slow
def test_undo_restores_a_whole_grid_with_its_marks_and_redo_saves_it_again(browser, many):
    page = open_grid(browser, many, "Undo")
    first = shown(page)
    for key in "13u":
        page.keyboard.press(key)
    first = shown(page)
    second = after(page, "Enter", first["id"])
    third = after(page, "Enter", second["id"])
    page.keyboard.press("Backspace")
    assert until(lambda: (now := shown(page))["id"] == second["id"] and now) == second
    page.keyboard.press("Control+z")
    assert until(lambda: (now := shown(page))["id"] == first["id"] and now) == first
    wait_until_saved(page, 4)
    assert labels_of(many, first["tiles"][0][0]) == {}, "all of it is taken back"
    page.keyboard.press("Shift+Backspace")
    until(lambda: shown(page)["id"] == second["id"])
    page.keyboard.press("Control+y")
    until(lambda: shown(page)["id"] == third["id"])
    wait_until_saved(page, 6)
    assert saved(many, "Undo") == [cells(first), cells(second)]
    page.keyboard.press("Backspace")
    until(lambda: shown(page)["id"] == second["id"])
    page.keyboard.press("5")
    changed = shown(page)
    after(page, "Enter", second["id"])
    wait_until_saved(page, 8)
    assert saved(many, "Undo") == [cells(first), cells(changed)], "brought back, it can be corrected"


@pytest.mark.slow
def test_inverting_the_initial_state_of_a_grid_keeps_marked_tiles(browser, many):
    page = open_grid(browser, many, "Turn")
    page.get_by_role("button", name="Start with all No").click()
    page.keyboard.press("2")
    page.keyboard.press("3")
    page.keyboard.press("u")
    assert [state for _, state in shown(page)["tiles"][:4]] == ["absent", "present", "unsure", "absent"]
    page.keyboard.press("\\")
    assert [state for _, state in shown(page)["tiles"][:4]] == ["present", "present", "unsure", "present"]
    expect(page.locator(".decide")).to_contain_text("23 yes · 0 no · 1 unsure")


@pytest.mark.slow
def test_click_and_drag_mark_the_grid_tiles_they_cover(browser, many):
    page = open_grid(browser, many, "Mouse")
    tiles = page.locator(".tile")
    if shown(page)["start"] == "yes":
        page.keyboard.press("\\")
    tiles.nth(0).click()
    tiles.nth(9).click()
    tiles.nth(9).click()
    tiles.nth(9).click()
    page.keyboard.press("u")
    middle = [tiles.nth(place).bounding_box() for place in (2, 5)]
    page.mouse.move(middle[0]["x"] + 60, middle[0]["y"] + 60)
    page.mouse.down()
    page.mouse.move(middle[1]["x"] + 60, middle[1]["y"] + 60, steps=12)
    page.mouse.up()
    states = [state for _, state in shown(page)["tiles"]]
    assert states[:6] == ["present", "absent", "present", "present", "present", "present"]
    assert states[9] == "unsure" and set(states[10:]) == {"absent"}
    marked = shown(page)
    page.get_by_role("button", name="Save all").click()
    wait_until_saved(page, 1)
    assert saved(many, "Mouse") == [cells(marked)]


def states_of(page: Page, count: int) -> list[str]:
    return [state for _, state in shown(page)["tiles"][:count]]


@pytest.mark.slow
def test_second_key_press_or_click_resets_a_grid_tile_and_u_toggles_unsure(browser, many):
    page = open_grid(browser, many, "Slips")
    if shown(page)["start"] == "yes":
        page.keyboard.press("\\")
    tiles = page.locator(".tile")
    page.keyboard.press("1")
    page.keyboard.press("1")
    tiles.nth(1).click()
    tiles.nth(1).click()
    assert states_of(page, 3) == ["absent", "absent", "absent"]
    page.keyboard.press("1")
    page.keyboard.press("u")
    assert states_of(page, 3) == ["unsure", "absent", "absent"], "the pointer rests on 2, but 1 was touched last"
    page.keyboard.press("u")
    assert states_of(page, 3) == ["present", "absent", "absent"], "as it was before"
    tiles.nth(2).hover()
    page.keyboard.press("u")
    assert states_of(page, 3) == ["present", "absent", "unsure"], "what the pointer has come to"
    page.keyboard.press("3")
    assert states_of(page, 3) == ["present", "absent", "present"], "the opposite of what it was before"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("u")
    assert states_of(page, 3) == ["present", "unsure", "present"], "what was moved to"
    expect(tiles.nth(1).locator(".mark")).to_have_attribute("aria-pressed", "mixed")
    page.keyboard.press("PageUp")
    page.keyboard.press("u")
    page.keyboard.press("PageDown")
    assert states_of(page, 3) == ["present", "absent", "present"], "enlarged, it is the same key"


@pytest.mark.slow
def test_long_mouse_press_marks_a_grid_tile_unsure_and_a_slow_drag_does_not(browser, many):
    page = open_grid(browser, many, "Holding")
    if shown(page)["start"] == "yes":
        page.keyboard.press("\\")
    tiles = page.locator(".tile")
    middles = [
        (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        for box in map(Locator.bounding_box, tiles.all()[:6])
    ]
    page.mouse.move(*middles[0])
    page.mouse.down()
    expect(tiles.nth(0)).to_have_class(re.compile("held"))
    until(lambda: states_of(page, 1) == ["unsure"])
    page.mouse.up()
    expect(tiles.nth(0)).not_to_have_class(re.compile("held"))
    assert states_of(page, 2) == ["unsure", "absent"], "no click comes after it"
    page.mouse.move(*middles[2])
    page.mouse.down()
    until(lambda: states_of(page, 3)[2] == "unsure")
    page.mouse.move(*middles[4], steps=8)
    page.mouse.up()
    assert states_of(page, 6) == ["unsure", "absent", "present", "present", "present", "absent"]
    grid = shown(page)
    page.mouse.move(*middles[5])
    page.mouse.down()
    after(page, "Enter", grid["id"])
    page.evaluate(HELD_LONG)
    page.mouse.move(*middles[4])
    page.mouse.up()
    assert set(states_of(page, 24)) == {"absent"}, "what came to lie under the pointer was not meant"
    page.keyboard.press("Backspace")  # the others find the classes as they were
    wait_until_saved(page, 2)


@pytest.mark.slow
def test_tap_marks_a_grid_tile_and_touch_hold_and_drag_marks_several(browser, many):
    page = open_grid(browser, many, "Thumb", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    if shown(page)["start"] == "yes":
        page.get_by_role("button", name="Start with all No").tap()
    tiles = page.locator(".tile")
    tiles.nth(1).locator(".mark").tap(position={"x": 60, "y": 40})
    assert [state for _, state in shown(page)["tiles"][:3]] == ["absent", "present", "absent"]
    hand = page.context.new_cdp_session(page)
    boxes = [tiles.nth(place).bounding_box() for place in (3, 4, 5)]
    points = [{"x": box["x"] + 60, "y": box["y"] + 50} for box in boxes]
    hand.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points[:1]})
    until(lambda: shown(page)["tiles"][3][1] == "present")
    for point in points[1:]:
        hand.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    hand.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert [state for _, state in shown(page)["tiles"][3:7]] == ["present", "present", "present", "absent"]
    rest = [{"x": boxes[0]["x"] + 60, "y": boxes[0]["y"] + 50}]
    hand.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": rest})
    until(lambda: shown(page)["tiles"][3][1] == "unsure")
    hand.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert [state for _, state in shown(page)["tiles"][3:5]] == ["unsure", "present"], "held, and no tap after it"


@pytest.mark.slow
def test_grid_class_and_size_are_chosen_by_keys_and_survive_a_reload(browser, many):
    page = open_grid(browser, many, "Chooser")
    before = shown(page)
    page.keyboard.press("/")
    page.keyboard.type("rdfx")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    until(lambda: shown(page)["id"] != before["id"])
    expect(page.get_by_role("heading", level=2)).to_contain_text("red fox")
    large = shown(page)
    page.keyboard.press("q")
    marked = shown(page)
    page.keyboard.press("+")
    assert shown(page) == marked, "what is on screen stays, with its marks"
    wait_until_saved(page, 0)
    smallest = page.locator(".tiles .tile").evaluate_all(
        "(tiles) => Math.min(...tiles.map((tile) => tile.offsetHeight))"
    )
    assert smallest >= 150
    small = after(page, "Enter", large["id"])
    assert 12 <= len(small["tiles"]) < 24
    wait_until_saved(page, 1)
    page.reload()
    page.locator(GRID).wait_for()
    expect(page.get_by_role("heading", level=2)).to_contain_text("red fox")
    again = shown(page)
    assert len(again["tiles"]) == len(small["tiles"])
    page.keyboard.press(".")
    now = until(lambda: (now := shown(page))["id"] != again["id"] and now)
    expect(page.get_by_role("heading", level=2)).not_to_contain_text("red fox")
    after(page, "Enter", now["id"])
    wait_until_saved(page, 1)
    assert decided(many, "Chooser")[-1]["class_id"] in {1, 2, 3}


@pytest.mark.slow
def test_grid_shows_most_probable_images_first_and_starts_with_yes_when_most_are_expected(browser, ranked):
    page = open_grid(browser, ranked, "Ann")
    expect(page.get_by_role("heading", level=2)).to_contain_text("fox")
    expect(page.locator(".about")).to_have_text("About 23 of 24 expected")
    first = shown(page)
    assert first["start"] == "yes" and [image for image, _ in first["tiles"]] == list(range(1, 25))
    expect(page.locator(".tiles .tile[data-guess]")).to_have_count(24)
    expect(page.locator(".decide")).to_contain_text("24 yes · 0 no · 24 guessed")
    page.keyboard.press("2")
    expect(page.locator(".decide")).to_contain_text("23 yes · 1 no · 23 guessed")
    marks = page.locator(".tiles:not(.skeleton) .mark")
    expect(marks.nth(0)).to_have_attribute("aria-label", re.compile(": yes, guessed$"))
    expect(marks.nth(1)).to_have_attribute("aria-label", re.compile(": no$"))
    assert [marks.nth(place).evaluate("(one) => getComputedStyle(one).borderStyle") for place in (0, 1)] == [
        "dashed",
        "solid",
    ]
    second = after(page, "Enter", first["id"])
    after(page, "Enter", second["id"])
    expect(page.locator(".progress").first).to_contain_text("47 present · 1 absent · 72 unanswered")
    page.keyboard.press("/")
    rows = page.get_by_role("option")
    expect(rows.nth(2)).to_contain_text("deer")
    expect(page.locator("[role=option][data-class='1']")).to_contain_text("47 present")
    page.keyboard.press("Escape")
    page.keyboard.press(".")
    expect(page.get_by_role("heading", level=2)).to_contain_text("heron")
    heron = shown(page)
    assert {image for image, _ in heron["tiles"]} <= set(range(91, 121))
    wait_until_saved(page, 2)
    row = decided(ranked, "Ann")[0]
    assert row["run_id"] and row["score"] == pytest.approx(0.99, abs=0.01)


@pytest.mark.slow
def test_grid_tile_is_enlarged_marked_and_closed_by_keys(browser, many):
    page = open_grid(browser, many, "Large")
    if shown(page)["start"] != "yes":
        page.keyboard.press("\\")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageUp")
    large = page.get_by_role("dialog", name="One image of the grid")
    expect(large.locator(f"img[data-image='{shown(page)['tiles'][1][0]}']")).to_be_visible()
    page.keyboard.press(" ")
    expect(large.get_by_role("button", name="No", exact=True)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowRight")
    large.get_by_role("button", name="Unsure").click()
    page.keyboard.press("Enter")
    remark(page, "of the enlarged tile")
    page.keyboard.press("PageDown")
    expect(large).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    remark(page, "of the selected tile")
    grid = shown(page)["tiles"]
    assert [state for _, state in grid[:4]] == ["present", "absent", "unsure", "present"]
    wait_until_saved(page, 2)
    told = [(row["image_id"], row["note"]) for row in decided(many, "Large")]  # Enter is about a grid that is seen
    assert told == [(grid[2][0], "of the enlarged tile"), (grid[1][0], "of the selected tile")]


def remark(page: Page, note: str) -> None:
    """A comment in the history of a tile."""
    page.keyboard.press(";")
    page.locator(".history[open]").wait_for()
    page.keyboard.type(note)
    page.keyboard.press("Enter")
    page.locator(".history li", has_text=note).wait_for()
    page.keyboard.press("Escape")
    expect(page.locator(".history")).to_be_hidden()


@pytest.mark.slow
def test_heatmap_covers_the_tile_under_the_pointer_or_cursor_while_shift_is_held(browser, ranked):
    paths = Database(ranked.project).paths
    paths.heatmap(1, 1, 1).parent.mkdir(parents=True, exist_ok=True)
    for image in range(1, 25):
        Image.new("RGBA", (16, 12), (200, 40, 20, 120)).save(paths.heatmap(1, image, 1))
    # They may show the second class on all images but four.
    paths.heatmap_findings(1, 1).write_text(json.dumps({str(image): 2 * (image > 4) for image in range(1, 25)}))
    page = open_grid(browser, ranked, "Ann")
    grid = shown(page)
    heat = page.locator(".tile:has(.heatmap)")
    page.keyboard.press("ArrowRight")
    expect(heat).to_have_count(0)
    page.keyboard.down("Shift")
    expect(heat).to_have_attribute("data-image", str(grid["tiles"][1][0]))
    page.keyboard.up("Shift")
    expect(heat).to_have_count(0)
    with page.expect_response("**/api/heatmap/**"):  # fetched for a pointer that rests, and not shown
        page.locator(".tile").nth(7).hover()
    page.keyboard.press("F2")
    expect(heat).to_have_count(0)
    page.keyboard.down("Shift")
    expect(heat).to_have_attribute("data-image", str(grid["tiles"][7][0]))
    page.locator(".tile").nth(8).hover()
    expect(heat).to_have_attribute("data-image", str(grid["tiles"][8][0]))
    expect(page.locator(".words")).to_contain_text("Early heat map: learned from 0 images with this class")
    assert grid["tiles"][8][0] > 4
    name = Database(ranked.project).value("SELECT name FROM class WHERE id = 2")
    beside = f"May show '{name}', which often stands beside it. 20 of 24 heat maps of this class may show another one."
    expect(page.locator(".words")).to_contain_text(beside)
    page.keyboard.up("Shift")
    expect(heat).to_have_count(0)
    expect(page.locator(".words")).to_be_empty()
    page.keyboard.press("PageUp")
    page.keyboard.down("Shift")
    expect(page.locator(".enlarged .heatmap")).to_be_visible()
    expect(page.locator(".enlarged")).to_contain_text("Early heat map")
    page.keyboard.up("Shift")
    expect(page.locator(".enlarged .heatmap")).to_have_count(0)
    assert page.troubles == []


@pytest.mark.slow
def test_grids_of_two_annotators_never_show_the_same_labels(browser, many):
    people = [open_grid(browser, many, name) for name in ("Ada", "Bea")]
    images_of = [set(), set()]
    for _ in range(3):
        for page, mine in zip(people, images_of, strict=True):
            grid = shown(page)
            mine.update(image for image, _ in grid["tiles"])
            after(page, "Enter", grid["id"])
    assert len(images_of[0]) == len(images_of[1]) == 72
    assert not images_of[0] & images_of[1]
    for page in people:
        wait_until_saved(page, 3)


@pytest.mark.slow
def test_every_grid_is_stored_once_despite_lost_network_server_kill_and_reload(browser, tmp_path):
    with served_photos(tmp_path, 300, ["fox", "heron"]) as served:
        page = open_grid(browser, served, "Ann")
        page.wait_for_load_state("networkidle")
        book = []

        def decide(*keys: str) -> None:
            page.evaluate(DRAWN)
            looked_around(page)
            for key in keys:
                page.keyboard.press(key)
            grid = shown(page)
            book.append(cells(grid))
            page.keyboard.press("Enter")
            until(lambda: (page.evaluate(SHOWN) or {"id": ""})["id"] != grid["id"])

        decide("1")
        wait_until_saved(page, 1)
        page.context.set_offline(True)
        decide("2", "2")
        decide("3")
        expect(page.locator(".foot")).to_contain_text("2 unsent")
        page.context.set_offline(False)
        wait_until_saved(page, 3)
        page.wait_for_load_state("networkidle")
        served.kill()
        decide("4")
        expect(page.locator(".foot")).to_contain_text("Nothing is lost")
        served.start()
        page.reload()  # with a grid that no server has seen
        page.locator(GRID).wait_for(timeout=60_000)
        wait_until_saved(page)
        decide("5")
        wait_until_saved(page)
        assert saved(served, "Ann") == book
        assert len({image for one in book for image, _ in one}) == 120
        page.keyboard.press("Backspace")
        page.keyboard.press("Backspace")
        expect(page.locator(".words")).to_contain_text("Undid: 24 answers for fox")
        wait_until_saved(page)
        assert saved(served, "Ann") == book[:-2], "undo reaches back over a reload"


@pytest.mark.slow
def test_two_tabs_of_one_annotator_answer_different_grids(browser, many):
    first = open_grid(browser, many, "Tabs")
    second = first.context.new_page()
    second.goto(many.address + "/grid")
    second.locator(GRID).wait_for(timeout=60_000)
    grids = [shown(first), shown(second)]
    for tab, grid in ((first, grids[0]), (second, grids[1])):
        tab.bring_to_front()
        after(tab, "Enter", grid["id"])
    until(lambda: len(saved(many, "Tabs")) == 2)
    assert sorted(saved(many, "Tabs")) == sorted(cells(grid) for grid in grids)
    assert not {image for image, _ in grids[0]["tiles"]} & {image for image, _ in grids[1]["tiles"]}


@pytest.mark.slow
def test_grid_shows_and_answers_a_map_selection_until_it_is_left(browser, ranked):
    db = Database(ranked.project)
    chosen = [3, 50, 70, 100, 115]
    path = f"/grid?selection={selections.save(db, np.array(chosen))}"
    page = open_grid(browser, ranked, "Ann", path)
    expect(page.get_by_text("5 images selected")).to_be_visible()
    grid = shown(page)
    assert sorted(image for image, _ in grid["tiles"]) == chosen
    page.keyboard.press("1")
    marked = shown(page)
    looked_around(page)
    page.keyboard.press("Enter")
    wait_until_saved(page, 1)
    assert saved(ranked, "Ann") == [cells(marked)]
    page.get_by_role("button", name="Leave the selection").first.click()
    until(lambda: (now := page.evaluate(SHOWN)) and len(now["tiles"]) == 24)
    expect(page.get_by_text("images selected")).to_be_hidden()
    assert "selection" not in page.url
    browser.give_back(page.context)
    second = open_grid(browser, ranked, "Dan", path)
    best = shown(second)
    second.keyboard.press("/")
    second.keyboard.type("fox")
    again = after(second, "Enter", best["id"])
    looked_around(second)
    second.keyboard.press("Enter")
    wait_until_saved(second, 1)
    assert saved(ranked, "Dan") == [cells(again)], "that one more person sees it so is a decision of theirs"
    assert {row["score"] for row in decided(ranked, "Dan")} == {None}


@pytest.mark.slow
def test_grid_excludes_an_unreadable_image_from_the_saved_answers(browser, tmp_path):
    with served_photos(tmp_path, 24, ["fox"]) as served:
        gone = images.load_all_images(Database(served.project))[4]
        Path(tmp_path / "photos" / gone.name).unlink()
        page = open_grid(browser, served, "Ann")
        expect(page.locator(f".tile[data-image='{gone.id}']")).to_have_attribute("data-state", "broken")
        looked_around(page)
        page.keyboard.press("Enter")
        wait_until_saved(page, 1)
        (batch,) = saved(served, "Ann")
        assert len(batch) == 23 and gone.id not in {image for image, _ in batch}
        page.get_by_text("Nothing left to answer for this class").wait_for()


@pytest.mark.slow
def test_streamlit_shortcuts_are_disabled_on_the_grid(browser, many):
    page = open_grid(browser, many, "Rc")
    before = shown(page)
    page.keyboard.press("c")
    page.keyboard.press("r")
    expect(page.get_by_text("Clear cache")).to_have_count(0)
    assert shown(page)["id"] == before["id"]


@pytest.mark.slow
def test_preloaded_next_grid_is_hidden_and_not_focusable(browser, many):
    page = open_grid(browser, many, "Ready")
    ahead = page.locator(".ahead")
    expect(ahead).to_have_count(1)
    expect(ahead).to_have_attribute("aria-hidden", "true")
    expect(ahead.locator("button:not([tabindex='-1'])")).to_have_count(0)
    first, coming = shown(page), ahead.get_attribute("data-grid")
    box = page.locator(".tile").nth(7).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert shown(page)["tiles"][7][1] != first["tiles"][7][1], "the pointer meets what is on screen"
    assert after(page, "Enter", first["id"])["id"] == coming
    until(lambda: ahead.count() == 1 and ahead.get_attribute("data-grid") not in {first["id"], coming})
    assert after(page, "Backspace", coming)["id"] == first["id"]
    until(lambda: ahead.count() == 1 and ahead.get_attribute("data-grid") == coming)
    expect(page.locator(GRID)).to_have_count(1)
    expect(page.locator(f"{GRID} button[tabindex='0']")).to_have_count(1)


@pytest.mark.slow
def test_save_all_button_on_a_phone_shows_how_many_tiles_are_below_the_screen(browser, many):
    page = open_grid(browser, many, "Scroller", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    button = page.get_by_role("button", name="Save all")
    expect(button).to_contain_text(re.compile(r"Save all · \d+ below"))
    page.locator(".tile").last.scroll_into_view_if_needed()
    page.mouse.wheel(0, 2000)
    expect(button).not_to_contain_text("below")
    button.tap()
    expect(button).to_contain_text("below")  # the next grid begins at its top
