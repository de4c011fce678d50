"""The film strip of an event, in a real Chromium by keyboard alone: all is answered, and taken back, as one."""

import uuid
from collections.abc import Iterator

import numpy as np
import pytest
from harness.contexts import Contexts
from harness.grids import KIND, open_grid, shown
from harness.in_events import in_events
from harness.person import (
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
from annotator.store.events import project_events
from annotator.store.labels import decisions

pytestmark = pytest.mark.browser

FOX, HERON = 1, 2


@pytest.fixture
def served(tmp_path) -> Iterator[Served]:
    """Twelve images, four to an event, and a model that takes each for a fox and for a heron."""
    with served_photos(tmp_path, 12, ["fox", "heron", "deer"]) as served:
        db = Database(served.project)
        with db.writing() as sql:
            sql.execute("UPDATE image SET captured_at = 1.7e9 + 10 * id + 100 * ((id - 1) / 4)")
        project_events.find_and_save(db)
        publish_run(db, chances(12))
        yield served


def chances(images: int) -> np.ndarray:
    """A fox and a heron on each image."""
    return np.tile([0.9, 0.8, 0.01], (images, 1)) - np.arange(images)[:, None] / 1000


def event_of(image: int) -> list[int]:
    first = (image - 1) // 4 * 4 + 1
    return list(range(first, first + 4))


def strip_of(page: Page) -> dict[int, str]:
    """Image -> its mark in the strip, "" for the image in front; once the strip is there."""
    expect(page.locator(".strip:not(.unknown) .frames button")).to_have_count(4)
    expect(page.locator(f".strip [aria-current][data-image='{on_screen(page)}']")).to_have_count(1)
    buttons = page.locator(".strip .frames button").all()
    return {int(one.get_attribute("data-image") or 0): one.get_attribute("data-mark") or "" for one in buttons}


@pytest.mark.slow
def test_annotate_answers_an_event_with_exceptions_and_undo_restores_it(browser: Contexts, served):
    page = open_page(browser, served, "Ann")
    wait_for_picture(page)
    front = on_screen(page)
    event = event_of(front)
    assert strip_of(page) == {image: "" if image == front else "same" for image in event}
    others = [image for image in event if image != front]
    looked(page)
    page.keyboard.press("Shift+Digit1")  # labels it, and stays

    # A look at another image: an answer only ends it.
    way = "ArrowRight" if front != event[-1] else "ArrowLeft"
    page.keyboard.press(f"Shift+{way}")
    beside = front + (1 if way == "ArrowRight" else -1)
    expect(page.locator(f".look img[data-image='{beside}']")).to_be_visible()
    page.keyboard.press("2")
    expect(page.locator(".look")).to_be_hidden()
    expect(page.locator(".words")).to_contain_text("Nothing was answered.")

    page.keyboard.press(f"Shift+{way}")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Escape")
    assert strip_of(page)[beside] == "left out"
    looked_around(page)
    page.keyboard.press("Shift+Enter")
    wait_for_another(page, front)
    wait_until_saved(page, 2)
    told = {image: labels_of(served, image) for image in event}
    assert told == {image: {} if image == beside else {FOX: 1} for image in event}
    sources = Database(served.project).tuples("SELECT source, count(DISTINCT batch) FROM decision GROUP BY source")
    assert dict(sources) == {"click": 0, "event": 1}
    expect(page.locator(".words")).to_contain_text("Answered 2 other images of the event.")
    page.keyboard.press("Backspace")
    wait_for_image(page, front)
    strip_of(page)
    looked_around(page)
    page.keyboard.press("Control+Enter")  # nothing else is on any of them
    wait_for_another(page, front)
    wait_until_saved(page, 4)
    told = {image: labels_of(served, image) for image in event}
    assert set(map(str, told.values())) == {str({FOX: 1, HERON: -1, 3: -1})}, "marks are of one visit"
    page.keyboard.press("Backspace")
    wait_for_image(page, front)
    page.keyboard.press("Shift+Backspace")
    page.keyboard.press("Backspace")
    wait_for_image(page, front)
    strip_of(page)
    looked(page)
    page.keyboard.press(f"Shift+{way}")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Escape")
    looked_around(page)
    page.keyboard.press("Shift+Enter")
    wait_for_another(page, front)

    seen = set()
    for _ in range(9):  # all that nobody has answered
        wait_for_picture(page)
        image = on_screen(page)
        seen.add(image)
        looked(page)
        page.keyboard.press("Space")
        wait_for_another(page, image)
        if len(seen) == 9:
            break
    assert seen == set(range(1, 13)) - {front, *others} | {beside}, "the event's other images are not handed out"
    for _ in range(9):
        page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    wait_for_image(page, front)
    wait_until_saved(page)
    assert {image: labels_of(served, image) for image in event} == {i: {FOX: 1} if i == front else {} for i in event}
    assert page.troubles == []


@pytest.mark.slow
def test_review_accepts_a_suggestion_for_the_whole_event(browser: Contexts, served):
    page = open_page(browser, served, "Ben", "/review")
    wait_for_picture(page)
    front = on_screen(page)
    strip_of(page)
    looked_around(page)
    page.keyboard.press("Shift+Y")
    expect(page.locator(".words")).to_contain_text("Answered 3 other images of the event.")
    looked(page)
    page.keyboard.press("n")
    wait_for_another(page, front)
    wait_until_saved(page, 2)
    for image in event_of(front):
        assert labels_of(served, image) == ({FOX: 1, HERON: -1} if image == front else {FOX: 1})
    page.keyboard.press("ArrowLeft")
    wait_for_image(page, front)
    strip_of(page)
    looked_around(page)
    page.keyboard.press("Shift+Enter")
    wait_until_saved(page, 3)
    assert all(labels_of(served, image) == {FOX: 1, HERON: -1} for image in event_of(front))
    for _ in range(2):
        page.keyboard.press("Backspace")
    wait_until_saved(page, 5)
    assert [labels_of(served, image) for image in event_of(front) if image != front] == [{FOX: 1}] * 3
    assert page.troubles == []


@pytest.mark.slow
def test_grid_answers_events_by_one_tile_each_and_shows_their_images_on_demand(browser: Contexts, served):
    page = open_grid(browser, served, "Cleo", "/grid?class=1")
    grid = shown(page)
    assert len(grid["tiles"]) == 3 and grid["start"] == "yes"
    expect(page.locator(".tiles .burst")).to_have_text(["×4"] * 3)
    looked(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press(",")
    dialog = page.locator("dialog.burst-dialog[open]")
    expect(dialog.locator(".tile")).to_have_count(4)
    page.keyboard.press("3")
    expect(dialog.locator(".tile[data-state='absent']")).to_have_count(1)
    other = int(dialog.locator(".tile[data-state='absent']").get_attribute("data-image") or 0)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    looked(page)
    page.keyboard.press("3")  # the third event shows none
    looked_around(page)
    page.keyboard.press("Enter")
    wait_until_saved(page, 1)
    [(first, _), (second, _), (third, _)] = grid["tiles"]
    told = {image: labels[FOX] for image in range(1, 13) if (labels := labels_of(served, image))}
    alone = set(event_of(third)) - {third}  # who contradicts the model speaks of the tile alone
    assert told == {image: -1 if image in (other, third) else 1 for image in range(1, 13) if image not in alone}
    sources = dict(Database(served.project).tuples("SELECT image_id, source FROM decision"))
    assert {sources[image] for image in (first, third, *event_of(second))} == {"grid"}
    assert list(sources.values()).count("event") == 3
    page.keyboard.press("Backspace")
    wait_until_saved(page, 2)
    assert all(labels_of(served, image) == {} for image in range(1, 13))
    assert page.troubles == []


@pytest.mark.slow
def test_autopilot_offers_events_as_single_images_and_as_grid_tiles(browser: Contexts, tmp_path):
    with served_photos(tmp_path, 32, ["fox", "heron", "deer"]) as served:
        db = Database(served.project)
        in_events(db, 4)
        for image in range(13, 33):  # as many as single labels are asked for first
            decisions.save(db, [Decision(str(uuid.uuid4()), "done", "Bob", "done", image)])
        page = open_page(browser, served, "Cleo", "/autopilot")
        until(lambda: page.evaluate(KIND) == "image")
        front = on_screen(page)
        event = event_of(front)
        beside = next(image for image in event if abs(image - front) == 1)
        assert strip_of(page) == {image: "" if image == front else "same" for image in event}
        looked(page)
        page.keyboard.press("1")
        page.keyboard.press("Shift+ArrowRight" if beside > front else "Shift+ArrowLeft")
        page.keyboard.press("Shift+ArrowDown")
        page.keyboard.press("2")
        expect(page.locator(".words")).to_contain_text("Nothing was answered.")
        assert strip_of(page)[beside] == "left out"
        looked_around(page)
        page.keyboard.press("Shift+Enter")
        wait_for_another(page, front)
        wait_until_saved(page, 1)
        given = {FOX: 1, HERON: -1, 3: -1}
        assert {image: labels_of(served, image) for image in event} == dict.fromkeys(event, given) | {beside: {}}
        expect(page.locator(".tally")).to_contain_text("3 labels found")
        page.keyboard.press("Backspace")
        wait_for_image(page, front)
        wait_until_saved(page, 2)
        assert all(labels_of(served, image) == {} for image in event)
        expect(page.locator(".tally")).to_have_text("")

        publish_run(db, chances(32))
        page.reload()
        until(lambda: page.evaluate(KIND) == "grid")
        expect(page.locator(".line")).to_contain_text("Which show fox? Probably most of 12 images on 3 tiles")
        grid = shown(page)
        looked(page)
        page.keyboard.press("ArrowRight")
        page.keyboard.press(",")
        expect(page.locator("dialog.burst-dialog[open] .tile")).to_have_count(4)
        page.keyboard.press("Escape")
        looked(page)
        page.keyboard.press("3")
        expect(page.locator(".tiles .burst")).to_have_text(["×4", "×4", "1 of 4"])
        page.keyboard.press("Enter")
        wait_until_saved(page, 1)
        third = event_of(grid["tiles"][2][0])
        told = {image: labels_of(served, image) for image in range(1, 13)}
        fox = {image: {FOX: 1} if image not in third else {} for image in told}
        assert told == fox | {third[0]: {FOX: -1}}, "who contradicts the model speaks of the tile alone"
        held = db.tuples("SELECT DISTINCT class_id FROM lease WHERE image_id <= 12 AND image_id NOT IN (1, 5, 9)")
        assert (HERON,) in held, "what the next grid's tiles stand for is nobody else's"
        page.keyboard.press("Backspace")
        wait_until_saved(page, 2)
        assert all(labels_of(served, image) == {} for image in range(1, 13))
        assert page.troubles == []
