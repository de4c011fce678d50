"""Presses that nobody meant, in a real Chromium: twice what was meant once, letters of a word, a key that is held."""

import re
import time
import uuid
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from harness.contexts import Contexts
from harness.grids import DRAWN, KIND, open_grid, saved, shown
from harness.person import (
    decided,
    labels_of,
    looked,
    looked_around,
    looked_through,
    on_screen,
    open_page,
    press_at,
    press_twice,
    record_frames,
    served_photos,
    wait_for_frame,
    wait_for_picture,
    wait_until_fetched,
    wait_until_saved,
)
from harness.projects import draw_heatmaps, publish_run
from harness.served import Served, until
from playwright.sync_api import Page, expect

from annotator.quality import audit_sampling
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions, image_overlap

pytestmark = pytest.mark.browser

# Keys: 1 to 9, 0, then the letters of the keyboard's rows: t of tent, j of jacket.
NAMES = ["fox", "heron", "deer", "owl", "hare", "boots", "hat", "bag", "belt", "scarf", "tent"]
LETTERS = "qwertyuiopasdfghjklzxcvbnm"
APART = (0.09, 0.15, 0.23)  # seconds
FIVE_A_SECOND = 0.2
SECOND = "ignored"  # said of a second press
UNSEEN = "Too soon to have seen all of it"
IGNORED = re.compile(f"{SECOND}|{UNSEEN}")
SELECTED = ".suggestion.selected"
SINGLE = ("reading", "image", "click")  # kinds of Autopilot's actions about one image


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Iterator[Served]:
    """An app with 400 tiny images and a class for each key; each test is somebody else."""
    lines = [*NAMES, *(f"jacket {letter}" for letter in LETTERS[1:])]
    with served_photos(tmp_path_factory.mktemp("many"), 400, lines) as served:
        yield served


@pytest.fixture
def ranked(tmp_path) -> Iterator[Served]:
    """An app with 150 images, 20 of them complete, three classes and a model that suggests two of them on each."""
    with served_photos(tmp_path, 150, ["fox", "heron", "deer"]) as served:
        db = Database(served.project)
        for image in images.load_all_images(db)[-20:]:
            decisions.save(db, [Decision(str(uuid.uuid4()), "done", "Bob", "done", image_id=image.id)])
        chances = np.tile([0.98, 0.8, 0.1], (150, 1))
        chances[:, 0] -= np.arange(150) / 1000
        draw_heatmaps(db, publish_run(db, chances), chances > 0.5)
        yield served


def at_a_beat(page: Page, keys: str, seconds: float = FIVE_A_SECOND) -> list[tuple[int, str]]:
    """Press these keys; for each the image that was on screen. Their times are what they should be, however busy the
    machine is."""
    due, seen = time.time(), []
    for name in keys:
        time.sleep(max(0.0, due - time.time()))
        seen.append((on_screen(page), name))
        press_at(page, name, due)
        due += seconds
    return seen


@pytest.mark.slow
def test_double_press_on_annotate_answers_only_the_displayed_image(browser, many):
    page = open_page(browser, many, "Twice")
    wait_for_picture(page)
    wait_until_fetched(page)
    ways = ["1", "Enter", " ", page.get_by_role("button", name="Nothing here: empty").first]
    ways += [page.locator(".class[data-class='2']")]
    seen = []
    for way in ways:
        for apart in APART:
            wait_until_fetched(page)
            looked_through(page)
            seen.append(on_screen(page))
            said = listen(page)
            press_twice(page, way, apart)
            until(lambda said=said: SECOND in said())
            assert on_screen(page) != seen[-1], "the first press counts"
    wait_until_saved(page, len(seen))
    assert [row["image_id"] for row in decided(many, "Twice")] == seen


@pytest.mark.slow
def test_double_enter_in_a_text_field_does_not_complete_the_image(browser, many):
    page = open_page(browser, many, "Fields")
    wait_for_picture(page)
    wait_until_fetched(page)
    looked(page)
    image = on_screen(page)
    page.keyboard.press("/")
    page.keyboard.type("owl")
    press_twice(page, "Enter", 0.15)
    looked(page)
    page.keyboard.press(",")
    page.keyboard.type("blurred")
    flagged = on_screen(page)
    press_twice(page, "Enter", 0.15)
    wait_until_saved(page, 2)
    rows = [(row["action"], row["image_id"], row["class_id"]) for row in decided(many, "Fields")]
    assert rows == [("label", image, 4), ("flag", flagged, None)]


@pytest.mark.slow
def test_held_key_on_a_button_answers_one_image(browser, many):
    page = open_page(browser, many, "Held")
    wait_for_picture(page)
    wait_until_fetched(page)
    looked(page)
    page.get_by_role("button", name="Nothing here: empty").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")  # reached by Tab, the button is pressed by Enter itself
    image = on_screen(page)
    for _ in range(8):
        page.keyboard.down("Enter")
        page.wait_for_timeout(60)
    page.keyboard.up("Enter")
    wait_until_saved(page, 1)
    assert [row["image_id"] for row in decided(many, "Held")] == [image]


@pytest.mark.slow
def test_double_press_protection_starts_when_a_slowly_rendered_image_appears(browser, many):
    page = open_page(browser, many, "Late")
    wait_for_picture(page)
    wait_until_fetched(page)
    looked(page)
    record_frames(page, 400)  # of a slow machine
    image, pressed = on_screen(page), time.time()
    page.keyboard.press("1")
    drawn = wait_for_frame(page, pressed)
    press_at(page, "1", drawn + 0.1)  # 500 ms after the first
    expect(page.locator("div.words")).to_contain_text(SECOND)
    wait_until_saved(page, 1)
    assert [row["image_id"] for row in decided(many, "Late")] == [image]
    looked(page)
    page.keyboard.press("1")
    wait_until_saved(page, 2)


@pytest.mark.slow
def test_rapid_label_keys_each_label_one_image_including_repeated_classes(browser, many):
    page = open_page(browser, many, "Quick")
    wait_for_picture(page)
    wait_until_fetched(page)
    looked(page)
    seen = at_a_beat(page, "123451234512345" + "1123345542211533")
    wait_until_saved(page, len(seen))
    assert [(row["image_id"], str(row["class_id"])) for row in decided(many, "Quick")] == seen


@pytest.mark.slow
def test_key_after_an_ignored_press_labels_only_the_displayed_image(browser, many):
    page = open_page(browser, many, "Shifted")
    wait_for_picture(page)
    wait_until_fetched(page)
    looked(page)
    seen = at_a_beat(page, "1123")  # for four images, from a standstill: the second 1 may be a slip
    expect(page.locator("div.words")).to_contain_text("too soon")
    wait_until_saved(page, 1)
    looked(page)
    page.keyboard.press("4")
    wait_until_saved(page, 2)
    rows = [(row["image_id"], str(row["class_id"])) for row in decided(many, "Shifted")]
    assert rows == [seen[0], (seen[1][0], "4")]


@pytest.mark.slow
def test_class_name_typed_outside_a_text_field_opens_the_class_search_and_labels_nothing(browser, many):
    page = open_page(browser, many, "Typist")
    wait_for_picture(page)
    wait_until_fetched(page)
    for word, pause in (("jacket", 0.12), ("tent", 0.2), ("jacket p", 0.35)):
        looked(page)
        image = on_screen(page)
        at_a_beat(page, word, pause)
        field = page.get_by_label("Find a class")
        expect(field).to_be_focused()
        expect(field).to_have_value(word)
        expect(page.locator("div.words")).to_contain_text("Redo gives")
        assert on_screen(page) == image
        page.keyboard.press("Escape")
    wait_until_saved(page)
    rows = decided(many, "Typist")
    assert {label for row in rows for label in labels_of(many, row["image_id"] or 1)} == set(), "nothing is labeled"


@pytest.mark.slow
def test_redo_applies_label_keys_that_were_mistaken_for_a_typed_class_name(browser, many):
    page = open_page(browser, many, "Keys")
    wait_for_picture(page)
    wait_until_fetched(page)
    looked(page)
    seen = at_a_beat(page, "ten", 0.2)
    page.keyboard.press("Escape")
    for _ in seen:
        page.keyboard.press("Shift+Backspace")
    wait_until_saved(page, 9)
    keys = dict(zip("1234567890" + LETTERS, range(1, 40), strict=False))
    assert [labels_of(many, image) for image, _ in seen] == [{keys[letter]: 1} for _, letter in seen]


@pytest.mark.slow
def test_rapid_letters_that_start_no_class_name_count_as_label_keys(browser, many):
    page = open_page(browser, many, "Letters")
    wait_for_picture(page)
    wait_until_fetched(page)
    looked(page)
    seen = at_a_beat(page, "qwertasdfgzxcvb", 0.12)
    wait_until_saved(page, len(seen))
    assert [row["image_id"] for row in decided(many, "Letters")] == [image for image, _ in seen]


def listen(page: Page) -> Callable[[], str]:
    """All that the page says from now on: what comes next may take a word away before it can be looked at."""
    page.locator("div.words").evaluate(
        """(words) => {
            const said = (window.said = []);
            new MutationObserver(() => said.push(words.textContent)).observe(words, { childList: true, subtree: true });
        }"""
    )
    return lambda: page.evaluate("window.said.join('; ')")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/grid", "/autopilot"])
def test_double_press_saves_a_grid_once(browser, ranked, path):
    page = open_grid(browser, ranked, "Grids", path)
    ways = ["Enter", page.locator("button.decide")]
    grids = []
    for apart, way in zip((*APART, 0.12), ways * 2, strict=True):
        wait_until_fetched(page)  # or the second press would be told that the next one is on its way
        looked_through(page)
        grids.append(shown(page))
        said = listen(page)
        press_twice(page, way, apart)
        until(lambda said=said: SECOND in said() or page.evaluate(KIND) in SINGLE)
        if page.evaluate(KIND) in SINGLE:  # Autopilot goes on with one image, which has no button at that place
            break
    wait_until_saved(page, len(grids))
    assert [{image for image, _ in batch} for batch in saved(ranked, "Grids")] == [
        {image for image, _ in grid["tiles"]} for grid in grids
    ]


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/grid", "/grid?audit=1", "/autopilot"])
def test_slow_double_press_saves_only_the_grid_that_was_seen(browser, ranked, path):
    if "audit" in path:
        audit_sampling.draw_audit(Database(ranked.project), 300, seed=0)
    page = open_grid(browser, ranked, "Slow", path)
    grids, all_said = [], ""
    for seconds, way in zip((0.35, 0.5, 0.55, 0.45), ("Enter", page.locator("button.decide")) * 2, strict=True):
        wait_until_fetched(page)
        looked_through(page)
        grids.append(shown(page))
        said = listen(page)
        press_twice(page, way, seconds, is_seen=True)  # a double click takes up to half a second on Windows
        until(lambda said=said: IGNORED.search(said()) or page.evaluate(KIND) in SINGLE)
        all_said += said()
        if page.evaluate(KIND) in SINGLE:
            break
    assert UNSEEN in all_said
    wait_until_saved(page, len(grids))
    assert [{image for image, _ in batch} for batch in saved(ranked, "Slow")] == [
        {image for image, _ in grid["tiles"]} for grid in grids
    ]
    expect(page.locator("div.words")).to_have_text("")  # it was said briefly


@pytest.mark.slow
def test_slow_double_press_of_nothing_else_here_completes_one_image(browser, ranked):
    page = open_page(browser, ranked, "Empty")
    seen = []
    for path in ("/annotate", "/review"):
        page.goto(ranked.address + path)
        wait_for_picture(page)
        for way in (
            "Enter",
            page.get_by_role("button", name="Nothing else here").or_(page.get_by_text("Nothing here")),
        ):
            wait_until_fetched(page)
            looked_through(page)
            seen.append(on_screen(page))
            said = listen(page)
            press_twice(page, way, 0.5)
            until(lambda said=said: IGNORED.search(said()))
    wait_until_saved(page)
    assert [row["image_id"] for row in decided(ranked, "Empty") if row["action"] == "done"] == seen


@pytest.mark.slow
def test_grid_is_saved_after_700_ms_or_once_the_pointer_or_another_key_was_used(browser, ranked):
    page = open_grid(browser, ranked, "Looks")
    ways = [looked_through, looked_around, lambda page: (looked(page), page.keyboard.press("ArrowRight"))]
    for number, look in enumerate(ways, start=1):
        wait_until_fetched(page)
        before = shown(page)["id"]
        look(page)
        page.keyboard.press("Enter")
        until(lambda before=before: shown(page)["id"] != before)
        wait_until_saved(page, number)


@pytest.mark.slow
def test_double_press_answers_a_suggestion_once(browser, ranked):
    page = open_page(browser, ranked, "Review", "/review")
    page.locator(SELECTED).wait_for(timeout=60_000)
    wait_until_fetched(page)
    ways = [*"ynu", page.locator(".answers.first button.no"), page.locator(f"{SELECTED} button.no"), "Enter", "a"]
    answered = []
    for number, way in enumerate(ways * 2):
        looked_through(page)
        if way == "a":  # on an image with a suggestion above the threshold
            page.keyboard.press(" ")
            looked_through(page)
        answered.append((on_screen(page), int(page.locator(SELECTED).get_attribute("data-class"))))
        press_twice(page, way, APART[number % 3])
    looked_through(page)  # the second click on a suggestion's own button may meet nothing
    wait_until_saved(page, len(answered))
    rows = {row["batch"] or row["uuid"]: row for row in decided(ranked, "Review")}.values()
    assert [
        (row["image_id"], row["class_id"] or chosen) for row, (_, chosen) in zip(rows, answered, strict=True)
    ] == answered


@pytest.mark.slow
def test_double_press_answers_a_single_image_of_autopilot_once(browser: Contexts, many, tmp_path):
    with served_photos(tmp_path, 60, ["fox", "heron", "deer"]) as served:
        db = Database(served.project)
        image_overlap.set_overlap(db, 2, 1.0)
        page = open_page(browser, served, "Pilot", "/autopilot")
        assert until(lambda: page.evaluate(KIND)) in SINGLE
        wait_until_fetched(page)
        seen = []
        ways = ["Enter", page.locator("button.main.wide")]
        for apart, way in zip((*APART, 0.12), ways * 2, strict=True):
            wait_until_fetched(page)
            looked_through(page)
            seen.append(on_screen(page))
            said = listen(page)
            press_twice(page, way, apart)
            until(lambda said=said: SECOND in said())
        wait_until_saved(page, len(seen))
        assert list(dict.fromkeys(row["image_id"] for row in decided(served, "Pilot"))) == seen


@pytest.mark.slow
def test_double_press_in_the_speed_test_advances_one_task(browser, many):
    page = open_page(browser, many, "Timed", "/speed_test")
    start = page.get_by_role("button", name="Start")
    start.wait_for(timeout=60_000)
    press_twice(page, start, 0.15)
    for number in range(1, 4):
        expect(page.locator(".tally")).to_contain_text(f"{number} of")
        until(lambda: page.evaluate(KIND))
        page.evaluate(DRAWN)
        looked_through(page)
        press_twice(page, "1" if page.evaluate(KIND) == "click" else "Enter", APART[number % 3])
    expect(page.locator(".tally")).to_contain_text("4 of")
