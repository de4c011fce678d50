"""How images look: what is measured of tiny pictures made here, by whom, and what the Gallery finds by it."""

from pathlib import Path

import numpy as np
import pytest
from harness.asked import asked
from harness.gray_images import half_white, noise
from PIL import Image, ImageFilter

from annotator.exchange.project_setup import SetupSettings, set_up_project
from annotator.snapshot import gallery_listing
from annotator.snapshot.filters import GalleryFilter
from annotator.snapshot.gallery_listing import Sorting
from annotator.store.database.database import Database
from annotator.store.features.shards import list_shards
from annotator.store.images import appearances
from annotator.store.images.band_choice import save_bands
from annotator.store.pictures.appearance import measure_appearance
from annotator.worker.process import Worker

PICTURES = {
    "blurred": noise(seed=1).filter(ImageFilter.GaussianBlur(8)),
    "dark": noise(low=10, high=50, seed=2),
    "good": noise(seed=3),
    "overexposed": half_white(noise(seed=4)),
    "tiny": noise((120, 80), seed=5),
    "underexposed": noise(low=0, high=4, seed=6),
}


@pytest.fixture
def looked_at(tmp_path: Path) -> Database:
    """A project of PICTURES, in this order, that nobody has measured."""
    (tmp_path / "photos").mkdir()
    for name, picture in PICTURES.items():
        picture.save(tmp_path / "photos" / f"{name}.png")
    set_up_project(tmp_path / "project", images_folder=tmp_path / "photos")
    return Database(tmp_path / "project")


def names(db: Database, sorting: Sorting | None = None, **filter_: object) -> list[str]:
    ids = gallery_listing.get_listing(db, GalleryFilter.build(**filter_), sorting or Sorting()).get_ids(0, 100)
    return [list(PICTURES)[image_id - 1] for image_id in ids]


def measure(db: Database) -> int:
    """Have the worker measure what is not; return how often it found something to do."""
    worker, turns = Worker(db.paths.project), 0
    try:
        while worker.appearance_measurer.measure_batch():
            turns += 1
    finally:
        worker.close()
    return turns


def test_brightness_and_exposure_are_fractions_and_sharpness_falls_with_blur():
    black, white = (measure_appearance(Image.new("RGB", (50, 40), (gray,) * 3)) for gray in (0, 255))
    assert (black.brightness, black.sharpness, black.overexposed, black.underexposed) == (0, 0, 0, 1)
    assert (white.brightness, white.sharpness, white.overexposed, white.underexposed) == (1, 0, 1, 0)
    half = measure_appearance(half_white(Image.new("RGB", (400, 300), (100, 100, 100))))
    assert half.overexposed == pytest.approx(0.5, abs=0.01)
    assert half.brightness == pytest.approx((1 + 100 / 255) / 2, abs=0.01)
    sharpness = [measure_appearance(noise().filter(ImageFilter.GaussianBlur(by))).sharpness for by in (0, 1, 3, 9)]
    assert sharpness == sorted(sharpness, reverse=True) and sharpness[0] > 100 * sharpness[-1]


def test_sharpness_of_tiny_images_is_zero():
    for size in ((1, 1), (1, 300), (2, 2)):
        assert measure_appearance(Image.new("RGB", size, (9, 9, 9))).sharpness == 0


def test_brightness_and_sharpness_measures_hardly_depend_on_image_size():
    large = noise((1600, 1200)).filter(ImageFilter.GaussianBlur(6))
    small = large.resize((400, 300), Image.Resampling.BOX)
    one, other = measure_appearance(large), measure_appearance(small)
    assert one.sharpness == pytest.approx(other.sharpness, rel=0.2)
    assert one.brightness == pytest.approx(other.brightness, abs=0.01)


def test_gallery_filters_and_sorts_images_by_appearance_after_it_was_measured_once(looked_at):
    db = looked_at
    assert names(db, quality="dark") == [] and names(db, Sorting("brightness")) == list(PICTURES)
    assert measure(db) == 1 and measure(db) == 0
    assert {name: names(db, quality=name) for name in PICTURES if name != "good"} == {
        "blurred": ["blurred", "underexposed"],
        "dark": ["dark", "underexposed"],
        "overexposed": ["overexposed"],
        "tiny": ["tiny"],
        "underexposed": ["underexposed"],
    }
    assert names(db, Sorting("brightness"))[:2] == ["underexposed", "dark"]
    assert names(db, Sorting("brightness", descending=True))[0] == "overexposed"
    assert set(names(db, Sorting("sharpness"))[:2]) == {"blurred", "underexposed"}
    assert names(db, Sorting("size"))[0] == "tiny"


def test_worker_measures_image_appearance_during_embedding_without_repeating_either_step(looked_at):
    db = looked_at
    worker = Worker(db.paths.project)
    try:
        worker.image_embedder.embed_missing()
        assert not worker.appearance_measurer.measure_batch(), "nothing is left to measure"
        beside = db.tuples("SELECT image_id, brightness, hash FROM appearance ORDER BY image_id")
        shards = {path: path.stat().st_mtime_ns for path in list_shards(worker.context.get_features().folder)}
        with db.writing() as sql:
            appearances.delete(sql, [2, 3])
        worker.db.set_setting("registrations", db.get_setting("registrations", 0) + 1)
        assert worker.appearance_measurer.measure_batch()
        worker.image_embedder.embed_missing()
        assert {path: path.stat().st_mtime_ns for path in list_shards(worker.context.get_features().folder)} == shards
        alone = db.tuples("SELECT image_id, brightness, hash FROM appearance ORDER BY image_id")
        assert alone == beside, "PNGs are decoded alike for both"
    finally:
        worker.close()


def test_appearance_measurement_skips_unreadable_images_and_ends(looked_at, tmp_path):
    (tmp_path / "photos" / "good.png").unlink()
    assert measure(looked_at) == 1
    assert len(looked_at.tuples("SELECT 1 FROM appearance")) == len(PICTURES) - 1


def test_gallery_route_returns_the_sort_measure_and_refuses_unknown_orders_and_filters(looked_at):
    measure(looked_at)
    with asked(looked_at.paths.project) as app:
        [image] = app.post("/api/gallery", {"sort": "size", "start": 0, "count": 1})[1]["images"]
        assert (image["name"], image["measure"]) == ("tiny.png", "80 px")
        assert app.post("/api/gallery", {"filter": {"quality": "tiny"}, "start": 0, "count": 9})[1]["total"] == 1
        assert app.post("/api/gallery", {"sort": "beauty", "start": 0, "count": 1})[0] == 400
        assert app.post("/api/gallery", {"filter": {"quality": "ugly"}, "start": 0, "count": 1})[0] == 400


def test_appearance_is_measured_again_after_a_change_of_bands(tmp_path):
    import tifffile

    (tmp_path / "photos").mkdir()
    bands = np.zeros((40, 60, 5), np.uint16)
    bands[..., 3:], bands[:, :20] = 900, 100
    tifffile.imwrite(tmp_path / "photos" / "a.tif", bands, photometric="minisblack", planarconfig="contig")
    set_up_project(tmp_path / "project", images_folder=tmp_path / "photos", settings=SetupSettings(bands=(1, 2, 3)))
    db = Database(tmp_path / "project")
    measure(db)
    before = db.value("SELECT brightness FROM appearance")
    save_bands(db, (4, 5, 5), None)
    assert db.value("SELECT count(*) FROM appearance") == 0
    measure(db)
    assert db.value("SELECT brightness FROM appearance") != before
