"""Facts of images: what is read of files and imports, and that each is a filter, an order and nothing to the blind."""

from pathlib import Path

import numpy as np
import pytest
from harness.asked import asked
from harness.image_fields import give, ids, photo

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot import fact_colors, fact_groups, gallery_listing, image_facts, image_map
from annotator.snapshot.filters import FILTERS_BY_NAME, GalleryFilter
from annotator.snapshot.gallery_listing import Sorting
from annotator.snapshot.image_facts import FACTS, Fact
from annotator.snapshot.sorts import SORTS_BY_NAME
from annotator.store.database.database import Database
from annotator.store.gallery import attribute_columns
from annotator.store.gallery.values import CategoryColumn


@pytest.fixture
def traps(tmp_path: Path) -> Database:
    """Six images in two folders, of two cameras, at different hours; one says nothing."""
    taken = ["2026:05:01 04:30:00", "2026:05:01 12:00:00", "2026:05:02 23:59:59", "2026:06:01 00:00:00", "", ""]
    for number, when in enumerate(taken):
        folder = "pond" if number < 3 else "wood"
        photo(
            tmp_path / "photos" / folder / f"{number}.jpg", number, f"Trap {number % 2 + 3}" if number < 5 else "", when
        )
    set_up_project(tmp_path / "project", images_folder=tmp_path / "photos")
    return Database(tmp_path / "project")


def test_gallery_filter_and_sort_order_of_each_field_share_label_and_blind_work_rules():
    for fact in FACTS:
        of_filter, sort = FILTERS_BY_NAME[fact.name], SORTS_BY_NAME[fact.name]
        assert of_filter.label == sort.label == fact.label
        assert of_filter.reveals_labels == sort.reveals_labels == fact.reveals_labels
        assert of_filter.imported == sort.imported == fact.imported
    assert Fact(
        "new", "New", image_facts.FactKind.NUMBER, image_facts.make_measure_reader("sharpness")
    ).reveals_labels, "unless it says not"
    assert SORTS_BY_NAME["column"].reveals_labels and FILTERS_BY_NAME["facts"].reveals_labels, (
        "an import may be about anything"
    )


def test_camera_hour_and_day_of_files_work_as_filters_and_sort_orders(traps):
    assert gallery_listing.list_filter_choices(traps)["camera"] == [("Trap 3", "Trap 3"), ("Trap 4", "Trap 4")]
    assert ids(traps, camera="Trap 4") == [2, 4]
    assert ids(traps, hour=(4, 13)) == [1, 2] and ids(traps, hour=(None, 4)) == [4]
    assert ids(traps, hour=(23, None)) == [3], "from the last minute of a day to its end"
    first, last = (np.datetime64(day).item() for day in ("2026-05-02", "2026-05-02"))
    assert ids(traps, captured=(first, last)) == [3] and ids(traps, captured=(first, None)) == [3, 4]
    assert ids(traps, Sorting("hour")) == [4, 1, 2, 3, 5, 6]
    assert ids(traps, Sorting("camera", descending=True)) == [4, 2, 5, 3, 1, 6]
    shown = gallery_listing.get_window(traps, GalleryFilter(), Sorting("hour"), 0, 9)
    assert shown.measures == {4: "0:00", 1: "4:30", 2: "12:00", 3: "23:59"}


def test_rereading_files_fills_in_missing_cameras_and_updates_the_filter(traps):
    from annotator.worker.features.missing_files import MissingFileWatcher

    assert ids(traps, camera="Trap 4") == [2, 4]
    with traps.writing() as sql:
        sql.execute("UPDATE image SET camera = NULL, capture_read = 0")
    assert ids(traps, camera="Trap 4") == []
    MissingFileWatcher(traps).read_capture_times()
    assert ids(traps, camera="Trap 4") == [2, 4]


def test_imported_place_and_time_take_precedence_over_those_of_the_file(traps):
    assert [name for name, _ in gallery_listing.list_filter_choices(traps)["place"]] == ["pond", "wood"]
    give(traps, "location", {1: "heath", 2: "", 6: "heath"})
    give(traps, "timestamp", {1: "2026-05-03T20:00:00", 5: "2026-05-03 21:30:00", 2: "yesterday"})
    fresh = Database(traps.paths.project)
    assert [name for name, _ in gallery_listing.list_filter_choices(fresh)["place"]] == ["heath", "pond", "wood"]
    assert ids(fresh, place="heath") == [1, 6] and ids(fresh, place="pond") == [2, 3]
    assert ids(fresh, hour=(20, 22)) == [1, 5]
    assert ids(fresh, Sorting("captured")) == [2, 3, 1, 5, 4, 6]


def test_imported_column_sorts_numerically_only_when_all_values_are_numbers(traps):
    give(traps, "weight", {1: "10", 2: "9", 3: "-2.5", 5: "1e2"})
    give(traps, "site", {1: "10", 2: "9", 3: "north", 4: "10"})
    assert ids(traps, Sorting("column", column="weight")) == [3, 2, 1, 5, 4, 6]
    assert ids(traps, Sorting("column", True, column="weight")) == [5, 1, 2, 3, 4, 6]
    assert ids(traps, Sorting("column", column="site")) == [1, 4, 2, 3, 5, 6]
    assert ids(traps, facts=(("weight", "-3..10"),)) == [2, 3] and ids(traps, facts=(("weight", "10.."),)) == [1, 5]
    assert ids(traps, facts=(("site", "9..11"),)) == [], "these are texts"
    shown = gallery_listing.get_window(traps, GalleryFilter(), Sorting("column", column="weight"), 0, 9)
    assert shown.measures == {1: "10", 2: "9", 3: "-2.5", 5: "100"}


def test_sorting_by_an_unknown_or_too_diverse_column_raises_an_error_with_advice(traps, monkeypatch):
    give(traps, "site", {1: "a", 2: "b", 3: "c"})
    with pytest.raises(AnnotatorError, match=r"There is no fact 'column:plot'\. .*hour.* Imported columns: site"):
        ids(traps, Sorting("column", column="plot"))
    with pytest.raises(AnnotatorError, match="name it"):
        ids(traps, Sorting("column"))
    monkeypatch.setattr(attribute_columns, "MAX_DISTINCT_TEXTS", 2)
    with pytest.raises(AnnotatorError, match="more than 2 different texts"):
        ids(traps, Sorting("column", column="site"))
    assert ids(traps, facts=(("site", "b"),)) == [2]


@pytest.mark.parametrize("text", ["1_000", "nan", "inf", "1,5", "", "0x10", "north"])
def test_imported_value_in_unusual_number_notation_is_treated_as_text(text):
    assert attribute_columns.parse_number(text) is None


def test_field_without_any_value_is_not_offered(traps):
    give(traps, "site", {1: "a"})
    names = [name for name, _ in gallery_listing.list_offered_facts(traps)]
    assert names == ["place", "camera", "captured", "hour", "column:site"], "nobody has measured these pictures"


def test_gallery_route_accepts_range_day_and_column_filters_and_refuses_invalid_ones(traps):
    give(traps, "weight", {1: "3", 2: "2"})
    with asked(traps.paths.project) as app:

        def listed(**more: object) -> tuple[int, object]:
            status, answer = app.post("/api/gallery", {"start": 0, "count": 9, **more})
            return status, [image["id"] for image in answer["images"]] if status == 200 else answer["error"]

        assert listed(filter={"hour": [4, 13], "camera": "Trap 3"}) == (200, [1])
        assert listed(filter={"captured": [None, "2026-05-01"]}) == (200, [1, 2])
        assert listed(filter={"facts": [["weight", "..3"]]}) == (200, [2])
        assert listed(sort="column", column="weight") == (200, [2, 1, 3, 4, 5, 6])
        assert listed(filter={"hour": None, "size": [None, None]})[0] == 200
        for wrong in ([4], [4, 5, 6], "4..5", ["4", None], [1e99, None]):
            assert listed(filter={"hour": wrong})[0] == 400, wrong
        assert listed(filter={"captured": ["2026-02-31", None]})[0] == 400
        assert listed(sort="column")[0] == 409 and listed(sort="column:weight")[0] == 400


def on_map(db: Database, count: int) -> image_map.ImageMap:
    places = np.random.default_rng(0).random((count, 2))
    image_map.save_map(db.paths.map(DEFAULT_BACKBONE), np.arange(1, count + 1), places)
    return image_map.get_current_map(db)


def colored(db: Database, name: str) -> tuple[list[int], dict]:
    values, meaning = fact_colors.encode_colors(*fact_colors.load_values(db, on_map(db, 6), name))
    return values.tolist(), meaning


def test_map_colors_points_by_category_or_by_position_between_the_extremes(traps):
    assert colored(traps, "camera") == ([0, 1, 0, 1, 0, 255], {"names": ["Trap 3", "Trap 4"], "rest": False})
    give(traps, "weight", {1: "10", 2: "20", 3: "15", 4: "10"})
    values, meaning = colored(traps, "column:weight")
    assert values == [0, 254, 127, 0, 255, 255] and meaning == {"low": "10", "high": "20"}
    values, meaning = colored(traps, "captured")
    assert values[:4] == [0, 3, 15, 254] and meaning == {"low": "2026-05-01", "high": "2026-06-01"}
    assert colored(traps, "size") == ([255] * 6, {"low": "", "high": ""}), "nobody has measured these pictures"
    with asked(traps.paths.project) as app:
        status, content = app.send("GET", "/api/map/colors?by=fact&fact=camera")
        assert status == 200 and content[:6] == bytes([0, 1, 0, 1, 0, 255]) and content[6:].startswith(b'{"names"')
        assert app.send("GET", "/api/map/colors?by=fact&fact=nothing")[0] == 409
        assert app.send("GET", "/api/map/colors?by=fact")[0] == 409


def test_map_colors_stay_distinct_despite_an_outlier():
    values = np.append(np.arange(999.0), 1e9)
    fact = image_facts.FACTS_BY_NAME["sharpness"]
    bytes_, meaning = fact_colors.encode_colors(fact, values)
    assert len(set(bytes_.tolist())) > 200 and meaning["high"].endswith("or more")


def test_category_groups_keep_the_most_frequent_and_combine_the_rest():
    codes = np.array([3, 3, 3, 0, 0, 1, 1, 2, -1, 5])
    groups = fact_groups.group_by_choice(CategoryColumn(codes, list("abcdef")), 3)
    assert groups.labels == ["d", "a", "other (3 values)"] and groups.filter_values == ["d", "a", ""]
    assert groups.codes.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, -1, 2]
    all_of_them = fact_groups.group_by_choice(CategoryColumn(codes, list("abcdef")), 5)
    assert all_of_them.labels == ["d", "a", "b", "c", "f"], "e is of no image"


def test_map_group_of_a_value_range_contains_the_images_of_its_range_filter():
    chance = np.random.default_rng(0)
    values = np.append(chance.integers(0, 101, 3000) / 100, np.nan).astype(np.float16)
    fact = image_facts.FACTS_BY_NAME["brightness"]
    groups = fact_groups.group_by_band(fact, values, (20, 40, 60))
    assert groups.labels == ["under 20%", "20% to 40%", "40% to 60%", "60% or more"]
    assert groups.filter_values == ["..20", "20..40", "40..60", "60.."]
    for number, given in enumerate(groups.filter_values):
        ends = [float(end) if end else None for end in given.split("..")]
        assert (fact.compute_range_mask(values, *ends) == (groups.codes == number)).all()
    assert groups.codes[-1] == -1
