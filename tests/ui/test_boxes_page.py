"""Boxes of a detector in a real Chromium: drawn where they are, named, switched by the keys of heat maps, hidden from
those who are to answer blind."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness.autopilot_page import flown
from harness.contexts import Contexts
from harness.grids import open_grid, shown
from harness.person import open_page, wait_for_picture
from harness.review_page import reviewed
from harness.served import Served, until
from playwright.sync_api import Locator, Page, expect

from annotator.exchange.predictions import prediction_import
from annotator.exchange.predictions.prediction_import import PredictionOptions
from annotator.store.database.database import Database

pytestmark = pytest.mark.browser

PLACE = (0.25, 0.1, 0.5, 0.6)
DETECTIONS = [
    {"category": "1", "conf": 0.83, "bbox": PLACE},
    {"category": "1", "conf": 0.4, "bbox": [0.5, 0.5, 0.5, 0.5]},
]


def detect(served: Served, folder: Path, count: int) -> None:
    """Bring in boxes of a detector for the first class of this many images."""
    images = [{"file": f"{number:03}.jpg", "detections": DETECTIONS} for number in range(count)]
    path = folder / "md.json"
    path.write_text(json.dumps({"images": images, "detection_categories": {"1": "fox"}}))
    with prediction_import.prepare_predictions(
        Database(served.project), path, "MD", PredictionOptions(), "Ann"
    ) as plan:
        plan.apply()


@pytest.fixture(scope="module")
def detected(tmp_path_factory) -> Iterator[Served]:
    """An app with 12 images of 60 x 40 pixels on which the model sees a fox, and the detector two."""
    folder = tmp_path_factory.mktemp("detected")
    chances = np.tile([0.9, 0.8, 0.1, 0.1, 0.1], (12, 1)) - np.arange(12)[:, None] / 1000
    with reviewed(folder, chances) as served:
        detect(served, folder, 12)
        yield served


def assert_lies_in(boxes: Locator, picture: Locator) -> None:
    """The surest box is where the detector has it on the picture, which keeps its shape in the middle of its place."""
    box = until(boxes.locator("rect.line.surest").bounding_box)
    place = until(picture.bounding_box)
    scale = min(place["width"] / 60, place["height"] / 40)
    wide, high = 60 * scale, 40 * scale
    left, top = place["x"] + (place["width"] - wide) / 2, place["y"] + (place["height"] - high) / 2
    wanted = [left + PLACE[0] * wide, top + PLACE[1] * high, PLACE[2] * wide, PLACE[3] * high]
    # The box that a browser gives of a rectangle may hold its line.
    assert [box["x"], box["y"], box["width"], box["height"]] == pytest.approx(wanted, abs=4.5)


def visible_heatmaps(page: Page) -> int:
    return page.locator(".stage .heatmap").evaluate_all("all => all.filter((one) => one.style.opacity > 0).length")


def test_review_shows_predicted_boxes_and_the_h_key_switches_to_the_heat_map_and_off(browser: Contexts, detected):
    page = open_page(browser, detected, "Ann", "/review")
    wait_for_picture(page)
    boxes = page.locator(".stage .boxes")
    expect(boxes.locator("rect.line")).to_have_count(2)
    assert_lies_in(boxes, page.locator(".stage .frame"))
    expect(page.locator(".caption")).to_contain_text("boxes of MD, 0.83, 0.40")
    words = (
        "boxes of MD, 0.83, 0.40: from the left 25 % to 75 %, from the top 10 % to 70 %; from the left 50 % to 100 %"
    )
    expect(page.get_by_role("img", name=words)).to_have_count(1)
    assert visible_heatmaps(page) == 0
    switch = page.locator(".heat-switch")
    expect(switch).to_contain_text("Boxes")
    page.keyboard.press("h")
    expect(boxes).to_have_count(0)
    expect(switch).to_contain_text("Heat map")
    expect(switch).to_have_attribute("aria-pressed", "true")
    page.locator(".stage .heatmap").first.wait_for(state="attached")
    assert visible_heatmaps(page) == 1
    page.keyboard.press("h")
    expect(switch).to_have_attribute("aria-pressed", "false")
    assert visible_heatmaps(page) == 0 and boxes.count() == 0
    page.keyboard.press("h")
    expect(boxes).to_have_count(1)
    page.keyboard.press("ArrowDown")  # a suggestion without boxes has its heat map
    expect(boxes).to_have_count(0)
    assert visible_heatmaps(page) == 1
    page.keyboard.press("PageUp")
    page.keyboard.press("ArrowUp")
    assert_lies_in(boxes, page.locator(".stage .frame"))
    assert page.troubles == []


@pytest.mark.slow
def test_grid_shows_boxes_while_shift_is_held_and_the_heat_map_the_next_time(browser: Contexts, detected):
    page = open_grid(browser, detected, "Ben", "/grid?class=1")
    tile = page.locator(".tile").first
    boxes = page.locator(".tile .boxes")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.down("Shift")
    expect(boxes).to_have_count(1)
    assert_lies_in(tile.locator(".boxes"), tile.locator("img").first)
    expect(page.locator(".words")).to_have_text("Boxes of MD, 0.83, 0.40.")
    page.keyboard.up("Shift")
    expect(boxes).to_have_count(0)
    expect(page.locator(".words")).to_be_empty()
    page.keyboard.down("Shift")
    expect(tile.locator(".heatmap")).to_have_count(1)
    expect(boxes).to_have_count(0)
    page.keyboard.up("Shift")
    page.keyboard.press("PageUp")
    page.keyboard.down("Shift")
    expect(page.locator(".enlarged").get_by_role("img", name="boxes of MD, 0.83, 0.40")).to_have_count(1)
    expect(page.locator(".enlarged")).to_contain_text("boxes of MD, 0.83, 0.40")
    page.keyboard.up("Shift")
    expect(page.locator(".enlarged .boxes")).to_have_count(0)
    assert page.troubles == []


@pytest.mark.slow
def test_audit_grid_shows_no_boxes(browser: Contexts, tmp_path):
    chances = np.random.default_rng(0).uniform(0.31, 0.99, (30, 1))
    with flown(tmp_path, ["fox"], chances, drawn=12) as served:
        detect(served, tmp_path, 30)
        page = open_page(browser, served, "Blind", "/annotate")
        with page.expect_response("**/api/grid") as answered:
            page.goto(f"{served.address}/grid?audit=1")
        assert not [tile for grid in answered.value.json()["items"] for tile in grid["tiles"] if tile["boxes"]]
        page.locator(".tile").first.wait_for()
        shown(page)
        page.keyboard.down("Shift")
        expect(page.locator(".words")).to_contain_text("this is an audit")
        assert page.locator(".boxes").count() == 0
        page.keyboard.up("Shift")
