"""Open Images CSVs: pandas reads what we write; verified labels are answers, those of machines are scores."""

import numpy as np
import pandas as pd
import pytest
from harness.formats_view import (
    ALL_SOURCES,
    UNSURE_CELL,
    assert_same,
    cells_of,
    class_names,
    file_names,
    read,
    view_of,
    write,
)
from harness.tables import over
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotator.errors import AnnotatorError
from annotator.exchange.files.csv_cells import escape_formula
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import ImportedLabel
from annotator.exchange.formats.openimages import OPENIMAGES
from annotator.exchange.predictions.score_files import read_scores
from annotator.records import ABSENT, PRESENT

HEADER = "ImageID,Source,LabelName,Confidence\n"


def saved(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(names=file_names(), classes=class_names(), seed=st.integers(0, 99), block=st.integers(1, 3))
def test_open_images_export_is_read_alike_by_pandas_and_by_the_reader(tmp_path, names, classes, seed, block):
    cells = np.random.default_rng(seed).integers(-1, 3, (len(names), len(classes)))
    path = write(OPENIMAGES, view_of(cells, classes, names, block=block), tmp_path)
    expected = np.where(cells == UNSURE_CELL, -1, cells)  # unsure has no place in it, which Format.lost says
    table = pd.read_csv(path, keep_default_na=False, dtype={"ImageID": str, "LabelName": str, "Confidence": int})
    rows = {escape_formula(name.removesuffix(".jpg")): row for row, name in enumerate(names)}
    rows |= {escape_formula(name): row for row, name in enumerate(names)}
    described = pd.read_csv(path.with_name("labels.class-descriptions.csv"), keep_default_na=False, dtype=str)
    assert described.DisplayName.tolist() == [escape_formula(name) for name in classes]
    columns = {label: column for column, label in enumerate(described.LabelName)}
    found = np.full(cells.shape, -1)
    for image, label, confidence in zip(table.ImageID, table.LabelName, table.Confidence, strict=True):
        found[rows[image], columns[label]] = confidence
    assert_same(found, expected)
    assert_same(cells_of(OPENIMAGES, path, names, classes), expected)
    assert [name for name, _ in read(OPENIMAGES, path)[0].classes] == classes


def test_open_images_files_are_read_with_class_names_labels_and_machine_scores(tmp_path):
    path = saved(
        tmp_path / "train-annotations-human-imagelabels.csv",
        f"{HEADER}000026e7,verification,/m/014j1m,0\n000026e7,verification,/m/014sv8,1\n"
        "000026e7,machine,/m/01599,0.7\n000062a3,crowdsource-verification,/m/01599,1\n"
        "000062a3,machine,/m/014sv8,1.0\n",
    )
    saved(tmp_path / "oidv7-class-descriptions.csv", "LabelName,DisplayName\n/m/014sv8,Eye\n/m/014j1m,Apple\n/m/x,Y\n")
    saved(tmp_path / "class-descriptions-boxable.csv", '/m/01599,"Beer, cold"\n')
    assert OPENIMAGES.recognize(path)
    contents, problems = read(OPENIMAGES, path)
    assert contents.classes == []
    first, second = contents.items
    assert first.image == "000026e7.jpg"
    assert first.labels == [
        ImportedLabel("Apple", ABSENT, source="verification"),
        ImportedLabel("Eye", PRESENT, source="verification"),
    ]
    assert first.scores == {"Beer, cold": 0.7}
    assert second.labels == [ImportedLabel("Beer, cold", PRESENT, source="crowdsource-verification")]
    assert second.scores == {"Eye": 1.0}
    assert not problems.count


def test_open_images_export_of_model_and_assumed_labels_is_read_back_as_scores(tmp_path):
    sources = np.array([[ALL_SOURCES.index(name) for name in ("click", "model", "assumed")]])
    path = write(OPENIMAGES, view_of(np.array([[1, 1, 0]]), sources=sources), tmp_path)
    (item,) = read(OPENIMAGES, path)[0].items
    assert [label.class_name for label in item.labels] == ["class 0"]
    assert item.scores == {"class 1": 1.0, "class 2": 0.0}


def test_open_images_machine_labels_are_read_as_predictions(tmp_path):
    path = saved(tmp_path / "machine.csv", f"{HEADER}a,machine,cat,0.7\nb,machine,dog,1.0\n")
    file = read_scores(path, Problems())
    (block,) = file.blocks
    assert (file.format, block.images, block.classes) == ("openimages", ["a.jpg", "b.jpg"], ["cat", "dog"])
    assert np.array_equal(block.scores, [[0.7, np.nan], [np.nan, 1.0]], equal_nan=True)


@over(
    rows__sentences=[
        ("a,verification,x,yes\nb,verification,x,1\n", ["line 2: Confidence 'yes' is no number"]),
        ("a,verification,x,2\n", ["line 2: Confidence '2' does not lie between 0 and 1"]),
        ("a,verification,x,nan\n", ["line 2: Confidence 'nan' does not lie between 0 and 1"]),
        ("a,verification,x\n", ["labels.csv, line 2: 3 cells instead of 4"]),
        (",verification,x,1\n", ["line 2: ImageID and LabelName must not be empty"]),
    ]
)
def test_open_images_reader_reports_invalid_rows_by_line(tmp_path, rows, sentences):
    contents, problems = read(OPENIMAGES, saved(tmp_path / "labels.csv", HEADER + rows))
    list(contents.items)
    assert problems.sentences == sentences


@over(
    content__words=[
        (HEADER.encode() + b"a,v,caf\xe9,1\n", "Line 2 of .* is not UTF-8"),
        (HEADER.encode() + b"a,v,\0,1\n", "line 2 holds a zero byte"),
        (HEADER.encode() + b'a,v,"x,1\n', "no CSV in line 2"),
        (HEADER.encode() + b"a" * (5 << 20), "Line 2 .*more than"),
        (HEADER.encode("utf-16")[:-1], "no UTF-16"),
        (b"image,class\na,b\n", "no column ImageID"),
    ]
)
def test_open_images_reader_refuses_a_malformed_table(tmp_path, content, words):
    path = saved(tmp_path / "labels.csv", content)
    with pytest.raises(AnnotatorError, match=words):
        list(read(OPENIMAGES, path)[0].items)
