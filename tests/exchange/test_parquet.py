"""Parquet of other programs as a source of labels; our own is in test_format_round_trips.py."""

import pandas as pd
import pytest

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import FORMATS
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, PRESENT, UNSURE

IMAGES = ["a.jpg", "b.jpg", "c.jpg"]
SHAPES = {
    "wide": {
        "image": IMAGES, "id": [5, 6, 7], "fox": [1, 0, None], "owl": [True, False, True],
        "deer": pd.array([1, None, None], "Int64"), "area": [0.5, 1.5, 2.5], "place": ["a garden", None, ""],
    },
    "long": {"file_name": IMAGES * 2, "class": pd.Categorical(["fox"] * 3 + ["owl"] * 3), "state": [1, 0] * 3},
    "said": {
        "image": IMAGES, "class": ["fox"] * 3, "state": ["present", "unsure", "absent"],
        "annotator": ["Ann", None, None],
        "decided_at": pd.to_datetime(["2026-01-02T03:04:05Z"] * 3),
    },
    "lists": {"path": IMAGES, "labels": [["fox", "owl"], [], None]},
    "texts": {"image": IMAGES, "labels": ["fox|owl", "", None], "split": ["train", None, "val"]},
}  # fmt: skip
MEANT = {
    "wide": [("a", "fox", PRESENT), ("a", "owl", PRESENT), ("a", "deer", PRESENT), ("b", "fox", ABSENT),
             ("b", "owl", ABSENT), ("c", "owl", PRESENT)],
    "long": [("a", "fox", PRESENT), ("b", "fox", ABSENT), ("c", "fox", PRESENT), ("a", "owl", ABSENT),
             ("b", "owl", PRESENT), ("c", "owl", ABSENT)],
    "said": [("a", "fox", PRESENT), ("b", "fox", UNSURE), ("c", "fox", ABSENT)],
    "lists": [("a", "fox", PRESENT), ("a", "owl", PRESENT)],
    "texts": [("a", "fox", PRESENT), ("a", "owl", PRESENT)],
}  # fmt: skip


def read(path):
    problems = Problems()
    assert FORMATS["parquet"].recognize and FORMATS["parquet"].read and FORMATS["parquet"].recognize(path)
    items = list(FORMATS["parquet"].read(path, problems, ReadingOptions()).items)
    return items, problems


def contents_of(path):
    assert FORMATS["parquet"].read
    return FORMATS["parquet"].read(path, Problems(), ReadingOptions())


def test_parquet_reader_reads_exactly_the_labels_and_fields_of_each_layout(tmp_path):
    for shape, columns in SHAPES.items():
        pd.DataFrame(columns).to_parquet(tmp_path / f"{shape}.parquet")
        items, problems = read(tmp_path / f"{shape}.parquet")
        labels = [(item.image[0], given.class_name, given.state) for item in items for given in item.labels]
        assert sorted(labels) == sorted(MEANT[shape]) and not problems.count, shape
        assert [item.image for item in items if item.exhaustive] == (["a.jpg"] if shape == "wide" else [])
        facts = {item.image: item.attributes for item in items if item.attributes}
        told = {
            "wide": {name: {"id": str(5 + row), "area": f"{row}.5"} for row, name in enumerate(IMAGES)},
            "texts": {"a.jpg": {"split": "train"}, "c.jpg": {"split": "val"}},
        }
        if shape == "wide":
            assert facts["a.jpg"].pop("place") == "a garden"
        assert facts == told.get(shape, {})
        if shape == "said":
            assert items[0].labels[0][2:] == ("Ann", 1767323045.0, "") and items[1].labels[0].decided_at == 1767323045.0


def test_parquet_reader_reports_invalid_rows_and_refuses_a_damaged_file(tmp_path):
    fox = [1.0] * 20 + [3.0]
    pd.DataFrame({"image": [*map(str, range(20)), "x"], "fox": fox}).to_parquet(tmp_path / "wrong.parquet")
    (question,) = (one for one in contents_of(tmp_path / "wrong.parquet").interpretations if not one.is_sure)
    assert question.field == "numbers" and "whole numbers" in question.why
    states = {"image": [*IMAGES[:2], ""], "class": ["fox"] * 3, "state": ["maybe", None, "present"]}
    pd.DataFrame(states).to_parquet(tmp_path / "states.parquet")
    named = [sentence.partition(":")[0] for sentence in read(tmp_path / "states.parquet")[1].sentences]
    assert named == ["row 0", "row 1", "row 2"]
    content = bytearray((tmp_path / "wrong.parquet").read_bytes())
    content[4:40] = b"\xff" * 36
    (tmp_path / "wrong.parquet").write_bytes(content)
    with pytest.raises(AnnotatorError, match="cannot be read beyond row 0"):
        read(tmp_path / "wrong.parquet")
