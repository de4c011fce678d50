"""Images in the order of their files, in a real Chromium: neighbours beside the queue, and where one goes on."""

from collections.abc import Iterator

import pytest
from harness.person import (
    decided,
    labels_of,
    looked,
    looked_around,
    open_page,
    served_photos,
    wait_for_image,
    wait_for_picture,
    wait_until_saved,
)
from harness.served import Served
from playwright.sync_api import Page, expect

from annotator.queues import query_order
from annotator.store.database.database import Database

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    """Photos 000.jpg to 011.jpg, which a project shows in the order of their names."""
    with served_photos(tmp_path_factory.mktemp("sequence"), 12, ["fox", "heron", "deer"]) as served:
        query_order.set_default(Database(served.project), "name")
        yield served


def ids(served: Served) -> list[int]:
    return [row[0] for row in Database(served.project).tuples("SELECT id FROM image ORDER BY name")]


def press(page: Page, key: str, image_id: int) -> None:
    """The key, after which this image is on screen with its picture."""
    page.keyboard.press(key)
    wait_for_image(page, image_id)


@pytest.mark.slow
def test_annotate_shows_neighboring_images_and_copies_their_labels_in_one_undoable_step(browser, served):
    order = ids(served)
    page = open_page(browser, served, "Ann", viewport={"width": 1366, "height": 768})
    words = page.locator(".words")
    wait_for_image(page, order[0])
    press(page, "Shift+1", order[0])
    press(page, "2", order[1])
    before = page.get_by_role("button", name="Previous image in")
    after = page.get_by_role("button", name="Next image in")
    expect(before).to_have_attribute("title", "000.jpg: fox, heron")
    expect(after).to_have_attribute("title", "002.jpg: no class present")

    # The same labels, one step to take back.
    looked_around(page)
    page.keyboard.press("=")
    expect(words).to_have_text("As on 000.jpg: fox, heron.")
    expect(page.locator(".chip")).to_have_text(["fox×", "heron×"])
    wait_until_saved(page)
    assert labels_of(served, order[1]) == {1: 1, 2: 1}
    page.keyboard.press("Backspace")
    wait_until_saved(page)
    assert labels_of(served, order[1]) == {}

    # Forward past the end of nothing and back, by key and by pointer: the queue stays as it is.
    press(page, "]", order[2])
    expect(words).to_have_text("002.jpg. Space goes back to where you were.")
    press(page, "]", order[3])
    page.keyboard.press("Shift+3")
    press(page, "[", order[2])
    before.click()
    wait_for_image(page, order[1])
    press(page, "[", order[0])
    page.keyboard.press("[")
    expect(words).to_have_text("This is the first image of its folder.")
    press(page, " ", order[1])
    press(page, "1", order[2])
    looked(page)
    press(page, "1", order[3])
    expect(page.locator(".chip")).to_have_text(["deer×"])
    press(page, " ", order[4])
    wait_until_saved(page)
    assert [row["image_id"] for row in decided(served, "Ann") if row["action"] == "skip"] == []

    # After a reload, and in another window, it goes on behind the last image that was left.
    page.reload()
    wait_for_image(page, order[4])
    press(page, "Shift+1", order[4])
    press(page, " ", order[5])
    page.keyboard.press("Backspace")
    wait_for_image(page, order[4])
    wait_until_saved(page)
    page.reload()
    wait_for_picture(page)
    wait_for_image(page, order[4])
    assert page.troubles == []
