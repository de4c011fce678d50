"""The formatted arrays of the literature: read in their own order, never trusted."""

import os
import subprocess
import sys

import numpy as np
import pytest
from harness.tiny_sets import TEST, TRUTH, is_published_protocol, make_formatted, make_voc, official_order, whole

from annotator.benchmark.datasets import draw_observed_labels, load_dataset, voc_dataset
from annotator.errors import AnnotatorError
from spmll.single_positive_sampling import sample_single_positives, split_train_validation


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("voc", "VOCdevkit/VOC2012/JPEGImages"),
        ("coco", ""),
        ("nus", "Flickr"),
        ("cub", "CUB_200_2011/CUB_200_2011/images"),
        ("cub", "CUB_200_2011/images"),
    ],
)
def test_spml_formatted_arrays_are_read_in_their_stored_image_order(tmp_path, name, folder):
    dataset = load_dataset(name, make_formatted(tmp_path, folder))
    assert is_published_protocol(dataset, [f"b{row}.jpg" for row in reversed(range(10))])
    assert np.array_equal(whole(dataset), TRUTH == 1)
    assert np.array_equal(dataset.test.truth, TEST == 1)
    assert any("read instead of the set's own files" in note for note in dataset.notes)
    assert (dataset.classes == voc_dataset.VOC_CLASSES) == (name == "voc")


def test_formatted_arrays_take_precedence_over_the_dataset_files(tmp_path):
    make_formatted(make_voc(tmp_path), "VOCdevkit/VOC2012/JPEGImages")
    assert official_order(load_dataset("voc", tmp_path))[0] == "b9.jpg"


def test_image_paths_of_formatted_arrays_may_be_bytes_with_backslashes(tmp_path):
    make_formatted(tmp_path, "Flickr", [f"actor\\b{row}.jpg" for row in range(10)])
    path = tmp_path / "formatted_train_images.npy"
    np.save(path, np.load(path).astype("S"))
    assert official_order(load_dataset("nus", tmp_path))[1] == "b1.jpg"


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..\\..\\etc\\passwd", "a/../../../etc/passwd"])
def test_formatted_image_path_outside_the_folder_is_refused(tmp_path, name):
    images = [f"b{row}.jpg" for row in range(9)]
    make_formatted(tmp_path, "VOCdevkit/VOC2012/JPEGImages", [*images, name])
    with pytest.raises(AnnotatorError, match=r"(?s)outside.*row 9.*etc/passwd"):
        load_dataset("voc", tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("linked", ["Flickr/b3.jpg", "Flickr"])
def test_link_that_leads_outside_the_dataset_folder_is_refused(tmp_path, linked):
    inside = make_formatted(tmp_path / "set", "Flickr") / linked
    inside.rename(tmp_path / "outside")
    inside.symlink_to(tmp_path / "outside")
    with pytest.raises(AnnotatorError, match=r"(?s)would lie outside.*b3\.jpg"):
        load_dataset("nus", tmp_path / "set")


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_link_within_the_dataset_folder_is_followed(tmp_path):
    folder = make_formatted(tmp_path, "Flickr") / "Flickr"
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to("elsewhere")
    assert len(load_dataset("nus", tmp_path).test) == 3


@pytest.mark.process
def test_pickled_arrays_are_refused_and_the_suggested_conversion_works(tmp_path):
    make_formatted(tmp_path, "Flickr")
    path = tmp_path / "formatted_train_images.npy"
    np.save(path, np.load(path).astype(object), allow_pickle=True)
    with pytest.raises(AnnotatorError, match=r"(?s)Python objects.*any code.*allow_pickle=True") as error:
        load_dataset("nus", tmp_path)
    command = str(error.value).split('python -c "')[1].split('"')[0]
    subprocess.run([sys.executable, "-c", command], cwd=tmp_path, check=True)
    assert len(load_dataset("nus", tmp_path).test) == 3


def test_errors_of_training_and_validation_arrays_are_reported_together(tmp_path):
    make_formatted(tmp_path, "Flickr", truth=TRUTH[:4], test=TEST * 2)
    with pytest.raises(AnnotatorError, match=r"(?s)must be \(10, classes\).*val_labels.*0 and 1 only"):
        load_dataset("nus", tmp_path)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x04K\x01.", b"\x93NUMPY\x01\x00", b"PK\x03\x04"])
def test_invalid_npy_file_among_formatted_arrays_is_named_in_the_error(tmp_path, content):
    make_formatted(tmp_path, "Flickr")
    (tmp_path / "formatted_val_labels.npy").write_bytes(content)
    with pytest.raises(AnnotatorError, match=r"formatted_val_labels.npy is (no \.npy|a damaged) array"):
        load_dataset("nus", tmp_path)


def test_array_with_too_large_a_declared_shape_is_refused_as_damaged(tmp_path):
    make_formatted(tmp_path, "Flickr")
    path = tmp_path / "formatted_val_labels.npy"
    path.write_bytes(path.read_bytes().replace(b"(3, 20)", b"(9999999999999, 20)"))
    with pytest.raises(AnnotatorError, match="damaged array"):
        load_dataset("nus", tmp_path)


def test_incomplete_formatted_arrays_are_refused_with_all_missing_files(tmp_path):
    make_formatted(tmp_path, "Flickr")
    (tmp_path / "formatted_val_images.npy").unlink()
    (tmp_path / "formatted_val_labels.npy").unlink()
    with pytest.raises(AnnotatorError, match=r"(?s)val_labels.npy is missing.*val_images.npy is missing"):
        load_dataset("nus", tmp_path)


@pytest.mark.parametrize("file", ["formatted_train_labels_obs.npy", "formatted_train_uniform_labels_obs.npy"])
def test_observed_labels_stored_with_a_dataset_replace_randomly_drawn_ones(tmp_path, file):
    make_formatted(tmp_path, "Flickr")
    labels = sample_single_positives(TRUTH, negatives=1, seed=5)
    np.save(tmp_path / file, labels.astype(float))
    dataset = load_dataset("nus", tmp_path)
    assert np.array_equal(dataset.observed, labels[split_train_validation(10)[0]])
    assert np.array_equal(draw_observed_labels(dataset), dataset.observed)
    assert any(file in note for note in dataset.notes)


def test_observed_labels_that_contradict_the_truth_are_refused(tmp_path):
    make_formatted(tmp_path, "Flickr")
    np.save(tmp_path / "formatted_train_labels_obs.npy", sample_single_positives(TRUTH[:, ::-1]))
    with pytest.raises(AnnotatorError, match="contradicts the truth in 10 of 10 rows"):
        load_dataset("nus", tmp_path)
