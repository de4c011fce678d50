"""Images of the Gallery counted by a fact: what the bars of its chart say, and that each is a filter."""

import numpy as np
import pytest
from harness.blind_answers import waiting
from harness.image_fields import give, ids

from annotator.errors import AnnotatorError
from annotator.snapshot import fact_groups, image_facts
from annotator.snapshot.fact_groups import MAX_BARS, count_images
from annotator.snapshot.filters import FILTERS_BY_NAME, RANGE_SEPARATOR, FilterKind, GalleryFilter
from annotator.store.database.database import Database
from annotator.store.images import appearances, images
from annotator.store.labels import image_overlap
from annotator.store.pictures.appearance import Appearance


@pytest.fixture
def varied(db: Database) -> Database:
    """24 images of three cameras, over nine hours, 24 brightnesses and sides, and two imported columns."""
    with db.writing() as sql:
        sql.execute("UPDATE image SET captured_at = 1.7e9 + 86400 * 9 * id + 1300 * id")
        sql.execute("UPDATE image SET camera = 'Trap ' || (id % 3) WHERE id < 22")
    looks = (Appearance(one.id / 25, 20.0 * one.id, 0, 0, 100 * one.id) for one in images.load_all_images(db))
    appearances.save(db, ((one.id, look) for one, look in zip(images.load_all_images(db), looks, strict=True)))
    give(db, "animals", {image_id: image_id % 5 for image_id in range(1, 21)})
    give(db, "site", {image_id: f"site {image_id // 8}" for image_id in range(1, 25)})
    return db


def value(name: str, given: str) -> object:
    """What a request gives to the filter of a fact, as pages/gallery/filter_bar.js sends it."""
    kind = FILTERS_BY_NAME[name].kind
    if kind == FilterKind.CHOICE:
        return given
    ends = [end or None for end in given.split(RANGE_SEPARATOR)]
    if kind == FilterKind.DAYS:
        return tuple(None if end is None else np.datetime64(end).item() for end in ends)
    return tuple(None if end is None else float(end) for end in ends)


@pytest.mark.parametrize(
    "name", ["camera", "captured", "hour", "brightness", "sharpness", "column:animals", "column:site"]
)
def test_gallery_chart_bar_count_equals_the_images_of_its_filter(varied, name):
    found = count_images(varied, GalleryFilter(), name)
    assert 2 < len(found.bars) <= MAX_BARS and sum(bar.count for bar in found.bars) + found.unknown == 24
    for bar in found.bars:
        column = name.removeprefix("column:")
        given = {"facts": ((column, bar.given),)} if column != name else {name: value(name, bar.given)}
        assert len(ids(varied, **given)) == bar.count, bar


def test_gallery_chart_counts_only_images_of_the_filter(varied):
    found = count_images(varied, GalleryFilter.build(camera="Trap 1"), "column:site")
    assert {bar.label: bar.count for bar in found.bars} == {"site 0": 3, "site 1": 2, "site 2": 2}
    nothing = count_images(varied, GalleryFilter.build(camera="Trap 9"), "hour")
    assert (nothing.bars, nothing.unknown) == ([], 0)


def test_gallery_chart_combines_rare_values_in_a_last_bar_that_cannot_filter(varied):
    give(varied, "name", {image_id: f"n{image_id}" for image_id in range(1, 25)})
    whole = count_images(varied, GalleryFilter(), "column:name").bars
    assert len(whole) == 24
    groups = fact_groups.bin_values(
        image_facts.FACTS_BY_NAME["camera"],
        image_facts.CategoryColumn(np.arange(60, dtype=np.int32), [str(n) for n in range(60)]),
        40,
    )
    assert len(groups.labels) == 40 and groups.labels[-1] == "other (21 values)" and groups.filter_values[-1] == ""


def test_gallery_chart_of_imported_fields_excludes_images_awaiting_blind_answers(varied):
    image_overlap.set_overlap(varied, 2, 0.5)
    hidden = waiting(varied)
    assert hidden
    for name, all_of_them in (("column:site", 24 - len(hidden)), ("camera", 24)):
        found = count_images(varied, GalleryFilter(), name, blind="Ben")
        assert sum(bar.count for bar in found.bars) + found.unknown == all_of_them, name


def test_gallery_chart_bins_of_a_number_field_have_round_limits_despite_outliers():
    number = image_facts.Fact(
        "n", "N", image_facts.FactKind.NUMBER, image_facts.make_measure_reader("sharpness"), image_facts.format_number
    )
    values = np.append(np.linspace(0, 1, 1000), [1e6, np.nan])
    groups = fact_groups.bin_values(number, values, MAX_BARS)
    assert groups.labels[:3] == ["under 0.05", "0.05 to 0.1", "0.1 to 0.15"] and len(groups.labels) == 20
    assert groups.filter_values[2] == "0.1..0.15", "and not 0.15000000000000002"
    assert fact_groups.bin_values(number, np.full(5, 7.0), MAX_BARS).labels == ["7"]


def test_gallery_chart_refuses_an_unknown_field(varied):
    with pytest.raises(AnnotatorError, match="There is no fact 'lens'"):
        fact_groups.count_images(varied, GalleryFilter(), "lens")
