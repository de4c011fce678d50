"""Hugging Face: `datasets` loads what is written, and what it saves is read; columns that mean labels are found."""

import io
import json
import os

import numpy as np
import pytest
from harness.formats_view import all_cells, assert_same, cells_of, class_names, file_names, read, view_of, write
from harness.tables import over
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.exchange.formats import FORMATS
from annotator.records import ABSENT, PRESENT

FORMAT = FORMATS["huggingface"]
PICTURE = io.BytesIO()
Image.new("RGB", (2, 2)).save(PICTURE, "jpeg")
STATES = {"present": 1, "absent": 0, "unsure": 2}


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """The library, without a network and with a cache of its own."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path_factory.mktemp("hub"))}
    library = pytest.importorskip("datasets")
    library.disable_progress_bars()
    return library


def cells_in(data, names, classes):
    """The cells of a loaded data set, as view_of takes them."""
    cells = np.full((len(names), len(classes)), -1)
    for part in data.values():
        labels = part.features["present"].feature
        assert labels.names == classes
        for row in part.select_columns(["image_name", *STATES]):
            for column, value in STATES.items():
                cells[names.index(row["image_name"]), row[column]] = value
    return cells


@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_exported_labels_survive_loading_and_saving_with_the_datasets_library(datasets, tmp_path_factory, data):
    classes, names = data.draw(class_names()), data.draw(file_names())
    cells = all_cells(max(len(names), 4), max(len(classes), 4), data.draw(st.integers(0, 9)))
    cells = cells[: len(names), : len(classes)]
    splits = data.draw(st.sampled_from([(), ["train", "a/b", "", "Ünï 🦊", "con"]]))
    splits = [splits[row % len(splits)] for row in range(len(names))] if splits else ()
    folder = tmp_path_factory.mktemp("export")
    files = [f"file {row}.jpg" for row in range(len(names))]
    view = view_of(
        cells, classes, names, splits=splits, files=files, block=2, written=data.draw(st.sampled_from(["none", "link"]))
    )
    path = write(FORMAT, view, folder, PICTURE.getvalue())
    loaded = datasets.load_dataset(str(path), cache_dir=str(folder / "cache"))
    assert_same(cells_in(loaded, names, classes), cells)
    if view.image_mode == "link":
        assert next(iter(loaded.values()))[0]["image"].size == (2, 2)
    loaded.save_to_disk(str(folder / "saved"))
    for written in (path, folder / "saved"):
        assert FORMAT.recognize and FORMAT.recognize(written)
        assert_same(cells_of(FORMAT, written, names, classes), cells)
    items = list(read(FORMAT, path)[0].items)
    assert {item.image: item.attributes.get("split", "") for item in items} == {
        name: splits[row] if splits else "" for row, name in enumerate(names)
    }


def lines(*rows):
    return "\n".join(map(json.dumps, rows))


CARD = """---
dataset_info:
  features:
  - name: image
    dtype: image
  - name: labels
    sequence:
      class_label:
        names:
          '0': cat
          '1': dog
---
"""


@over(
    files__expected=[
        (
            {"train/metadata.jsonl": lines({"file_name": "a.jpg", "labels": ["cat"], "captions": ["a cat"]})},
            {"a.jpg": [("cat", PRESENT)]},
        ),
        (
            {"metadata.jsonl": lines({"file_name": "a.jpg", "labels": [1, -1]}), "README.md": CARD},
            {"a.jpg": [("dog", PRESENT)]},
        ),
        (
            {"metadata.csv": "file_name,width,cat,dog\na.jpg,640,1,0\nb/c.jpg,640,,true\n"},
            {"a.jpg": [("cat", PRESENT), ("dog", ABSENT)], "b/c.jpg": [("dog", PRESENT)]},
        ),
        (
            {"metadata.jsonl": lines({"file_name": "a", "cat": -1, "dog": 1, "age": 7}, {"file_name": "b", "age": 3})},
            {"a": [("cat", ABSENT), ("dog", PRESENT)], "b": []},
        ),
        (
            {"metadata.jsonl": lines({"file_name": "a", "objects": {"bbox": [[1, 2, 3, 4]], "category": ["cat"]}})},
            {"a": [("cat", PRESENT)]},
        ),
        ({"metadata.csv": "file_name,label\na.jpg,cat\n"}, {"a.jpg": [("cat", PRESENT)]}),
    ]
)
def test_huggingface_label_columns_are_recognized(tmp_path_factory, files, expected):
    folder = tmp_path_factory.mktemp("set")
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    assert FORMAT.recognize and FORMAT.recognize(folder)
    contents, problems = read(FORMAT, folder)
    items = list(contents.items)
    assert not problems.count, problems.sentences
    said = {item.image: {given.class_name: given.state for given in item.labels} for item in items}
    for item in items:
        if item.exhaustive:
            said[item.image] = {name: ABSENT for name, _ in contents.classes} | said[item.image]
    assert said == {name: dict(labels) for name, labels in expected.items()}


def test_declared_integer_column_without_values_in_its_first_rows_is_no_class(tmp_path):
    features = "  - name: age\n    dtype: int64\n  - name: tame\n    dtype: bool\n"
    (tmp_path / "README.md").write_text(CARD.removesuffix("---\n") + features + "---\n")
    rows = [{"file_name": f"{number}.jpg", "labels": [1], "age": None, "tame": None} for number in range(1000)]
    (tmp_path / "metadata.jsonl").write_text(lines(*rows, rows[0] | {"age": 7, "tame": True}))
    contents, problems = read(FORMAT, tmp_path)
    last = list(contents.items)[-1]
    assert [name for name, _ in contents.classes] == ["cat", "dog", "tame"] and not problems.count
    assert {(given.class_name, given.state) for given in last.labels} == {("dog", PRESENT), ("tame", PRESENT)}
    assert any("not understood are left out: 'age'" in sentence for sentence in contents.sentences)


def test_saved_dataset_with_a_class_label_column_yields_that_label(datasets, tmp_path):
    features = datasets.Features(
        {"image_path": datasets.Value("string"), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    data = datasets.Dataset.from_dict({"image_path": ["a", "b", "c"], "label": [1, 0, -1]}, features)
    data.save_to_disk(str(tmp_path / "one"))
    data.to_parquet(str(tmp_path / "train-00000-of-00001.parquet"))
    for path in (tmp_path / "one", tmp_path / "train-00000-of-00001.parquet"):
        contents, problems = read(FORMAT, path)
        assert list(contents.classes) == [("cat", ""), ("dog", "")]
        assert [[given.class_name for given in item.labels] for item in contents.items] == [["dog"], ["cat"], []]
        assert not problems.count


@over(
    name__text__words=[
        ("metadata.jsonl", '{"file_name": "a", "labels": ["x"]}\n{"file_name"', "metadata.jsonl, line 2"),
        ("metadata.jsonl", '{"labels": ["x"]}', "no column names an image"),
        ("metadata.jsonl", '{"file_name": "a", "width": 5}', "no other column holds labels"),
        (
            "metadata.jsonl",
            lines({"file_name": "a", "label": "x"}, {"label": "x"}),
            "row 2: the column 'file_name' names",
        ),
        (
            "metadata.jsonl",
            lines(*({"file_name": "a", "c": 1} for _ in range(1000)), {"file_name": "a", "c": 7}),
            "row 1001",
        ),
        ("metadata.parquet", "PAR1half", "no whole Parquet file"),
        ("state.json", '{"_data_files": [{"filename": "../x.arrow"}]}', "_data_files does not name files"),
        ("dataset_dict.json", '{"splits": ["../up"]}', "the field splits"),
        ("README.md", "---\na: [\n---\n", "README.md: its YAML cannot be read"),
        ("README.md", "", "no data set of Hugging Face"),
    ]
)
def test_broken_huggingface_files_are_reported_with_file_and_position(tmp_path_factory, name, text, words):
    folder = tmp_path_factory.mktemp("bad")
    (folder / "dataset_info.json").write_text("{}")
    (folder / name).write_text(text)
    with pytest.raises(AnnotatorError, match=words):
        contents, problems = read(FORMAT, folder)
        list(contents.items)
        raise problems.error("It cannot be read:")


def test_dataset_card_is_readable_by_the_hub_client(datasets, tmp_path):
    cards = pytest.importorskip("huggingface_hub").DatasetCard
    for licence, expected in (("CC-BY-4.0", "cc-by-4.0"), ("ask: me", "other"), (None, None)):
        view = view_of(np.array([[1, 0]]), ["null", "a: b # 'c' \u200b"], files=["a.jpg"])
        view = type(view)(**{**vars(view), "card": {"license": licence}})
        folder = write(FORMAT, view, tmp_path / str(expected))
        card = cards.load(str(folder / "README.md")).data
        assert card.license == expected
        names = card.dataset_info["features"][5]["list"]["class_label"]["names"]
        assert list(names.values()) == ["null", "a: b # 'c' \u200b"]
