"""Picture quality and twins on the Gallery, in a real Chromium: what is shown, and what is said of twins by key."""

from collections.abc import Iterator

import pytest
from harness.contexts import Contexts
from harness.gray_images import half_white, noise
from harness.person import decided, labels_of, open_page, wait_until_saved
from harness.served import PAGES_ALONE, Served, serving
from harness.worker_runs import find_near_duplicates
from playwright.sync_api import Page, expect

from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.images import excluded_images

pytestmark = pytest.mark.browser

FOX, HERON = 1, 2
NAMES = ("alone.png", "burnt.png", "copy.jpg", "dark.png", "original.png", "small copy.png")


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory) -> Iterator[Served]:
    """An app with six pictures, which are measured: three of them are twins."""
    folder = tmp_path_factory.mktemp("quality")
    (folder / "photos").mkdir()
    scene = noise((320, 240), seed=1, patch=40)
    made = (
        noise((320, 240), seed=2),
        half_white(noise((320, 240), seed=3)),
        scene,
        noise((320, 240), low=5, high=40, seed=4),
        scene,
        scene.resize((160, 120)),
    )
    for name, picture in zip(NAMES, made, strict=True):
        picture.save(folder / "photos" / name)
    (folder / "classes.txt").write_text("fox\nheron\n")
    set_up_project(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    find_near_duplicates(Database(folder / "project"))
    with serving(folder / "project", PAGES_ALONE) as served:
        yield served


def open_gallery(browser: Contexts, served: Served, name: str, path: str = "/gallery") -> Page:
    page = open_page(browser, served, name, path)
    page.locator(".thumb img").first.wait_for(timeout=60_000)
    return page


def shown(page: Page, *names: str) -> None:
    expect(page.locator(".thumb[data-image] .name")).to_have_text(list(names))


@pytest.mark.slow
def test_gallery_filters_by_an_image_quality_defect_and_sorts_by_its_measure(browser, looked_at):
    page = open_gallery(browser, looked_at, "Quality")
    page.get_by_role("button", name="More").click()
    page.get_by_label("Picture quality").select_option("very dark: mean brightness below 20%")
    shown(page, "dark.png")
    assert page.url.endswith("/gallery?quality=dark")
    page.get_by_role("button", name="Clear filter").click()
    page.get_by_label("Order", exact=True).select_option("Brightness")
    expect(page.locator(".thumb[data-image] .name").first).to_have_text("dark.png")
    expect(page.locator(".thumb .mark-chance").first).to_have_text("9%")
    page.reload()
    expect(page.locator(".thumb[data-image] .name").first).to_have_text("dark.png")


@pytest.mark.slow
def test_gallery_url_with_an_unknown_image_quality_defect_shows_all_images(browser, looked_at):
    page = open_gallery(browser, looked_at, "Unknown", "/gallery?quality=ugly&sort=beauty")
    shown(page, *NAMES)


@pytest.mark.slow
def test_keeping_one_near_duplicate_excludes_the_others_in_one_step(browser, looked_at):
    page = open_gallery(browser, looked_at, "Keeper", "/gallery?twins=has&sort=twins")
    shown(page, "copy.jpg", "original.png", "small copy.png")
    page.get_by_role("option", name="original.png").click()
    expect(page.get_by_role("group", name="Twins")).to_contain_text("2 twins: copy.jpg, small copy.png")
    page.keyboard.press("k")
    wait_until_saved(page, 2)
    expect(page.locator(".thumb .mark-aside")).to_have_count(2)
    rows = [row for row in decided(looked_at, "Keeper") if row["action"] == "flag"]
    assert excluded_images.count_by_reason(Database(looked_at.project)) == [("twin of another image", 2)]
    assert {row["note"] for row in rows} == {"twin of original.png"} and len({row["batch"] for row in rows}) == 1
    page.keyboard.press("Backspace")
    wait_until_saved(page, 3)
    expect(page.locator(".thumb .mark-aside")).to_have_count(0)
    page.keyboard.press("Shift+Backspace")
    wait_until_saved(page, 5)
    expect(page.locator(".thumb .mark-aside")).to_have_count(2)
    page.keyboard.press("Backspace")
    wait_until_saved(page, 6)
    expect(page.locator(".thumb .mark-aside")).to_have_count(0)
    assert excluded_images.count(Database(looked_at.project)) == 0


@pytest.mark.slow
def test_gallery_excludes_an_image_with_a_reason_filters_and_restores_it(browser, looked_at):
    page = open_gallery(browser, looked_at, "Sorter")
    page.get_by_role("option", name="dark.png").click()
    page.keyboard.press(",")
    page.get_by_role("button", name="Set aside").click()
    expect(page.get_by_label("Note")).to_be_focused()
    page.keyboard.type("too dark")
    page.get_by_role("button", name="Set aside").click()
    wait_until_saved(page, 1)
    expect(page.get_by_role("option", name="dark.png: set aside: too dark")).to_be_visible()
    page.goto(page.url.split("?")[0] + "?aside=yes")
    shown(page, "dark.png")
    page.get_by_role("option", name="dark.png").click()
    page.keyboard.press(",")
    page.get_by_label("Note").fill("")
    page.keyboard.press("Enter")
    wait_until_saved(page, 1)
    assert excluded_images.count(Database(looked_at.project)) == 0


@pytest.mark.slow
def test_labels_are_copied_to_all_near_duplicates_and_undone_in_one_step(browser, looked_at):
    page = open_gallery(browser, looked_at, "Answerer")
    page.get_by_role("option", name="alone.png").click()
    page.keyboard.press("t")
    expect(page.locator(".words")).to_contain_text("Select one image that has twins")
    page.get_by_role("option", name="small copy.png").click()
    expect(page.get_by_role("group", name="Twins")).to_be_visible()
    page.keyboard.press("t")
    expect(page.locator(".words")).to_contain_text("You have answered nothing on small copy.png yet")
    page.keyboard.press("c")
    page.keyboard.type("fox")
    page.keyboard.press("Enter")
    with page.expect_response("**/api/twins"):
        page.keyboard.press("Control+Enter")
    wait_until_saved(page, 1)
    page.get_by_role("option", name="small copy.png").click()
    page.keyboard.press("t")
    wait_until_saved(page, 2)
    copy, original = (labels_of(looked_at, image) for image in (3, 5))
    assert copy == original == {FOX: 1}
    page.keyboard.press("Backspace")
    wait_until_saved(page, 3)
    assert labels_of(looked_at, 3) == labels_of(looked_at, 5) == {}
    assert labels_of(looked_at, 6) == {FOX: 1}, "one's own answer stays"
