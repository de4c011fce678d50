"""Fixing any image, in a real Chromium: it opens on Annotate with its labels, each class gets any of its four states,
and what was in hand is there again afterwards."""

from collections.abc import Iterator

import pytest
from person import (
    decided,
    labels_of,
    on_screen,
    open_page,
    served_photos,
    wait_for_another,
    wait_for_image,
    wait_for_picture,
    wait_until_saved,
)
from playwright.sync_api import Page, expect
from served import Served

from annotator.records import Decision
from annotator.store import decisions, leases
from annotator.store.database import Database

pytestmark = pytest.mark.browser

LINES = ["fox", "heron", "deer", "owl"]
COMPLETE, MISSING = 20, 22  # ids: Ben has completed the one, and the file of the other is gone


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("fix")
    with served_photos(folder, 30, LINES) as served:
        db = Database(served.project)
        given = [("label", 1, 1), ("label", 2, -1), ("label", 3, 0)]
        decisions.decide(db, [
            *(Decision(f"ben-{id_}-{number}", action, "Ben", "click", image_id=id_, class_id=class_id, state=state)
              for id_ in (COMPLETE, MISSING) for number, (action, class_id, state) in enumerate(given)),
            Decision("ben-done", "done", "Ben", "done", image_id=COMPLETE),
        ])  # fmt: skip
        gone = db.value("SELECT name FROM image WHERE id = ?", [MISSING])
        (folder / "photos" / gone).unlink()
        yield served


def go(page: Page, address: str) -> None:
    """Follow a link within the app: the address changes, and nothing is loaded."""
    page.evaluate(
        "(to) => { history.pushState(history.state, '', to); dispatchEvent(new PopStateEvent('popstate')); }", address
    )


def test_an_address_opens_any_image_and_going_on_continues_where_one_was(browser, served):
    db = Database(served.project)
    assert leases.take(db, "bens page", "Ben", [COMPLETE], 1) == [COMPLETE]
    page = open_page(browser, served, "Ann", f"/?image={COMPLETE}")
    wait_for_image(page, COMPLETE)
    expect(page.locator(".caption")).to_contain_text("answered: 1 present, 2 absent, 1 unsure · Ben has it open, too")
    expect(page.locator(".class[data-class='3']")).to_have_attribute("data-state", "unsure")
    page.keyboard.press("Alt+Digit1")
    expect(page.locator(".class[data-class='1']")).to_have_attribute("data-state", "absent")
    page.keyboard.press(" ")  # goes on, and stores no skip
    wait_for_another(page, COMPLETE)
    first = on_screen(page)
    assert "image=" not in page.url
    page.keyboard.press("ArrowLeft")
    wait_for_image(page, COMPLETE)
    page.reload()
    wait_for_image(page, COMPLETE)
    page.keyboard.press("ArrowRight")
    wait_for_image(page, first)
    go(page, f"/?image={MISSING}")
    expect(page.locator(".stage .empty")).to_contain_text("cannot be shown")
    expect(page.locator(".chips")).to_contain_text("fox")
    page.keyboard.press(" ")
    wait_for_image(page, first)
    go(page, f"/?image={first + 1}")
    wait_for_image(page, first + 1)
    page.go_back()
    wait_for_image(page, first)
    page.go_forward()
    wait_for_image(page, first + 1)
    page.keyboard.press("3")  # labels, and goes on with what was there before
    wait_for_image(page, first)
    for unknown in ("999", "x"):
        go(page, f"/?image={unknown}")
        expect(page.locator(".words")).to_have_text(f"There is no image {unknown} in this project.")
        wait_for_image(page, first)
    page.goto(f"{served.address}/?image=999")
    expect(page.locator(".words")).to_have_text("There is no image 999 in this project.")
    wait_for_image(page, first)
    wait_until_saved(page, 0)
    assert labels_of(served, COMPLETE) == {1: -1, 2: -1, 3: 0, 4: -1}
    assert [(row["action"], row["image_id"]) for row in decided(served, "Ann")] == [
        ("label", COMPLETE),
        ("label", first + 1),
    ]
    assert dict(leases.held(db, "Ann's"))[COMPLETE] == 0
    assert db.value("SELECT holder FROM lease WHERE image_id = ?", [COMPLETE]) == "bens page", "nobody lost it"
    assert page.troubles == []


def looked(page: Page) -> None:
    """Until the image has been on screen for so long that a key is about it, and not a hurried one about the last."""
    page.evaluate("window.since = performance.now()")
    page.wait_for_function("performance.now() - window.since > 320")


def states(page: Page) -> dict[int, str]:
    buttons = page.locator(".classes .class[data-state]")
    return dict(buttons.evaluate_all("(all) => all.map((one) => [Number(one.dataset.class), one.dataset.state])"))


def test_the_same_key_again_takes_an_answer_back_and_the_pointer_sets_each_of_four_states(browser, served):
    page = open_page(browser, served, "Cleo")
    wait_for_picture(page)
    page.get_by_role("button", name="Got it").click()
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
    card.get_by_role("button", name="Unknown").click()
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
    page.keyboard.press("ArrowLeft")
    wait_for_image(page, image_id)
    page.keyboard.press("1")  # at once, as a key held in doubt: it is the label again, and never taken back
    wait_for_another(page, image_id)
    wait_until_saved(page)
    assert labels_of(served, image_id) == {1: 1}
    assert page.troubles == []
