"""The Events page, in a real Chromium: events are found, cut elsewhere, split, merged, shifted, and all is undone."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from conftest import CLASSES, draw
from harness.contexts import Contexts
from harness.person import open_page, wait_until_drawn
from harness.served import Served, serving
from PIL import Image
from playwright.sync_api import Page, expect

from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.events import project_events

pytestmark = pytest.mark.browser

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp()
SECONDS = (0, 1, 2, 55, 120, 121, 122, 1000)  # of the images of each camera


def _stamped(path, seconds: float) -> None:
    """Write a time into a file, as a camera does."""
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = datetime.fromtimestamp(NOON + seconds, UTC).strftime("%Y:%m:%d %H:%M:%S")
    with Image.open(path) as image:
        image.save(path, exif=exif, quality=95)


@pytest.fixture
def served(tmp_path) -> Iterator[Served]:
    """Two cameras; the one called b runs an hour late."""
    for camera, late in (("a", 0), ("b", 3600)):
        for number, seconds in enumerate(SECONDS):
            path = tmp_path / f"photos/{camera}/{number}.jpg"
            draw(path, CLASSES[number % 3 : number % 3 + 1], seed=number + late, size=(60, 40))
            _stamped(path, seconds + late)
    (tmp_path / "classes.txt").write_text("fox\nheron\ndeer\n")
    set_up_project(tmp_path / "project", images_folder=tmp_path / "photos", class_file=tmp_path / "classes.txt")
    with serving(tmp_path / "project") as served:
        yield served


def told(page: Page, words: str) -> None:
    expect(page.get_by_text(words, exact=False).first).to_be_visible()
    wait_until_drawn(page)


def sizes(served: Served) -> list[int]:
    query = "SELECT count(*) FROM image_event GROUP BY event_id ORDER BY event_id"
    return [size for (size,) in Database(served.project).tuples(query)]


def test_events_page_finds_events_and_changes_the_gap_by_keyboard_with_undo(browser: Contexts, served):
    page = open_page(browser, served, "Ann", "/events")
    find = page.get_by_role("button", name="Find events")
    find.focus()
    page.keyboard.press("Enter")
    told(page, "16 images in 6 events.")
    assert sizes(served) == [4, 3, 1, 4, 3, 1]
    cut = page.locator(".gaps .cut th")
    expect(cut).to_have_text("up to 2 min")

    gap = page.get_by_role("textbox", name="Images further apart")
    gap.fill("30s")
    page.keyboard.press("Enter")
    told(page, "8 events, now 6.")
    expect(cut).to_have_text("up to 60 s")
    assert sizes(served) == [4, 3, 1, 4, 3, 1], "shown, not stored"
    page.get_by_role("button", name="Use 30 s").focus()
    page.keyboard.press("Enter")
    told(page, "16 images in 8 events.")
    assert sizes(served) == [3, 1, 3, 1, 3, 1, 3, 1]
    page.get_by_role("button", name="Undo the gap of 30 s").focus()
    page.keyboard.press("Enter")
    told(page, "16 images in 6 events.")
    assert sizes(served) == [4, 3, 1, 4, 3, 1]
    assert page.troubles == []


@pytest.mark.slow
def test_events_page_splits_and_merges_events_by_mouse_with_undo(browser: Contexts, served):
    project_events.find_and_save(Database(served.project))
    page = open_page(browser, served, "Ann", "/events")
    told(page, "16 images in 6 events.")
    page.get_by_text("53 s apart, one event").first.wait_for()
    page.get_by_role("button", name="Split", exact=True).first.click()
    told(page, "Split before a/3.jpg.")
    assert sizes(served) == [3, 1, 3, 1, 4, 3, 1]
    page.get_by_role("button", name="Merge with the one before").first.click()
    told(page, "Merged before a/3.jpg.")
    assert sizes(served) == [4, 3, 1, 4, 3, 1]
    for change in ("merge before a/3.jpg", "split before a/3.jpg"):
        page.get_by_role("button", name=f"Undo the {change}").click()
        told(page, f"Undid the {change}.")
    expect(page.get_by_role("button", name="Undo the")).to_have_count(0)
    assert sizes(served) == [4, 3, 1, 4, 3, 1]
    assert page.troubles == []


@pytest.mark.slow
def test_events_page_shifts_a_folder_clock_after_folder_and_time_are_entered(browser: Contexts, served):
    project_events.find_and_save(Database(served.project))
    page = open_page(browser, served, "Ann", "/events")
    told(page, "b/0.jpg: 2024-05-01 13:00:00, 4 images in 55 s")
    shift = page.get_by_role("button", name="Shift", exact=True)
    shift.click()
    told(page, "Choose the folder whose clock was wrong.")
    folder = page.get_by_role("combobox", name="Folder")
    folder.fill("b")
    folder.press("Enter")
    expect(folder).to_have_value("b")
    time = page.get_by_label("Add to its times")
    time.fill("soon")
    shift.click()
    told(page, "is no time")
    time.fill("-1h")
    shift.click()
    told(page, "Shifted b by -1 h.")
    told(page, "b/0.jpg: 2024-05-01 12:00:00, 4 images in 55 s")
    assert page.troubles == []
