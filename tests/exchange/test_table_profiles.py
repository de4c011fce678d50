"""Tables of known tools are recognized by all of their columns together, and read without a question."""

import csv
import random

import pytest

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.csv_table import CSV
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.exchange.reading.table_profiles import TABLE_PROFILES, find_table_profile

TABLES = {
    "EcoTaxa": (
        ["img_file_name", "object_id", "object_lat", "object_annotation_category"],
        [["[t]", "[t]", "[f]", "[t]"], ["a.png", "1", "3.5", "Copepoda"], ["b.png", "2", "3.5", "detritus"]],
        {"a.png": {"Copepoda"}, "b.png": {"detritus"}},
    ),
    "CoralNet": (
        ["Name", "Row", "Column", "Label", "Annotator", "Machine suggestion 1"],
        [["a.jpg", "3", "4", "Porites", "ann", "CCA"], ["b.jpg", "3", "4", "CCA", "robot", "CCA"]],
        {"a.jpg": {"Porites"}},
    ),
    "Camelot": (
        ["Absolute Path", "Media Filename", "Species Scientific Name", "Species Common Name", "Sighting Quantity"],
        [["/m/a.jpg", "a.jpg", "Vulpes vulpes", "fox", "1"], ["/m/b.jpg", "b.jpg", "", "", "1"]],
        {"/m/a.jpg": {"Vulpes vulpes"}, "/m/b.jpg": set()},
    ),
    "Amazon Mechanical Turk": (
        ["HITId", "HITTypeId", "AssignmentId", "WorkerId", "AssignmentStatus", "Input.image_url", "label"],
        [["1", "2", "3", "4", "Approved", "a.jpg", "fox"], ["1", "2", "5", "6", "Rejected", "a.jpg", "owl"]],
        {"a.jpg": {"fox"}},
    ),
    "BigEarthNet": (
        ["patch_id", "labels", "split", "country", "contains_seasonal_snow", "contains_cloud_or_shadow"],
        [["S2A_1", "['Pastures', 'Marine waters']", "train", "Ireland", "false", "true"]],
        {"S2A_1": {"Pastures", "Marine waters"}},
    ),
}


def write_table(path, names, rows, order=None):
    order = order or range(len(names))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([row[place] for place in order] for row in [names, *rows])
    return path


def read_table(path):
    """Return the classes by image, the open questions, and the sentences."""
    contents = CSV.read(path, Problems(), ReadingOptions())
    found: dict[str, set[str]] = {}
    for item in contents.items:
        found.setdefault(item.image, set()).update(one.class_name for one in item.labels)
    return found, [one for one in contents.interpretations if not one.is_sure], contents.sentences


@pytest.mark.parametrize("tool", TABLES)
def test_table_of_a_tool_is_read_in_any_order_of_its_columns_and_the_tool_is_named(tmp_path, tool):
    names, rows, expected = TABLES[tool]
    for seed in range(3):
        order = random.Random(seed).sample(range(len(names)), len(names))
        found, questions, sentences = read_table(write_table(tmp_path / "t.csv", names, rows, order))
        assert (found, questions) == (expected, [])
        assert any(f"the columns are those of {tool}" in sentence for sentence in sentences)


@pytest.mark.parametrize("profile", TABLE_PROFILES, ids=lambda profile: profile.tool)
def test_table_without_one_of_the_columns_of_a_tool_is_not_taken_for_its(profile):
    names = sorted(profile.signature)
    assert find_table_profile([name.upper() for name in names]) is profile
    for name in names:
        assert find_table_profile([f"{one} 2" if one == name else one for one in names]) is not profile
    others = [other.tool for other in TABLE_PROFILES if other is not profile and other.signature <= profile.signature]
    assert not others, "a table fits at most one"


def test_every_profile_that_is_read_has_a_table_here():
    assert set(TABLES) == {profile.tool for profile in TABLE_PROFILES if not profile.refusal}


def test_raw_classifications_of_zooniverse_are_refused_with_the_way_on(tmp_path):
    names = ["classification_id", "user_name", "workflow_id", "annotations", "subject_data"]
    with pytest.raises(AnnotatorError, match="panoptes_aggregation"):
        read_table(write_table(tmp_path / "t.csv", names, [["1", "ann", "2", "[]", "{}"]]))


def test_option_of_the_user_comes_before_the_profile(tmp_path):
    names, rows, _ = TABLES["CoralNet"]
    path = write_table(tmp_path / "t.csv", names, rows)
    options = ReadingOptions(kept_rows="none", label_columns=("Machine suggestion 1",))
    items = list(CSV.read(path, Problems(), options).items)
    assert [[one.class_name for one in item.labels] for item in items] == [["CCA"], ["CCA"]]
