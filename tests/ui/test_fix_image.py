"""Fixing any image, in a real Chromium: it opens on Annotate with its labels, each class gets any of its four states,
and what was in hand is there again afterwards."""

from collections.abc import Iterator

import numpy as np
import pytest
from harness.person import (
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
from harness.served import Served, until
from playwright.sync_api import Page, expect

from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.people import leases

pytestmark = pytest.mark.browser

LINES = ["fox", "heron", "deer", "owl"]
COMPLETE, MISSING = 20, 22  # ids: Ben has completed the one, and the file of the other is gone


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("fix")
    with served_photos(folder, 30, LINES) as served:
        db = Database(served.project)
        given = [("label", 1, 1), ("label", 2, -1), ("label", 3, 0)]
        decisions.save(db, [
            *(Decision(f"ben-{id_}-{number}", action, "Ben", "click", image_id=id_, class_id=class_id, state=state)
              for id_ in (COMPLETE, MISSING) for number, (action, class_id, state) in enumerate(given)),
            Decision("ben-done", "done", "Ben", "done", image_id=COMPLETE),
        ])  # fmt: skip
        gone = db.value("SELECT name FROM image WHERE id = ?", [MISSING])
        (folder / "photos" / gone).unlink()
        yield served


# The query of the address right after the key.
BACK = """() => {
  const key = { key: "ArrowLeft", code: "ArrowLeft", bubbles: true, composed: true };
  document.body.dispatchEvent(new KeyboardEvent("keydown", key));
  return window.location.search;
}"""
# Which picture this document has asked for first; the document before it may have asked for another until it ended.
FIRST_IMAGE = """() => performance.getEntriesByType("resource").map(({ name }) => name)
  .find((name) => name.includes("/api/image/"))"""


def go(page: Page, address: str) -> None:
    """Follow a link within the app: the address changes, and nothing is loaded."""
    page.evaluate(
        "(to) => { history.pushState(history.state, '', to); dispatchEvent(new PopStateEvent('popstate')); }", address
    )


@pytest.mark.slow
def test_annotate_url_opens_any_image_and_skipping_it_returns_to_the_previous_image(browser, served):
    db = Database(served.project)
    assert leases.lease_images(db, "bens page", "Ben", [COMPLETE], 1) == [COMPLETE]
    page = open_page(browser, served, "Ann", f"/?image={COMPLETE}")  # a bookmark from when Annotate was the first page
    wait_for_image(page, COMPLETE)
    assert page.url == f"{served.address}/annotate?image={COMPLETE}"
    expect(page.locator(".caption")).to_contain_text("answered: 1 present, 2 absent, 1 unsure · Ben has it open, too")
    expect(page.locator(".class[data-class='3']")).to_have_attribute("data-state", "unsure")
    page.keyboard.press("Alt+Digit1")
    expect(page.locator(".class[data-class='1']")).to_have_attribute("data-state", "absent")
    page.keyboard.press(" ")  # goes on, and stores no skip
    wait_for_another(page, COMPLETE)
    first = on_screen(page)
    assert "image=" not in page.url
    assert page.evaluate(BACK) == f"?image={COMPLETE}", "with the image, so that a reload finds it"
    wait_for_image(page, COMPLETE)
    page.reload()
    wait_for_image(page, COMPLETE)
    assert f"/api/image/{COMPLETE}?" in page.evaluate(FIRST_IMAGE), "before all that comes next"
    looked(page)
    page.keyboard.press("ArrowRight")
    wait_for_image(page, first)
    go(page, f"/annotate?image={MISSING}")
    expect(page.locator(".stage .empty")).to_contain_text("cannot be shown")
    expect(page.locator(".chips")).to_contain_text("fox")
    looked(page)
    page.keyboard.press(" ")
    wait_for_image(page, first)
    page.wait_for_url(lambda url: "image=" not in url)
    go(page, f"/annotate?image={first + 1}")
    wait_for_image(page, first + 1)
    page.go_back()
    wait_for_image(page, first)
    page.go_forward()
    wait_for_image(page, first + 1)
    looked(page)
    page.keyboard.press("3")  # labels, and goes on with what was there before
    wait_for_image(page, first)
    for unknown in ("999", "x"):
        go(page, f"/annotate?image={unknown}")
        expect(page.locator(".words")).to_have_text(f"There is no image {unknown} in this project.")
        wait_for_image(page, first)
    page.goto(f"{served.address}/annotate?image=999")
    expect(page.locator(".words")).to_have_text("There is no image 999 in this project.")
    wait_for_image(page, first)
    wait_until_saved(page, 0)
    assert labels_of(served, COMPLETE) == {1: -1, 2: -1, 3: 0, 4: -1}
    assert [(row["action"], row["image_id"]) for row in decided(served, "Ann")] == [
        ("label", COMPLETE),
        ("label", first + 1),
    ]
    assert dict(leases.load_leases_of_others(db, "Ann's"))[COMPLETE] == 0
    assert db.value("SELECT holder FROM lease WHERE image_id = ?", [COMPLETE]) == "bens page", "nobody lost it"
    assert page.troubles == []


def states(page: Page) -> dict[int, str]:
    buttons = page.locator(".classes .class[data-state]")
    return dict(buttons.evaluate_all("(all) => all.map((one) => [Number(one.dataset.class), one.dataset.state])"))


@pytest.mark.slow
def test_annotate_repeated_key_clears_a_label_and_the_mouse_sets_each_label_state(browser, served):
    page = open_page(browser, served, "Cleo")
    wait_for_picture(page)
    image_id = on_screen(page)
    looked(page)
    for key, after in (
        ("Shift+Digit1", {1: "present"}),
        ("1", {}),  # and stays
        ("Alt+Digit2", {2: "absent"}),
        ("Shift+Digit2", {2: "present"}),
        ("Alt+Digit2", {2: "absent"}),
        ("Alt+Digit2", {}),
    ):
        looked(page)
        page.keyboard.press(key)
        assert (on_screen(page), states(page)) == (image_id, after), key
    for keys in ("-3", "-3"):
        page.keyboard.type(keys)
    assert states(page) == {}
    page.keyboard.press("Backspace")
    expect(page.locator(".words")).to_contain_text("Undid: deer cleared")
    assert states(page) == {3: "unsure"}
    page.keyboard.press("Control+y")
    assert states(page) == {}

    page.locator(".class[data-class='4']").hover()
    card = page.get_by_role("group", name="Class", exact=True)
    for words in ("Absent", "Unsure", "Present"):
        card.get_by_role("button", name=words).click()
        assert states(page) == {4: words.lower()}
        expect(card.get_by_role("button", name=words)).to_have_attribute("aria-pressed", "true")
    page.mouse.move(0, 0)
    expect(card).to_be_hidden()
    page.locator(".chips .chip", has_text="owl").click(position={"x": 12, "y": 12})
    card.get_by_role("button", name="Unanswered").click()
    assert states(page) == {}
    expect(page.locator(".caption")).not_to_contain_text("answered")
    page.keyboard.press("Control+z")
    assert states(page) == {4: "present"}
    page.keyboard.press("Shift+Backspace")
    wait_until_saved(page)
    assert labels_of(served, image_id) == {}
    assert on_screen(page) == image_id

    page.keyboard.press("1")
    wait_for_another(page, image_id)
    # At once, as a hurried key is that was meant for the image before: it is the label again, and never taken back.
    page.evaluate("""() => {
      for (const [key, code] of [["ArrowLeft", "ArrowLeft"], ["1", "Digit1"]]) {
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key, code, bubbles: true, composed: true }));
        document.body.dispatchEvent(new KeyboardEvent("keyup", { key, code, bubbles: true, composed: true }));
      }
    }""")
    wait_until_saved(page)
    assert [row["action"] for row in decided(served, "Cleo")][-2:] == ["label", "label"]
    wait_for_another(page, image_id)
    wait_until_saved(page)
    assert labels_of(served, image_id) == {1: 1}
    assert page.troubles == []


def find_image(page: Page, name: str) -> None:
    page.keyboard.press("Control+p")
    expect(page.get_by_role("dialog", name="Find an image")).to_be_visible()
    page.keyboard.type(name)
    page.keyboard.press("Enter")  # also before the list is there


@pytest.mark.slow
def test_ctrl_p_finds_an_image_by_name_on_any_page_and_escape_returns(browser, served):
    db = Database(served.project)
    names = dict(db.tuples("SELECT id, name FROM image"))
    page = open_page(browser, served, "Dora")
    wait_for_picture(page)
    page.wait_for_load_state("networkidle")
    first = on_screen(page)
    page.keyboard.press("Control+p")
    page.keyboard.type("01")
    rows = page.locator(".chooser .option")
    expect(rows.first.locator("img")).to_have_js_property("complete", True)
    expect(rows).to_have_count(sum("01" in name for name in names.values()))
    page.keyboard.press("ArrowDown")
    chosen = page.locator(".chooser [aria-selected='true'] .name").text_content()
    page.keyboard.press("Control+p")  # types anew, and prints nothing
    page.keyboard.press("Enter")
    opened = next(id_ for id_, name in names.items() if name == chosen)
    wait_for_image(page, opened)
    page.keyboard.press(" ")
    wait_for_image(page, first)
    find_image(page, names[COMPLETE])
    wait_for_image(page, COMPLETE)
    page.go_back()  # as the browser means it
    wait_for_image(page, first)

    page.goto(f"{served.address}/map")
    expect(page.get_by_role("heading", name="Selection")).to_be_visible()
    find_image(page, names[COMPLETE])
    wait_for_image(page, COMPLETE)
    page.keyboard.press("Alt+3")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Selection")).to_be_visible()
    assert page.url == f"{served.address}/map"
    until(lambda: labels_of(served, COMPLETE)[3] == -1)
    assert page.troubles == []


@pytest.mark.slow
def test_grid_keeps_its_marks_while_one_of_its_images_is_corrected_on_annotate(browser, tmp_path):
    with served_photos(tmp_path, 40, ["fox", "heron"]) as served:
        db = Database(served.project)
        publish_run(db, np.linspace(0.95, 0.2, 80).reshape(40, 2))
        page = open_page(browser, served, "Ann", "/grid")
        tiles = page.locator(".tiles .tile[data-image]")
        expect(tiles).to_have_count(24)
        page.wait_for_load_state("networkidle")
        page.keyboard.press("q")
        page.keyboard.press("3")

        def marks() -> dict[str, str]:
            return dict(tiles.evaluate_all("(all) => all.map((one) => [one.dataset.image, one.dataset.state])"))

        before = marks()
        fixed = tiles.nth(1).get_attribute("data-image")
        page.locator(".tile .enlarge").nth(1).click(force=True)
        expect(page.get_by_role("button", name="Open in Annotate")).to_be_visible()
        page.keyboard.press("F2")
        wait_for_image(page, int(fixed))
        assert decided(served, "Ann") == [], "what is marked is not decided"
        page.keyboard.press("Shift+Digit1")
        page.keyboard.press("Shift+Digit2")
        page.get_by_role("button", name="Back to Grid").click()
        expect(tiles).to_have_count(23)
        assert marks() == {image: state for image, state in before.items() if image != fixed}
        looked_around(page)
        page.keyboard.press("Enter")
        wait_until_saved(page)
        until(lambda: len(decided(served, "Ann")) == 2 + 23)
        assert labels_of(served, int(fixed)) == {1: 1, 2: 1}
        images = [row["image_id"] for row in decided(served, "Ann")[2:]]
        assert sorted(images) == sorted(int(image) for image in before if image != fixed)
        assert page.troubles == []


@pytest.mark.slow
def test_review_class_finder_adds_an_unsuggested_class_and_keeps_the_selected_suggestion(browser, tmp_path):
    with served_photos(tmp_path, 12, LINES) as served:
        db = Database(served.project)
        probabilities = np.full((12, 4), 0.01)
        probabilities[:, :2] = 0.9
        publish_run(db, probabilities)
        page = open_page(browser, served, "Ann", "/review")
        wait_for_picture(page)
        image_id, known = on_screen(page), page.locator(".known .chip")
        selected = page.locator(".suggestion.selected .name")
        suggested = selected.text_content()
        page.keyboard.press("/")
        page.keyboard.type("ow")
        page.keyboard.press("Enter")
        expect(known).to_have_text(["owl"])
        expect(selected).to_have_text(suggested)
        page.keyboard.press("Backspace")
        expect(known).to_have_count(0)
        page.keyboard.press("Control+y")
        expect(known).to_have_text(["owl"])
        page.keyboard.press("/")
        page.keyboard.type("her")
        page.keyboard.press("Enter")
        expect(page.locator(".suggestion[data-given='present'] .name")).to_have_text("heron")
        assert on_screen(page) == image_id
        page.get_by_role("button", name="Open in Annotate").click()
        expect(page.locator(".class[data-state='present'] .name")).to_have_text(["heron", "owl"])
        page.keyboard.press("Escape")
        wait_for_picture(page)
        assert "/review" in page.url and labels_of(served, image_id) == {2: 1, 4: 1}
        rows = [(row["action"], row["source"], row["run_id"]) for row in decided(served, "Ann")]
        assert rows == [("label", "click", None), ("undo", "click", None), *[("label", "click", None)] * 2]
        assert page.troubles == []
