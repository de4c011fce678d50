"""Facts of images in a real Chromium: fields of the Gallery that stand in its address."""

from collections.abc import Iterator

import pytest
from contexts import Contexts
from person import open_page
from playwright.sync_api import Page, expect
from served import Served, serving, until
from test_facts import give, photo

from annotator.exchange.setup import set_up
from annotator.store.database.database import Database
from annotator.store.images import appearances, images
from annotator.store.pictures.appearance import Appearance

pytestmark = pytest.mark.browser

COUNT = 24
SHOWN = """() => {
  const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".scroller"));
  return [...(host?.shadowRoot.querySelectorAll(".thumb[data-image]") ?? [])].map((tile) => Number(tile.dataset.image));
}"""


def make_project(folder) -> Database:
    """24 images in two folders, one taken each hour of a day by one of two cameras, with an imported weight."""
    for number in range(COUNT):
        name = f"{'pond' if number < 16 else 'wood'}/{number:02}.jpg"
        photo(folder / "photos" / name, number, f"Trap {number % 2 + 3}", f"2026:05:01 {number:02}:15:00")
    (folder / "classes.txt").write_text("fox\nheron\n")
    set_up(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    db = Database(folder / "project")
    looks = ((image.id, Appearance(image.id / 25, 20.0 * image.id, 0, 0, image.id)) for image in images.all_images(db))
    appearances.keep(db, looks)
    give(db, "weight", {image_id: 10 * (image_id % 4) for image_id in range(1, 21)})
    return db


@pytest.fixture(scope="module")
def traps(tmp_path_factory) -> Iterator[Served]:
    db = make_project(tmp_path_factory.mktemp("facts"))
    with serving(db.paths.project) as served:
        yield served


def open_gallery(browser: Contexts, served: Served, path: str = "/gallery") -> Page:
    page = open_page(browser, served, "Ann", path)
    page.locator(".thumb img").first.wait_for(timeout=60_000)
    return page


def shown(page: Page) -> list[int]:
    return page.evaluate(SHOWN)


def test_every_fact_is_a_field_whose_value_stands_in_the_address(browser, traps):
    page = open_gallery(browser, traps)
    page.get_by_role("button", name="More").click()
    page.get_by_label("Fact to filter by").select_option("camera")
    expect(page.get_by_label("Camera", exact=True)).to_be_focused()
    expect(page.get_by_label("Hour of day, from, in h")).to_be_hidden()
    page.get_by_label("Camera", exact=True).select_option("Trap 4")
    expect(page.locator(".count")).to_have_text("12 of 24 images")
    page.get_by_label("Fact to filter by").select_option("hour")
    page.keyboard.type("6")
    page.get_by_label("Hour of day, below, in h").fill("12")
    page.keyboard.press("Enter")
    expect(page.locator(".count")).to_have_text("3 of 24 images")
    assert page.url.endswith("/gallery?camera=Trap+4&hour=6..12")
    until(lambda: shown(page) == [8, 10, 12])
    page.get_by_label("Fact to filter by").select_option("brightness")
    page.keyboard.type("35")
    page.keyboard.press("Tab")
    page.get_by_label("Order", exact=True).select_option("column:weight")
    until(lambda: shown(page) == [12, 10])
    assert page.url.endswith("hour=6..12&brightness=35..&sort=column%3Aweight")
    assert page.locator(".thumb .marks").all_inner_texts() == ["0", "20"]
    page.reload()
    until(lambda: shown(page) == [12, 10])
    expect(page.get_by_label("Brightness, from, in %")).to_have_value("35")
    expect(page.get_by_label("Hour of day, below, in h")).to_have_value("12")
    page.get_by_label("Hour of day, below, in h").fill("")
    page.keyboard.press("Enter")
    expect(page.locator(".count")).to_have_text("8 of 24 images")
    page.go_back()
    expect(page.locator(".count")).to_have_text("2 of 24 images")
    page.get_by_role("button", name="Clear filter").click()
    expect(page.locator(".count")).to_have_text("24 images")
    assert page.troubles == []


def test_a_range_of_an_imported_column_and_days_come_by_a_link_and_nonsense_in_it_is_left_out(browser, traps):
    page = open_gallery(
        browser, traps, "/gallery?captured=2026-05-01..2026-05-01&facts=weight%3D20..&hour=six..19&size=..&place=wood"
    )
    expect(page.locator(".count")).to_have_text("2 of 24 images")
    assert shown(page) == [18, 19]
    expect(page.get_by_role("button", name="weight = 20..")).to_be_visible()
    expect(page.get_by_label("Capture time, first day")).to_have_value("2026-05-01")
    expect(page.get_by_label("Hour of day, below, in h")).to_have_value("19")
    page.screenshot(path="/tmp/facts-gallery.png")
    assert page.troubles == []
