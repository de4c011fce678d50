"""Every set of the comparison is read from a tiny copy of its layout that the test makes (tiny_sets.py)."""

from pathlib import Path

import numpy as np
import pytest
from harness.tiny_sets import (
    empty,
    is_published_protocol,
    make_coco,
    make_cub,
    make_folder,
    make_formatted,
    make_nus,
    make_voc,
    official_order,
    shown,
    truth_of,
    whole,
    write,
)

from annotator.benchmark.datasets import DATASETS, draw_clicks, draw_observed_labels, load_dataset, voc_dataset
from annotator.benchmark.datasets.folder import choose_part
from annotator.errors import AnnotatorError
from spmll.single_positive_sampling import sample_single_positives

# --- VOC ---


@pytest.mark.parametrize("base", ["VOCdevkit/VOC2012", "VOC2012", "."])
def test_voc_loader_follows_the_published_protocol(tmp_path, base):
    dataset = load_dataset("voc", make_voc(tmp_path, base))
    assert is_published_protocol(dataset, ["2007_000001.jpg", *(f"2008_{n:06}.jpg" for n in range(10))])
    assert dataset.classes == voc_dataset.VOC_CLASSES
    assert len(dataset.classes) == 20
    assert truth_of(dataset, "test")["2009_000001.jpg"] == {"bicycle", "boat"}
    assert all(path.is_file() for path in dataset.train.paths)


def test_voc_loader_drops_images_that_show_only_difficult_objects(tmp_path):
    main = make_voc(tmp_path) / "VOCdevkit/VOC2012/ImageSets/Main"
    for name in voc_dataset.VOC_CLASSES:
        flag = " 0" if name == "cow" else "-1"
        with (main / f"{name}_train.txt").open("a") as file:
            file.write(f"2010_000000 {flag}\n")
    dataset = load_dataset("voc", tmp_path)
    assert "2010_000000.jpg" not in official_order(dataset)
    assert not whole(dataset)[:, voc_dataset.VOC_CLASSES.index("cow")].any()


def test_voc_loader_lists_all_missing_files_and_the_supported_layouts(tmp_path):
    make_voc(tmp_path)
    for name in ("cow_train.txt", "dog_val.txt"):
        (tmp_path / "VOCdevkit/VOC2012/ImageSets/Main" / name).unlink()
    with pytest.raises(AnnotatorError) as error:
        load_dataset("voc", tmp_path)
    for words in (
        "Main/cow_train.txt is missing",
        "Main/dog_val.txt is missing",
        "JPEGImages",
        "or  formatted_{train,val}_{lab",
    ):
        assert words in str(error.value)


def test_datasets_load_from_a_relative_folder(tmp_path, monkeypatch):
    make_voc(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    assert load_dataset("voc", Path("data")).test.paths[0].is_file()
    with pytest.raises(AnnotatorError, match=r"annotations/instances_train2014\.json is missing"):
        load_dataset("coco", Path("data"))


def test_voc_loader_refuses_a_truncated_class_list(tmp_path):
    path = make_voc(tmp_path) / "VOCdevkit/VOC2012/ImageSets/Main/sofa_val.txt"
    path.write_text("2009_000000 -1\n2009_000001 maybe\n")
    with pytest.raises(AnnotatorError, match=r"(?s)line 2.*lists 1 images, aeroplane_val.txt 4"):
        load_dataset("voc", tmp_path)


def test_voc_loader_counts_and_names_missing_images(tmp_path):
    image = make_voc(tmp_path) / "VOCdevkit/VOC2012/JPEGImages/2008_000003.jpg"
    image.unlink()
    with pytest.raises(AnnotatorError, match=r"(?s)1 of the 11 images.*2008_000003.jpg"):
        load_dataset("voc", tmp_path)


# --- COCO ---


def test_coco_loader_sorts_ids_as_strings_and_skips_images_without_annotations(tmp_path):
    dataset = load_dataset("coco", make_coco(tmp_path))
    order = [100, 1000, 25, 30, 31, 581929, 9]
    assert is_published_protocol(dataset, [f"COCO_train2014_{image:012d}.jpg" for image in order])
    assert dataset.classes == ("train", "person", "toothbrush")
    assert truth_of(dataset, "test") == {
        "COCO_val2014_000000000133.jpg": {"person"},
        "COCO_val2014_000000000042.jpg": {"train", "toothbrush"},
    }
    assert any("82,081" in note for note in dataset.notes)


def test_coco_loader_names_all_damaged_annotation_files(tmp_path):
    make_coco(tmp_path)
    (tmp_path / "annotations/instances_train2014.json").write_text('{"images": [')
    (tmp_path / "annotations/instances_val2014.json").write_text('{"images": []}')
    with pytest.raises(AnnotatorError, match=r"(?s)instances_train2014.json is not complete.*val2014.*'categories'"):
        load_dataset("coco", tmp_path)


def test_coco_loader_refuses_an_annotation_of_an_unknown_category(tmp_path):
    path = make_coco(tmp_path) / "annotations/instances_val2014.json"
    path.write_text(path.read_text().replace('"category_id": 90', '"category_id": 91'))
    with pytest.raises(AnnotatorError, match="unknown category"):
        load_dataset("coco", tmp_path)


# --- NUS-WIDE ---


def test_nus_loader_draws_a_new_split_of_all_images_and_keeps_images_without_labels(tmp_path):
    dataset = load_dataset("nus", make_nus(tmp_path))
    images = [f"{n:04}_7.jpg" for n in range(14)] + [f"{n:04}_8.jpg" for n in range(6)]
    drawn = np.sort(np.random.RandomState(1200).permutation(20)[:14])  # 20 x 150,000 / 210,260, rounded
    assert is_published_protocol(dataset, [images[row] for row in drawn])
    assert len(dataset.test) == 6
    assert dataset.classes == ("sky", "airport", "moon")
    assert not whole(dataset).any(1).all()
    assert np.array_equal(dataset.observed.any(1), dataset.train.truth.any(1))
    assert any("papers' own draw" in note for note in dataset.notes)


def test_nus_loader_skips_missing_images_with_a_note(tmp_path):
    make_nus(tmp_path, listed=False)
    (tmp_path / "Flickr/zoo/0003_8.jpg").unlink()
    dataset = load_dataset("nus", tmp_path)
    assert len(dataset.train) + len(dataset.val) + len(dataset.test) == 19
    assert any("1 of 20 images have no file" in note for note in dataset.notes)
    assert dataset.classes == ("airport", "moon", "sky")  # without a list, by the alphabet


def test_nus_loader_lists_all_missing_files(tmp_path):
    make_nus(tmp_path)
    (tmp_path / "ImageList/TestImagelist.txt").unlink()
    (tmp_path / "Groundtruth/TrainTestLabels/Labels_moon_Test.txt").unlink()
    with pytest.raises(AnnotatorError, match=r"(?s)TestImagelist.txt is missing.*Labels_moon_Test.txt is missing"):
        load_dataset("nus", tmp_path)


def test_nus_loader_refuses_label_files_that_do_not_match_the_image_list(tmp_path):
    make_nus(tmp_path)
    write(tmp_path / "Groundtruth/TrainTestLabels/Labels_sky_Test.txt", 1, 0, 1)
    write(tmp_path / "Groundtruth/TrainTestLabels/Labels_moon_Test.txt", 1, 0, 2, 1, 1, 1)
    with pytest.raises(AnnotatorError, match=r"(?s)sky_Test.txt has 3 lines.*6.*moon_Test.txt must hold 0 and 1"):
        load_dataset("nus", tmp_path)


def test_nus_loader_refuses_a_folder_without_any_listed_image(tmp_path):
    make_nus(tmp_path)
    for path in tmp_path.glob("Flickr/*/*.jpg"):
        path.unlink()
    with pytest.raises(AnnotatorError, match=r"none of the 20 images is in Flickr: actor/0000_7\.jpg"):
        load_dataset("nus", tmp_path)


def test_nus_image_list_cannot_name_files_outside_the_folder(tmp_path):
    make_nus(tmp_path / "nus")
    path = tmp_path / "nus/ImageList/TestImagelist.txt"
    path.write_text(path.read_text().replace("zoo\\0000_8.jpg", "..\\..\\secret.jpg"))
    empty(tmp_path / "secret.jpg")
    with pytest.raises(AnnotatorError, match=r"secret\.jpg"):
        load_dataset("nus", tmp_path / "nus")


# --- CUB ---


@pytest.mark.parametrize("base", ["CUB_200_2011", "CUB_200_2011/CUB_200_2011", "."])
def test_cub_loader_counts_present_attributes_regardless_of_certainty(tmp_path, base):
    dataset = load_dataset("cub", make_cub(tmp_path, base))
    assert is_published_protocol(dataset, [f"Bird_{n:04}.jpg" for n in range(12) if n % 4 != 3])
    everything = truth_of(dataset, "train") | truth_of(dataset, "val") | truth_of(dataset, "test")
    assert everything == {f"Bird_{n:04}.jpg": {f"has_colour::{a}" for a in shown(n)} for n in range(12)}
    assert list(truth_of(dataset, "test")) == ["Bird_0003.jpg", "Bird_0007.jpg", "Bird_0011.jpg"]


def test_cub_loader_numbers_attributes_without_a_name_file(tmp_path):
    dataset = load_dataset("cub", make_cub(tmp_path, names="elsewhere.txt"))
    assert dataset.classes[4] == "attribute 5"


def test_cub_loader_refuses_truncated_labels(tmp_path):
    path = make_cub(tmp_path) / "CUB_200_2011/attributes/image_attribute_labels.txt"
    path.write_text("\n".join(path.read_text().splitlines()[:-2]))
    with pytest.raises(AnnotatorError, match=r"58 lines; 12 images x 5 attributes, once each, are 60"):
        load_dataset("cub", tmp_path)


def test_cub_loader_lists_all_missing_files(tmp_path):
    write(tmp_path / "CUB_200_2011/images.txt", "1 a.jpg")
    with pytest.raises(AnnotatorError, match=r"(?s)split.txt is missing.*labels.txt is missing.*images is missing"):
        load_dataset("cub", tmp_path)


# --- a folder ---


def test_hash_split_assigns_64_16_and_20_percent_to_training_validation_and_test():
    parts = np.bincount([choose_part(f"photo_{number}.jpg") for number in range(2000)], minlength=3) / 2000
    assert parts == pytest.approx([0.64, 0.16, 0.20], abs=0.03)


@pytest.mark.parametrize(
    ("name", "part"),
    # The sha256 begin with 74.., 1d.., b3.., ac.., f0.. and e1..; a3d70a3d is 0.64 of all, cccccccc 0.80.
    [("deep/fox.jpg", 0), ("heron.png", 0), ("img_11.jpg", 1), ("img_13.jpg", 1), ("fox.jpg", 2), ("0002.jpg", 2)],
)
def test_split_part_is_derived_from_the_sha256_of_the_path(name, part):
    assert choose_part(name) == part


def test_image_keeps_its_split_part_when_images_are_added(tmp_path):
    images, truth = make_folder(tmp_path)
    before = load_dataset(None, images, truth)
    for number in range(1000, 1050):
        empty(images / f"{number}.jpg")
    after = load_dataset("folder", images, truth)
    for part in ("train", "val", "test"):
        assert set(getattr(before, part).paths) < set(getattr(after, part).paths)
    assert len(after.train) + len(after.val) + len(after.test) == 110


def test_folder_loader_drops_unused_classes_and_reports_images_without_present_classes(tmp_path):
    dataset = load_dataset(None, *make_folder(tmp_path))
    assert dataset.classes == ("deer", "fox")
    notes = "\n".join(dataset.notes)
    assert "unicorn" in notes
    assert "25 of 60 images have no present class" in notes
    assert "1 cells are unsure" in notes
    everything = truth_of(dataset, "train") | truth_of(dataset, "val") | truth_of(dataset, "test")
    assert (everything["001.jpg"], everything["002.jpg"], everything["059.jpg"]) == ({"deer"}, {"fox"}, set())


def test_folder_loader_refuses_too_few_images_to_split(tmp_path):
    empty(tmp_path / "a.jpg")
    write(tmp_path / "truth.csv", "image,labels", "a.jpg,fox")
    with pytest.raises(AnnotatorError, match="too few images"):
        load_dataset(None, tmp_path, tmp_path / "truth.csv")


# --- what training gets to see ---


def test_simulated_clicks_select_one_true_label_on_a_fraction_of_images():
    truth = np.random.default_rng(0).random((200, 6)) < 0.3
    labels = draw_clicks(truth, 0.25, seed=3)
    assert labels.dtype == np.int8
    assert (labels.sum(1) <= 1).all()
    assert labels.sum() == 50
    assert truth[labels == 1].all()
    assert set(np.unique(labels)) == {0, 1}


def test_simulated_clicks_choose_true_labels_uniformly():
    truth = np.tile([True, False, True, True], (6000, 1))
    assert draw_clicks(truth, 1.0, 0).mean(0) == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3], abs=0.03)


def test_smaller_click_fraction_is_a_subset_of_a_larger_one():
    truth = np.random.default_rng(0).random((100, 4)) < 0.5
    small, large = draw_clicks(truth, 0.1, 7), draw_clicks(truth, 0.6, 7)
    assert np.array_equal(large[small == 1], small[small == 1])
    assert not np.array_equal(draw_clicks(truth, 0.1, 8), small)


def test_click_fraction_is_limited_to_images_with_a_present_label():
    truth = np.zeros((10, 3), bool)
    truth[:4, 1] = True
    assert draw_clicks(truth, 0.9, 0).sum() == 4


@pytest.mark.parametrize(("share", "seed"), [(0, 0), (1.1, 0), (float("nan"), 0), (0.5, -1), (0.001, 0)])
def test_click_fraction_or_seed_out_of_range_is_refused(share, seed):
    with pytest.raises(AnnotatorError, match="share"):
        draw_clicks(np.ones((20, 3), bool), share, seed)


def test_observed_labels_of_all_images_with_seed_0_equal_the_published_ones(tmp_path):
    dataset = load_dataset("voc", make_voc(tmp_path))
    assert np.array_equal(
        draw_observed_labels(dataset, 1.0, 0), sample_single_positives(whole(dataset))[dataset.official_rows[0]]
    )
    third = draw_observed_labels(dataset, 1.0, 3)
    assert np.array_equal(third, sample_single_positives(whole(dataset), seed=1203)[dataset.official_rows[0]])
    few = draw_observed_labels(dataset, 0.4, 3)
    assert few.any(1).sum() == round(0.4 * len(dataset.train))
    assert np.array_equal(few[few.any(1)], third[few.any(1)])


def test_observed_labels_of_a_folder_depend_on_fraction_and_seed(tmp_path):
    dataset = load_dataset(None, *make_folder(tmp_path))
    assert np.array_equal(draw_observed_labels(dataset), dataset.observed)
    assert np.array_equal(draw_observed_labels(dataset, 0.5, 4), draw_clicks(dataset.train.truth, 0.5, 4))


# --- the door ---


def test_dataset_is_recognized_by_its_layout(tmp_path):
    for name, make in (("voc", make_voc), ("coco", make_coco), ("nus", make_nus), ("cub", make_cub)):
        assert load_dataset(None, make(tmp_path / name)).name == name
    assert load_dataset(None, make_formatted(tmp_path / "arrays", "VOCdevkit/VOC2012/JPEGImages")).name == "voc"


def test_unrecognized_folder_error_lists_the_supported_datasets(tmp_path):
    empty(tmp_path / "a.jpg")
    with pytest.raises(AnnotatorError) as error:
        load_dataset(None, tmp_path)
    assert "--truth FILE.csv" in str(error.value)
    assert all(loader.title in str(error.value) for loader in DATASETS.values())


def test_dataset_loader_refuses_unknown_names_missing_folders_and_unneeded_truth_files(tmp_path):
    with pytest.raises(AnnotatorError, match="Did you mean 'coco'"):
        load_dataset("cocoo", tmp_path)
    with pytest.raises(AnnotatorError, match="There is no folder"):
        load_dataset("voc", tmp_path / "gone")
    with pytest.raises(AnnotatorError, match="brings its own truth"):
        load_dataset("voc", make_voc(tmp_path), tmp_path / "truth.csv")
    with pytest.raises(AnnotatorError, match="without its truth"):
        load_dataset("folder", tmp_path)
