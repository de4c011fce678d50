"""The arrays of the SPML literature: given answers or the full truth, as is asked; nothing is unpickled."""

import numpy as np
import pytest
from harness.formats_view import read
from harness.tables import over

from annotator.errors import AnnotatorError
from annotator.exchange.formats.spml import SPML
from annotator.records import ABSENT, PRESENT

TRUTH = np.array([[1, 0, 1], [0, 1, 0]])
OBSERVED = np.array([[1, 0, 0], [0, 1, -1]])


def make(root, classes: str = "cat\ndog\nbird\n", **arrays):
    arrays = {"train_images": np.array(["a/1.jpg", "b\\2.jpg"]), "train_labels": TRUTH.astype(float)} | arrays
    for name, array in arrays.items():
        if array is not None:
            np.save(root / f"formatted_{name}.npy", array, allow_pickle=True)
    if classes:
        (root / "classes.txt").write_text(classes)
    return root


def items_of(path):
    contents, problems = read(SPML, path)
    items = list(contents.items)
    return contents, items, problems.sentences


def test_spml_reader_prefers_observed_labels_in_a_folder_and_reads_a_single_named_file(tmp_path):
    make(tmp_path, train_labels_obs=OBSERVED)
    for path in (tmp_path, tmp_path / "formatted_train_labels_obs.npy"):
        assert SPML.recognize(path)
        contents, items, problems = items_of(path)
        assert contents.classes == [("cat", ""), ("dog", ""), ("bird", "")]
        assert [item.image for item in items] == ["a/1.jpg", "b\\2.jpg"]
        given = [[(label.class_name, label.state) for label in item.labels] for item in items]
        assert given == [[("cat", PRESENT)], [("dog", PRESENT), ("bird", ABSENT)]]
        assert not any(item.exhaustive for item in items)
        assert not problems
    _, items, _ = items_of(tmp_path / "formatted_train_labels.npy")
    assert [[label.class_name for label in item.labels] for item in items] == [["cat", "bird"], ["dog"]]
    assert all(item.exhaustive and item.attributes == {"split": "train"} for item in items)


def test_spml_reader_supports_byte_names_validation_images_and_unnamed_classes(tmp_path):
    make(
        tmp_path,
        "",
        train_images=np.array([b"1.jpg", "\u05d0.jpg".encode()]),
        val_images=np.array(["3.jpg"]),
        val_labels=TRUTH[:1],
    )
    contents, items, problems = items_of(tmp_path)
    assert [name for name, _ in contents.classes] == ["class 1", "class 2", "class 3"]
    assert [(item.image, item.attributes["split"]) for item in items] == [
        ("1.jpg", "train"),
        ("\u05d0.jpg", "train"),
        ("3.jpg", "val"),
    ]
    assert not problems


@over(
    arrays__words=[
        ({"train_images": np.array(["a", "b"], object)}, r"Python objects.*\n.*allow_pickle=True"),
        ({"train_labels": np.array([[1, None]], object)}, "Python objects"),
        ({"train_labels": TRUTH[:1]}, r"\(1, 3\) of int64; it must be \(2, classes\)"),
        ({"train_labels": np.array(["1", "0"])}, "of numbers"),
        ({"train_images": np.arange(2)}, "it must be file names"),
        ({"val_images": np.array(["c"]), "val_labels": np.ones((1, 4))}, "different numbers of classes"),
        ({"train_images": None}, "missing"),
    ]
)
def test_unusable_spml_arrays_are_refused(tmp_path_factory, arrays, words):
    with pytest.raises(AnnotatorError, match=words):
        read(SPML, make(tmp_path_factory.mktemp("set"), **arrays))


def test_invalid_spml_values_are_reported_with_row_and_column(tmp_path):
    _, _, problems = items_of(make(tmp_path, train_labels=np.array([[1, 0, np.nan], [0, 2, 0]])))
    assert problems == [
        "formatted_train_labels.npy, row 0, column 2: nan is none of (0, 1)",
        "formatted_train_labels.npy, row 1, column 1: 2.0 is none of (0, 1)",
    ]


def test_truncated_spml_array_and_wrong_class_count_are_refused(tmp_path):
    make(tmp_path, "cat\ndog\n")
    with pytest.raises(AnnotatorError, match="names 2 classes, but the arrays have 3 columns"):
        read(SPML, tmp_path)
    path = tmp_path / "formatted_train_labels.npy"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(AnnotatorError, match="damaged"):
        read(SPML, tmp_path)


def test_spml_image_names_are_file_paths_when_the_folder_has_images(tmp_path):
    make(tmp_path)
    assert read(SPML, tmp_path)[0].folder is None
    (tmp_path / "a").mkdir()
    (tmp_path / "a/1.jpg").write_bytes(b"")
    contents, items, _ = items_of(tmp_path)
    assert contents.folder == tmp_path
    assert [item.file for item in items] == ["a/1.jpg", "b\\2.jpg"]
