"""The map: made by the worker itself, coloured by what people said, and selections that are what was drawn around."""

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator

import numpy as np
import pytest
from conftest import CLASSES, draw
from harness.feature_shards import add_features
from harness.made_maps import in_rows
from harness.person import open_page
from harness.served import Served, serving, until
from harness.short_forms import mark_slow_after
from playwright.sync_api import Page, expect

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot import image_map
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache, open_features
from annotator.store.images import selections
from annotator.store.labels import decisions
from annotator.worker.duties.map_layout import Mapmaker

IMAGES = 24
REFRESH = 10_000  # milliseconds between two requests for the colours (map.js)


def say(db: Database, image_id: int, class_id: int | None, state: int | None = 1, action: str = "label") -> str:
    name = str(uuid.uuid4())
    one = Decision(name, action, "Ann", "click", image_id=image_id, class_id=class_id, state=state)
    assert not decisions.save(db, [one]).refused
    return name


def take_back(db: Database, name: str) -> None:
    assert not decisions.save(db, [Decision(str(uuid.uuid4()), "undo", "Ann", "click", undoes=name)]).refused


def by_even_odd(places: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """Which places lie inside, one after the other, as the textbook has it."""
    inside = np.zeros(len(places), bool)
    for row, (x, y) in enumerate(places):
        for (x1, y1), (x2, y2) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
            if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
                inside[row] = not inside[row]
    return inside


def distance_to_outline(places: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """How far each place is from the nearest side, in parts of the polygon's own width and height."""
    scale = np.ptp(polygon, axis=0)
    places, corners = places / scale, polygon / scale
    nearest = np.full(len(places), np.inf)
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = ((places - start) @ (end - start) / np.square(end - start).sum()).clip(0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(places - start - along[:, None] * (end - start), axis=1))
    return nearest


@pytest.mark.slow
@pytest.mark.parametrize("size", mark_slow_after(3, [1.0, 0.3, 0.01]))
@pytest.mark.parametrize("shape", ["star", "lasso", "crossing itself"])
def test_map_selection_contains_the_images_inside_the_polygon_up_to_the_grid_resolution(db, shape, size):
    chance = np.random.default_rng(3)
    middle = np.array([0.4, 0.55])
    places = (middle + chance.uniform(-0.6, 0.6, (3000, 2)) * size).clip(0, 1).astype(np.float32)
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    if shape == "star":
        radii = np.where(np.arange(40) % 2, 0.5, 0.2)
    elif shape == "lasso":
        radii = chance.uniform(0.25, 0.5, 40)
    else:
        radii, angles = np.full(40, 0.5), angles * 3 + 0.1 * np.sin(angles)
    polygon = middle + size * radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    image_map.save_map(db.paths.map(DEFAULT_BACKBONE), np.arange(3000) + 7, places)
    chosen = np.isin(np.arange(3000) + 7, image_map.find_images_inside(image_map.get_current_map(db), polygon))
    wrong = chosen != by_even_odd(places, polygon)
    assert chosen.sum() > 300
    assert distance_to_outline(places, polygon)[wrong].max(initial=0) < 2 / image_map.SELECTION_GRID_SIDE
    assert wrong.sum() < 0.02 * len(places)


def test_map_selection_along_a_line_is_empty_and_with_fewer_than_three_corners_is_refused(db):
    map_ = in_rows(db)
    assert len(image_map.find_images_inside(map_, np.array([[0, 0.5], [1, 0.5], [0.5, 0.5]]))) == 0
    for polygon in ([[0, 0], [1, 1]], [[0, 0], [1, 1], [np.nan, 0]], [[0, 0, 0]] * 3, []):
        with pytest.raises(ValueError, match="at least 3 corners"):
            image_map.find_images_inside(map_, np.array(polygon))


def test_large_map_draws_a_subset_but_selects_all_images(db):
    ids = np.arange(1, 30_001)
    places = np.random.default_rng(0).random((30_000, 2), np.float32)
    image_map.save_map(db.paths.map(DEFAULT_BACKBONE), ids[::-1], places)
    map_ = image_map.get_current_map(db)
    assert len(map_.drawn_rows) == image_map.MAX_DRAWN_POINTS and (np.diff(map_.drawn_rows) > 0).all()
    assert np.array_equal(map_.drawn_rows, image_map.get_current_map(db).drawn_rows)
    assert map_.image_ids[0] == 1 and (map_.x[0], map_.y[0]) == tuple(places[-1]), "ids keep their places"
    selection, count, kept = image_map.save_selection(db, np.array([[-1, -1], [2, -1], [2, 2], [-1, 2]]))
    assert count == kept == 30_000 and len(selections.load(db, selection)) == 30_000


def test_saved_map_selection_over_the_limit_keeps_an_evenly_spaced_subset(db):
    kept = selections.load(db, selections.save(db, np.arange(200_000)))
    assert len(kept) == selections.MAX_IMAGES and kept[0] == 0 and kept[-1] == 199_999
    assert np.diff(kept).max() <= 5


def test_only_the_newest_map_selections_are_kept_and_loading_a_deleted_one_gives_advice(db):
    made = [selections.save(db, np.array([number])) for number in range(selections.SELECTIONS_PER_PERSON + 5)]
    assert selections.load(db, made[-1]).tolist() == [selections.SELECTIONS_PER_PERSON + 4]
    assert len(list(db.paths.selections.iterdir())) == selections.SELECTIONS_PER_PERSON
    for gone in (made[0], "../runs/1/image_ids", ""):
        with pytest.raises(AnnotatorError, match="Select the images again on the Map page"):
            selections.load(db, gone)


def test_map_colors_follow_decisions_undo_and_skips_immediately(db):
    map_ = in_rows(db)
    assert image_map.load_stage_bytes(db, map_).tolist() == [0] * IMAGES
    first = say(db, 3, 2)
    say(db, 4, 2, -1)
    say(db, 5, 2, 0)
    say(db, 6, None, None, "skip")
    say(db, 7, None, None, "done")
    assert image_map.load_stage_bytes(db, map_)[:8].tolist() == [0, 0, 2, 2, 2, 1, 3, 0]
    assert image_map.load_state_bytes(db, map_, 2)[:8].tolist() == [0, 0, 1, 2, 3, 0, 2, 0]
    assert image_map.load_state_bytes(db, map_, 1)[:8].tolist() == [0, 0, 0, 0, 0, 0, 2, 0]
    take_back(db, first)
    assert image_map.load_stage_bytes(db, map_)[2] == 0
    assert image_map.load_state_bytes(db, map_, 2)[2] == 0
    with pytest.raises(AnnotatorError, match="There is no class 99"):
        image_map.load_state_bytes(db, map_, 99)


def test_map_colors_are_correct_after_too_many_decisions_for_an_incremental_update(db, monkeypatch):
    monkeypatch.setattr(image_map, "MAX_INCREMENTAL_DECISIONS", 10)
    map_ = in_rows(db)
    image_map.load_state_bytes(db, map_, 1)
    for image_id in range(1, IMAGES):
        say(db, image_id, 1, (1, -1, 0)[image_id % 3])
    expected = [(1, 2, 3)[image_id % 3] for image_id in range(1, IMAGES)] + [0]
    assert image_map.load_state_bytes(db, map_, 1).tolist() == expected


def test_damaged_map_is_ignored_and_created_again(db):
    in_rows(db)
    path = db.paths.map(DEFAULT_BACKBONE) / image_map.POINTS_FILE
    path.write_bytes(path.read_bytes()[:100])
    assert image_map.get_current_map(db) is None
    with pytest.raises(AnnotatorError, match="There is no map yet"):
        image_map.save_selection(db, np.eye(3)[:, :2])
    made = _made(db, _features(db, 12))
    assert len(made.image_ids) == 12


def test_map_is_rebuilt_only_after_a_tenth_of_the_images_are_new(db):
    cache = _features(db, 20)
    first = _made(db, cache)
    assert first.image_ids.tolist() == list(range(1, 21))
    for count, made_again in ((2, False), (1, True)):
        start = len(cache.image_ids) + 1
        add_features(db, DEFAULT_BACKBONE, np.arange(start, start + count), np.ones((count, 8)), np.ones((count, 9, 8)))
        cache.refresh()
        maker = Mapmaker()
        maker.start_if_due(db, DEFAULT_BACKBONE, cache)
        assert (maker._thread is not None) == made_again
        if made_again:
            maker._thread.join()
    assert len(image_map.get_current_map(db).image_ids) == 23


def test_mapmaker_reports_non_finite_embeddings_once(db):
    cache = _features(db, 12)
    cache.features = cache.features[:]
    cache.features[3] = np.inf
    maker = Mapmaker()
    maker.start_if_due(db, DEFAULT_BACKBONE, cache)
    maker._thread.join()
    assert (
        "map of 12 images could not be made: Some features are not finite" in heartbeat.load_worker_state(db).last_error
    )
    ended = maker._thread
    maker.start_if_due(db, DEFAULT_BACKBONE, cache)
    assert maker._thread is ended, "not again before there is something new"


def _features(db: Database, count: int) -> FeatureCache:
    features = np.random.default_rng(0).normal(size=(count, 8))
    add_features(db, DEFAULT_BACKBONE, np.arange(1, count + 1), features, np.repeat(features[:, None], 9, axis=1))
    return open_features(db, DEFAULT_BACKBONE)


def _made(db: Database, cache: FeatureCache) -> image_map.ImageMap:
    maker = Mapmaker()
    maker.start_if_due(db, DEFAULT_BACKBONE, cache)
    maker._thread.join()
    return image_map.get_current_map(db)


@pytest.mark.slow
@pytest.mark.process
def test_worker_creates_the_map(db, processes):
    _features(db, IMAGES)
    words = [sys.executable, "-P", "-m", "annotator", "worker", str(db.paths.project)]
    with (db.paths.project / "worker-test.log").open("wb") as log:
        processes.append(subprocess.Popen(words, stdout=log, stderr=log))
    map_ = until(lambda: image_map.get_current_map(db))
    assert map_.image_ids.tolist() == list(range(1, IMAGES + 1))
    assert 0 <= map_.x.min() <= map_.x.max() <= 1


# -- the routes and the page


@pytest.fixture(scope="module")
def app(tmp_path_factory) -> Iterator[Served]:
    """An app whose map lies in rows of six, with one image present, one absent."""
    folder = tmp_path_factory.mktemp("map")
    for number in range(IMAGES):
        draw(folder / "photos" / f"{number:02}.jpg", CLASSES[number % 3 : number % 3 + 1], seed=number, size=(60, 40))
    (folder / "classes.txt").write_text("fox\nheron\n<b>deer</b>\n")
    set_up_project(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    db = Database(folder / "project")
    in_rows(db)
    say(db, 1, 1)
    say(db, 2, 1, -1)
    with serving(folder / "project") as served:
        yield served


@pytest.mark.process
def test_map_routes_return_positions_colors_and_the_selection(app):
    status, content, _ = app.get("/api/map")
    head = np.frombuffer(content, "<u4", 4)
    ids = np.frombuffer(content, "<u4", IMAGES, 16)
    x, y = np.frombuffer(content, "<u2", 2 * IMAGES, 16 + 4 * IMAGES).reshape(2, IMAGES)
    assert status == 200 and head[:3].tolist() == [IMAGES] * 3 and len(content) == 16 + 8 * IMAGES
    assert ids.tolist() == list(range(1, IMAGES + 1))
    assert x[:6].tolist() == [0, 13107, 26214, 39321, 52428, 65535] and y[-1] == 65535
    for query, expected in (
        ("by=stage", [2, 2, 0]),
        ("by=class&class=1", [1, 2, 0]),
        ("by=probability&class=1", [255]),
    ):
        status, content, headers = app.get(f"/api/map/colors?{query}&token={app.token}&")
        assert status == 200 and len(content) == IMAGES and list(content[: len(expected)]) == expected
        assert int(headers["x-annotator-map"]) == head[3]
    answer = app.post("/api/map/select", {"polygon": [[-0.1, -0.1], [0.5, -0.1], [0.5, 0.4], [-0.1, 0.4]]})
    assert answer["images"] == 6
    assert selections.load(Database(app.project), answer["selection"]).tolist() == [1, 2, 3, 7, 8, 9]
    assert app.post("/api/map/select", {"polygon": [[0.01, 0], [0.1, 0], [0, 0.1]]}) == {
        "selection": "",
        "images": 0,
        "kept": 0,
    }


@pytest.mark.process
def test_map_routes_refuse_a_wrong_token_and_invalid_queries(app):
    assert app.get("/api/map", token="x")[0] == 401
    for query, status in (("by=size", 400), ("by=class&class=fox", 400), ("by=class&class=77", 409)):
        status_seen, content, _ = app.get(f"/api/map/colors?{query}&token={app.token}&")
        assert status_seen == status and json.loads(content)["error"]


def open_map(browser, app: Served, **more) -> Page:
    page = open_page(browser, app, "Ann", "/map", **{"viewport": {"width": 1280, "height": 800}, **more})
    page.locator(f".field[data-points='{IMAGES}']").wait_for(timeout=60_000)
    return page


def place(page: Page, x: float, y: float) -> tuple[float, float]:
    """Where a place of the map is on the screen, while all of it is seen."""
    box = page.locator(".field").bounding_box()
    return box["x"] + 26 + x * (box["width"] - 52), box["y"] + 26 + y * (box["height"] - 52)


def drag(page: Page, corners: list[tuple[float, float]]) -> None:
    page.mouse.move(*place(page, *corners[0]))
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*place(page, *corner), steps=4)
    page.mouse.up()


@pytest.mark.browser
def test_map_sends_the_drawn_selection_to_the_grid(browser, app):
    page = open_map(browser, app)
    drag(page, [(-0.03, -0.03), (0.27, -0.03), (0.27, 0.5), (-0.03, 0.5)])
    page.get_by_role("button", name="Send 4 images to the grid").click()
    page.wait_for_url("**/grid?selection=*")
    selection = page.url.split("selection=")[1]
    assert "token" not in page.url
    assert selections.load(Database(app.project), selection).tolist() == [1, 2, 7, 8]
    assert page.troubles == []


@pytest.mark.slow
@pytest.mark.browser
def test_map_selects_images_by_keyboard_alone(browser, app):
    page = open_map(browser, app)
    page.keyboard.press("ArrowRight")  # the crosshair appears in the middle
    for key in ("ArrowLeft",) * 6 + ("ArrowUp",) * 4:
        page.keyboard.press(key)
    expect(page.locator(".side .words")).to_have_text("00.jpg: fox present")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Send 4 images to the grid")).to_be_enabled()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Send to the grid")).to_be_disabled()
    page.keyboard.press("a")
    page.get_by_role("button", name=f"Send {IMAGES} images to the grid").wait_for()
    page.keyboard.press("g")
    page.wait_for_url("**/grid?selection=*")


@pytest.mark.slow
@pytest.mark.browser
def test_map_shows_a_thumbnail_on_hover_and_the_large_image_by_click_or_key(browser, app):
    page = open_map(browser, app)
    page.mouse.move(*place(page, 0.2, 0))
    card = page.locator(".plane .card")
    expect(card.locator("img")).to_have_js_property("complete", True)
    expect(card).to_contain_text("01.jpg")
    expect(card).to_contain_text("1 absent")
    page.mouse.click(*place(page, 0, 0))
    large = page.locator("dialog.large")
    expect(large.get_by_role("heading")).to_have_text("00.jpg")
    expect(large.locator(".chip")).to_have_text("fox")
    page.keyboard.press("Escape")
    expect(large).to_be_hidden()
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    expect(large).to_be_visible()
    page.keyboard.press("Escape")
    page.mouse.click(*place(page, 0.1, 0.15))
    expect(large).to_be_hidden()
    page.mouse.click(*place(page, 0, 0))
    page.get_by_role("button", name="Open in Annotate").click()
    expect(page.locator(".caption")).to_contain_text("00.jpg · 1 of 3 classes answered: 1 present")
    expect(page.get_by_role("button", name="Back to Map")).to_be_visible()


@pytest.mark.slow
@pytest.mark.browser
def test_map_legend_counts_labels_and_updates_its_counts(browser, app):
    page = open_map(browser, app, clock=True)
    legend = page.get_by_role("list", name="Legend")
    expect(legend.locator("li", has_text="Some answers").locator(".count")).to_have_text("2")
    page.get_by_role("button", name="Class", exact=True).click()
    expect(legend.locator("li", has_text="Present").locator(".count")).to_have_text("1")
    expect(legend.locator("li", has_text="Absent").locator(".count")).to_have_text("1")
    page.get_by_label("Class", exact=True).select_option("<b>deer</b>")
    expect(legend.locator("li", has_text="Unanswered").locator(".count")).to_have_text(str(IMAGES))
    say(Database(app.project), 9, 3)
    page.clock.fast_forward(REFRESH)
    expect(legend.locator("li", has_text="Present").locator(".count")).to_have_text("1")
    page.get_by_role("button", name="Probability").click()
    expect(legend.locator("li", has_text="No prediction").locator(".count")).to_have_text(str(IMAGES))


@pytest.mark.slow
@pytest.mark.browser
def test_map_view_is_zoomed_and_moved_by_wheel_keys_and_drag_and_can_be_selected(browser, app):
    page = open_map(browser, app)
    every = page.get_by_role("button", name="Select all in view")
    page.mouse.move(*place(page, 0, 0))
    page.mouse.wheel(0, -900)
    every.click()
    page.get_by_role("button", name="Send 1 image to the grid").wait_for()
    page.keyboard.press("Home")
    every.click()
    page.get_by_role("button", name=f"Send {IMAGES} images to the grid").wait_for()
    for _ in range(5):
        page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Move", exact=True).click()
    for _ in range(6):
        drag(page, [(0.1, 0.1), (0.9, 0.9)])
    every.click()
    page.get_by_role("button", name="Send 1 image to the grid").wait_for()
    assert page.troubles == []


@pytest.mark.slow
@pytest.mark.browser
def test_map_page_shows_a_message_until_the_map_exists(browser, tmp_path, photos, class_file, processes):
    set_up_project(tmp_path / "project", images_folder=photos, class_file=class_file)
    app = Served(tmp_path / "project", processes)
    db = Database(tmp_path / "project")
    page = open_page(browser, app, "Ann", "/map")
    expect(page.locator(".plane .empty")).to_contain_text("The map is being made", timeout=60_000)
    in_rows(db)
    page.locator(f".field[data-points='{IMAGES}']").wait_for(timeout=60_000)
    expect(page.locator(".plane .empty")).to_be_hidden()
