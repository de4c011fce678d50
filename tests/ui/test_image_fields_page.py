"""Facts of images in a real Chromium: fields of the Gallery that stand in its address, colours of the Map."""

from collections.abc import Iterator

import numpy as np
import pytest
from harness.contexts import Contexts
from harness.image_fields import give, photo
from harness.person import open_page
from harness.served import Served, serving, until
from playwright.sync_api import Page, expect

from annotator.exchange.project_setup import set_up_project
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot import image_map
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
    set_up_project(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    db = Database(folder / "project")
    looks = (
        (image.id, Appearance(image.id / 25, 20.0 * image.id, 0, 0, image.id)) for image in images.load_all_images(db)
    )
    appearances.save(db, looks)
    places = np.stack(np.divmod(np.arange(COUNT), 6), 1)[:, ::-1] / (5, 3)
    image_map.save_map(db.paths.map(DEFAULT_BACKBONE), np.arange(1, COUNT + 1), places)
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


@pytest.mark.slow
def test_gallery_field_filters_and_order_are_kept_in_the_url(browser, traps):
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


@pytest.mark.slow
def test_gallery_link_applies_valid_filters_and_ignores_invalid_ones(browser, traps):
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


CONTRAST = """(list) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
    const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = light(getComputedStyle(list.getRootNode().querySelector(".plane")).backgroundColor);
  return [...list.querySelectorAll("canvas:not([data-kind=open])")].map((sign) => {
    const [low, high] = [ground, light(getComputedStyle(sign).color)].sort((a, b) => a - b);
    return [sign.dataset.kind, (high + 0.05) / (low + 0.05)];
  });
}"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_map_colors_by_any_field_and_its_legend_names_categories_or_extremes(browser, traps, scheme):
    page = open_page(browser, traps, "Ann", "/map", color_scheme=scheme)
    page.locator(f".field[data-points='{COUNT}']").wait_for(timeout=60_000)
    page.get_by_role("button", name="Fact", exact=True).click()
    chosen, legend = page.get_by_label("Fact", exact=True).and_(page.locator("select")), page.locator(".legend")
    chosen.select_option("camera")
    expect(legend.locator("li", has_text="Trap 3").locator(".count")).to_have_text("12")
    expect(legend.locator("li", has_text="Not known").locator(".count")).to_have_text("0")
    page.screenshot(path=f"/tmp/facts-map-choice-{scheme}.png")
    chosen.select_option("column:weight")
    expect(legend.locator(".ends span")).to_have_text(["0", "30"])
    expect(legend.locator("li", has_text="Not known").locator(".count")).to_have_text("4")
    expect(legend.locator("canvas:visible")).to_have_count(1)
    page.screenshot(path=f"/tmp/facts-map-number-{scheme}.png")
    contrasts = legend.evaluate(CONTRAST)
    assert len(contrasts) == 32 and min(contrast for _, contrast in contrasts) >= 3, (
        "readable on the ground of the theme"
    )
    page.get_by_role("button", name="Progress").click()
    expect(legend.locator("li", has_text="No answers yet").locator(".count")).to_have_text("24")
    expect(chosen).to_be_hidden()
    assert page.troubles == []


@pytest.mark.slow
def test_twelve_map_colors_have_enough_contrast_in_both_themes(browser, traps):
    db = Database(traps.project)
    give(db, "site", {number + 1: f"site {number % 14:02}" for number in range(COUNT)})
    seen = {}
    for scheme in ("light", "dark"):
        page = open_page(browser, traps, "Ann", "/map", color_scheme=scheme)
        page.locator(f".field[data-points='{COUNT}']").wait_for(timeout=60_000)
        page.get_by_role("button", name="Fact", exact=True).click()
        page.locator("select[aria-label='Fact']").select_option("column:site")
        expect(page.locator(".legend li")).to_have_count(13)
        expect(page.locator(".legend li").nth(11)).to_contain_text("other (3 values)")
        page.screenshot(path=f"/tmp/facts-map-many-{scheme}.png")
        seen[scheme] = page.locator(".legend").evaluate(CONTRAST)
    for scheme, contrasts in seen.items():
        assert len(contrasts) == 12 and min(contrast for _, contrast in contrasts) >= 3, (scheme, contrasts)


def bars(page: Page) -> list[str | None]:
    return page.locator(".bars .bar").evaluate_all("(all) => all.map((one) => one.getAttribute('aria-label'))")


@pytest.mark.slow
def test_clicking_a_chart_bar_toggles_its_filter(browser, traps):
    page = open_gallery(browser, traps)
    page.keyboard.press("b")
    by = page.get_by_label("Fact to count by")
    expect(by).to_be_focused()
    by.select_option("place")
    expect(page.locator(".bars .bar").first).to_have_accessible_name("pond: 16 images")
    page.get_by_role("button", name="wood: 8 images").click()
    expect(page.locator(".count")).to_have_text("8 of 24 images")
    assert "place=wood" in page.url
    expect(page.get_by_role("button", name="wood: 8 images")).to_have_attribute("aria-pressed", "true")
    assert bars(page) == ["pond: 16 images", "wood: 8 images"], "its own condition takes no bar away"
    by.select_option("hour")
    expect(page.get_by_role("button", name="under 17:00: 1 image")).to_be_visible()
    by.select_option("column:weight")
    expect(page.get_by_role("group", name="Images by weight")).to_be_visible()
    page.get_by_role("button", name="20 to 21: 1 image").click()
    expect(page.locator(".count")).to_have_text("1 of 24 images")
    page.get_by_role("button", name="20 to 21: 1 image").click()
    by.select_option("place")
    expect(page.locator(".bar[aria-pressed=true]")).to_have_count(1)
    page.locator(".bar[aria-pressed=true]").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".count")).to_have_text("24 images")
    expect(page.get_by_role("button", name="wood: 8 images")).to_be_focused()
    page.go_back()
    expect(page.locator(".bar[aria-pressed=true]")).to_have_count(1)
    page.get_by_role("button", name="Chart").click()
    expect(page.get_by_role("region", name="Images by a fact")).to_have_count(0)
    assert page.troubles == []
