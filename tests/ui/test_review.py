"""Review in a real Chromium: each key is about the suggestion selected and the image on screen, whatever happens."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
from harness.browser import open_by_menu
from harness.person import (
    decided,
    labels_of,
    looked,
    looked_around,
    on_screen,
    open_page,
    wait_for_another,
    wait_for_picture,
    wait_until_fetched,
    wait_until_saved,
)
from harness.review_page import IN_PAGE, NAMES, answers, open_review, reviewed, selected, three_each
from harness.served import Served, until
from playwright.sync_api import Page, expect

from annotator.records import Decision
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.relations import declared_relations
from annotator.store.relations.relation_edits import AT_MOST_ONE, Declaration

pytestmark = pytest.mark.browser

STATES = {"y": 1, "n": -1, "u": 0}


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Iterator[Served]:
    """An app with 300 tiny images and 900 suggestions; each test is somebody else."""
    with reviewed(tmp_path_factory.mktemp("many"), three_each(300)) as served:
        yield served


def go_to_an_image_with(page: Page, count: int) -> None:
    """Past images of which others have answered so much that fewer suggestions are left."""
    while page.locator(".suggestion").count() < count:
        image_id = on_screen(page)
        page.keyboard.press(" ")
        wait_for_another(page, image_id)


@pytest.mark.slow
def test_keyboard_answers_to_a_hundred_suggestions_are_stored_as_pressed(browser, many):
    page = open_review(browser, many, "Keys")
    book: dict[int, dict[int, int]] = {}
    pressed = 0
    for number in range(100):
        if number % 9 == 4:
            page.keyboard.press("ArrowDown")
        if number % 11 == 5:
            page.keyboard.press("2")
        if number % 13 == 6:
            page.keyboard.press(" ")
        image_id, class_id = selected(page)
        key = "ynyuyn"[number % 6]
        page.keyboard.press(key)
        pressed += 1
        book.setdefault(image_id, {})[class_id] = STATES[key]
        if number % 10 == 7:
            page.keyboard.press("Backspace")
            assert selected(page) == (image_id, class_id), "what was taken back is selected again"
            page.keyboard.press("Shift+Backspace" if number % 20 == 7 else "n")
            pressed += 2
            book[image_id][class_id] = STATES[key] if number % 20 == 7 else -1
    wait_until_saved(page, pressed)
    assert {image_id: labels_of(many, image_id) for image_id in book} == book
    rows = [row for row in decided(many, "Keys") if row["action"] == "label"]
    assert all(row["source"] == "suggestion" and row["run_id"] and 0.5 < row["score"] <= 1 for row in rows)
    assert page.troubles == []


@pytest.mark.slow
def test_answers_20_ms_apart_apply_to_the_suggestion_selected_at_each_press(browser, many):
    page = open_review(browser, many, "Burst")
    seen = page.evaluate(
        f"""async () => {{
          {IN_PAGE}
          const seen = [];
          let next = performance.now();
          for (let number = 0; number < 60; number += 1) {{
            const key = "nyu"[number % 3];
            while (!one(".suggestion.selected") || !one(".stage img[data-image]")) {{
              await new Promise((done) => setTimeout(done, 20));  // a slow machine's server is behind
            }}
            const image = Number(one(".stage img[data-image]")?.dataset.image);
            seen.push([image, Number(one(".suggestion.selected")?.dataset.class), [-1, 1, 0][number % 3]]);
            const press = {{ key, code: `Key${{key.toUpperCase()}}`, bubbles: true, composed: true }};
            document.body.dispatchEvent(new KeyboardEvent("keydown", press));
            document.body.dispatchEvent(new KeyboardEvent("keyup", press));
            next += 20;
            await new Promise((done) => setTimeout(done, Math.max(0, next - performance.now())));
          }}
          return seen;
        }}"""
    )
    wait_until_saved(page, 60)
    assert answers(many, "Burst") == seen
    assert len({(image_id, class_id) for image_id, class_id, _ in seen}) == 60


@pytest.mark.slow
def test_review_accept_all_above_the_threshold_stores_one_batch_that_one_undo_reverts(browser, tmp_path):
    chances = np.full((4, 5), 0.1)
    chances[:, :4] = [0.97, 0.95, 0.85, 0.6]
    with reviewed(tmp_path, chances) as served:
        page = open_review(browser, served, "Ann")
        image_id = on_screen(page)
        expect(page.get_by_role("button", name="Accept all above 90 % (2)")).to_be_visible()
        looked_around(page)
        page.keyboard.press("a")
        expect(page.locator(".suggestion[data-given=present]")).to_have_count(2)
        assert selected(page) == (image_id, 3)
        wait_until_saved(page, 1)
        assert labels_of(served, image_id) == {1: 1, 2: 1}
        assert len({row["batch"] for row in decided(served, "Ann")}) == 1
        page.keyboard.press("Backspace")
        expect(page.locator(".suggestion[data-given=present]")).to_have_count(0)
        wait_until_saved(page, 2)
        assert labels_of(served, image_id) == {}
        page.get_by_label("Threshold:").fill("80")
        looked_around(page)
        page.keyboard.press("a")
        page.keyboard.press("n")
        wait_for_another(page, image_id)
        wait_until_saved(page, 4)
        assert labels_of(served, image_id) == {1: 1, 2: 1, 3: 1, 4: -1}


@pytest.mark.slow
def test_enter_in_review_completes_the_image_and_space_leaves_it_unchanged(browser, many):
    page = open_review(browser, many, "Done")
    passed = on_screen(page)
    left = labels_of(many, passed)
    page.keyboard.press(" ")
    wait_for_another(page, passed)
    image_id, class_id = selected(page)
    known = labels_of(many, image_id)
    page.keyboard.press("y")
    looked_around(page)
    page.keyboard.press("Enter")
    wait_for_another(page, image_id)
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".known")).to_contain_text("complete")
    wait_until_saved(page, 2)
    assert labels_of(many, image_id) == dict.fromkeys(range(1, 6), -1) | known | {class_id: 1}
    assert labels_of(many, passed) == left


@pytest.mark.slow
def test_class_filter_survives_a_reload_and_can_be_cleared(browser, many):
    page = open_review(browser, many, "Filter")
    page.keyboard.press("f")
    page.keyboard.type("her")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Class", exact=True)).to_have_value("heron")
    expect(page.locator(".suggestion .name")).to_have_text(["heron"])
    page.reload()
    wait_for_picture(page)
    for _ in range(3):
        looked(page)
        image_id, class_id = selected(page)
        assert class_id == 2
        page.keyboard.press("y")
        wait_for_another(page, image_id)
    page.get_by_label("From", exact=True).fill("99")
    page.get_by_label("From", exact=True).press("Enter")
    expect(page.locator(".empty")).to_contain_text("No more suggestions")
    page.locator(".empty").get_by_role("button", name="Clear filter").click()
    wait_for_picture(page)
    expect(page.locator(".suggestion").nth(1)).to_be_visible()
    expect(page.get_by_label("From", exact=True)).to_have_value("50")
    wait_until_saved(page, 3)


@pytest.mark.slow
def test_likely_mistake_names_the_earlier_answer_and_a_new_answer_replaces_it(browser, tmp_path):
    chances = np.full((3, 5), 0.1)
    chances[0, 1] = 0.97
    given = [
        Decision("ben-said-absent", "label", "Ben", "click", 1, 2, -1),
        Decision("ben-said-so", "label", "Ben", "click", 2, 3, -1),
    ]
    with reviewed(tmp_path, chances, given) as served:
        page = open_page(browser, served, "Ann")
        open_by_menu(page, "Review")
        expect(page.locator(".empty")).to_contain_text("No more suggestions")
        page.get_by_role("button", name="Likely mistakes").click()
        expect(page.locator(".suggestion")).to_contain_text("Ben said absent; model: 97 %")
        assert selected(page) == (1, 2)
        page.get_by_role("button", name="Present", exact=False).last.click()
        wait_until_saved(page, 1)
        assert labels_of(served, 1) == {2: 1}
        expect(page.locator(".empty")).to_be_visible()


@pytest.mark.slow
def test_disagreement_names_the_annotators_and_a_third_answer_resolves_it(browser, tmp_path):
    given = [
        Decision("ann-said-so", "label", "Ann", "click", 2, 3, 1),
        Decision("ben-said-no", "label", "Ben", "click", 2, 3, -1),
    ]
    with reviewed(tmp_path, np.full((3, 5), np.nan), given) as served:
        page = open_page(browser, served, "Cid", "/review")
        page.get_by_role("button", name="People disagree").click()
        expect(page.locator(".suggestion")).to_contain_text("Ann said present, ")
        expect(page.locator(".suggestion")).to_contain_text("Ben said absent, ")
        wait_for_picture(page)
        page.keyboard.press("y")
        wait_until_saved(page, 1)
        assert labels_of(served, 2) == {3: 1}
        assert decided(served, "Cid")[0]["source"] == "settlement"
        assert decided(served, "Cid")[0]["score"] is None, "the model had learned the answers: no test of it"
        expect(page.locator(".empty")).to_contain_text("No disagreements here")
        page.get_by_role("button", name="Undo").click()
        expect(page.locator(".suggestion")).to_contain_text("Ben said absent")


@pytest.mark.slow
def test_disagreement_shows_answer_times_and_hides_the_prediction_until_requested(browser, tmp_path):
    given = [
        Decision("ann-said-so", "label", "Ann", "click", 2, 3, 1, milliseconds=1234),
        Decision("ben-said-no", "label", "Ben", "click", 2, 3, -1),
    ]
    with reviewed(tmp_path, np.full((3, 5), 0.9), given) as served:
        page = open_page(browser, served, "Rita", "/review?settle=1")
        row = page.locator(".suggestion")
        expect(row).to_contain_text(re.compile(r"Ann said present, .+ \d\d:\d\d, after 1\.2 s"))
        expect(row).to_contain_text(re.compile(r"Ben said absent, .+ \d\d:\d\d"))
        wait_for_picture(page)
        wait_until_fetched(page)
        expect(row).not_to_contain_text("%")
        assert page.locator(".stage .heatmap").evaluate_all("all => all.every((one) => one.style.opacity === '0')")
        page.keyboard.press("m")
        expect(row).to_contain_text("model: 90")
        expect(page.get_by_role("button", name="What does the model think?")).to_be_hidden()
        page.keyboard.press("n")
        wait_until_saved(page, 1)
        assert decided(served, "Rita")[0]["source"] == "settlement" and labels_of(served, 2)[3] == -1


@pytest.mark.slow
def test_heat_map_of_the_selected_suggestion_is_shown_within_two_frames(browser, many):
    page = open_review(browser, many, "Looker")
    go_to_an_image_with(page, 2)
    count = page.locator(".suggestion").count()
    expect(page.locator(".stage .heatmap")).to_have_count(count)
    for key in "2121":
        shown = page.evaluate(
            f"""async (key) => {{
              {IN_PAGE}
              const press = {{ key, code: `Digit${{key}}`, bubbles: true, composed: true }};
              document.body.dispatchEvent(new KeyboardEvent("keydown", press));
              const frame = () => new Promise((done) => requestAnimationFrame(done));
              await frame();
              await frame();
              const seen = [...host.shadowRoot.querySelectorAll(".heatmap")];
              const strong = seen.filter((one) => Number(getComputedStyle(one).opacity) > 0.2);
              return [strong.map((one) => one.dataset.class), one(".suggestion.selected").dataset.class];
            }}""",
            key,
        )
        assert shown[0] == [shown[1]]
    page.keyboard.press("h")
    until(lambda: page.locator(".heatmap").evaluate_all("all => all.every((one) => one.style.opacity === '0')"))


@pytest.mark.slow
def test_review_does_not_select_a_suggestion_that_moves_under_a_resting_mouse_pointer(browser, many):
    page = open_review(browser, many, "Mouse")
    go_to_an_image_with(page, 3)
    box = page.locator(".suggestion").nth(2).bounding_box()
    page.mouse.move(box["x"] + 40, box["y"] - 20)
    page.mouse.move(box["x"] + 40, box["y"] + 20, steps=4)
    expect(page.locator(".suggestion").nth(2)).to_have_class("suggestion selected")
    image_id = on_screen(page)
    for _ in range(3):
        looked(page)
        page.keyboard.press("y")
    wait_for_another(page, image_id)
    page.wait_for_load_state("networkidle")
    expect(page.locator(".suggestion").nth(0)).to_have_class("suggestion selected")
    wait_until_saved(page, 3)


@pytest.mark.slow
def test_swipe_right_accepts_and_swipe_left_rejects_the_suggestion(browser, many):
    page = open_review(browser, many, "Finger", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    go_to_an_image_with(page, 3)
    touch = page.context.new_cdp_session(page)
    expected = []
    for way, state, words in ((1, 1, "Accept"), (-1, -1, "Reject")):
        looked(page)
        image_id, class_id = selected(page)
        box = page.locator(".stage").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

        def finger(kind: str, *places: tuple[float, float]) -> None:
            points = [{"x": place[0], "y": place[1]} for place in places]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        finger("touchStart", (x, y))
        for step in range(1, 8):
            finger("touchMove", (x + way * step * 18, y))
        expect(page.locator(".swipe")).to_contain_text(f"{words}: {NAMES[class_id - 1]}")
        finger("touchEnd")
        expected.append([image_id, class_id, state])
        expect(page.locator(f".suggestion[data-class='{class_id}']")).not_to_have_attribute("data-given", "")
    wait_until_saved(page, 2)
    assert answers(many, "Finger") == expected


def test_undo_works_after_a_reload_and_restores_the_suggestion(browser, many):
    page = open_review(browser, many, "Back")
    first = selected(page)
    known = labels_of(many, first[0])
    page.keyboard.press("n")
    page.keyboard.press(" ")
    wait_for_another(page, first[0])
    wait_until_saved(page, 1)
    page.reload()
    wait_for_picture(page)
    page.wait_for_load_state("networkidle")
    page.keyboard.press("Backspace")
    expect(page.locator(f".stage img[data-image='{first[0]}']")).to_have_count(1)
    expect(page.locator(".words")).to_contain_text(f"Undid: {NAMES[first[1] - 1]}")
    expect(page.locator(f".suggestion[data-class='{first[1]}']")).to_have_attribute("data-given", "")
    wait_until_saved(page, 1)
    assert labels_of(many, first[0]) == known
    page.keyboard.press("Control+y")
    wait_until_saved(page, 2)
    assert labels_of(many, first[0]) == known | {first[1]: -1}


@pytest.mark.slow
def test_review_answers_are_stored_once_despite_lost_network_server_kill_and_reload(browser, tmp_path):
    with reviewed(tmp_path, three_each(40)) as served:
        page = open_review(browser, served, "Ann")
        expected = []

        def press(count: int) -> None:
            for _ in range(count):
                key = "yn"[len(expected) % 2]
                expected.append([*selected(page), STATES[key]])
                page.keyboard.press(key)

        press(4)
        wait_until_saved(page, 4)
        page.context.set_offline(True)
        press(4)
        expect(page.locator(".foot")).to_have_attribute("data-waiting", "4")
        page.context.set_offline(False)
        wait_until_saved(page, 8)
        served.kill()
        press(4)
        expect(page.locator(".foot")).to_contain_text("Nothing is lost")
        served.start()
        page.goto(served.address)
        page.get_by_test_id("stTopNavSection").first.wait_for(state="attached", timeout=60_000)
        page.goto(served.address + "/review")  # with four answers that no server has seen
        wait_for_picture(page)
        wait_until_saved(page)
        press(2)
        wait_until_saved(page)
        assert until(lambda: len(answers(served, "Ann")) >= 14 and answers(served, "Ann")) == expected


@pytest.mark.slow
def test_review_reports_an_answer_in_conflict_with_an_earlier_one_that_f8_undoes(browser, tmp_path):
    chances = np.full((3, len(NAMES)), 0.01)
    chances[:, :2] = [0.9, 0.8]
    with reviewed(tmp_path, chances) as served:
        db = Database(served.project)
        first, second = (class_.id for class_ in classes.load_active_classes(db)[:2])
        declared_relations.declare(db, [Declaration(AT_MOST_ONE, (first, second), "one")], "Ann")
        page = open_review(browser, served, "Ann")
        image, _ = selected(page)
        page.keyboard.press("y")
        expect(page.locator(".suggestion[data-given=present]")).to_have_count(1)
        looked(page)
        page.keyboard.press("y")
        expect(page.locator(".words")).to_contain_text(" present contradicts ")
        standing = "SELECT class_id, state FROM label WHERE image_id = ? ORDER BY class_id"
        until(lambda: db.tuples(standing, [image]) == [(first, 1), (second, 1)])
        page.keyboard.press("F8")
        until(lambda: db.tuples(standing, [image]) == [(second, 1)])
        page.keyboard.press("Control+z")
        until(lambda: db.tuples(standing, [image]) == [(first, 1), (second, 1)])
