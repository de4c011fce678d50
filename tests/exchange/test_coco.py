"""COCO files: what we write, pycocotools and torchvision read; what a COCO file says, and no more, we read."""

import json
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest
from harness.formats_view import (
    ALL_SOURCES,
    UNSURE_CELL,
    all_cells,
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
from pycocotools import coco as pycoco

from annotator.errors import AnnotatorError
from annotator.exchange.formats.coco import COCO
from annotator.exchange.formats.coco_results import COCO_RESULTS
from annotator.exchange.formats.contents import ImportedLabel
from annotator.records import ABSENT, PRESENT

IMAGES = [{"id": 7, "file_name": "val/a.jpg"}, {"id": 9, "file_name": "b.jpg"}]
CATEGORIES = [{"id": 18, "name": "dog", "supercategory": "animal"}, {"id": 3, "name": "car"}]


def coco_of(path) -> pycoco.COCO:
    with redirect_stdout(StringIO()):
        return pycoco.COCO(str(path))


def saved(path, document):
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def cells_that_pycocotools_reads(coco: pycoco.COCO, names, classes) -> np.ndarray:
    columns = {category["id"]: classes.index(category["name"]) for category in coco.loadCats(coco.getCatIds())}
    cells = np.full((len(names), len(classes)), -1)
    for image in coco.loadImgs(coco.getImgIds()):
        row = names.index(image["file_name"])
        for field, value in (("neg_category_ids", 0), ("unsure_category_ids", UNSURE_CELL)):
            cells[row, [columns[number] for number in image.get(field, [])]] = value
        annotations = coco.loadAnns(coco.getAnnIds(imgIds=[image["id"]]))
        cells[row, [columns[annotation["category_id"]] for annotation in annotations]] = 1
    return cells


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(names=file_names(), classes=class_names(), seed=st.integers(0, 99), block=st.integers(1, 3))
def test_pycocotools_and_our_reader_find_identical_labels_in_a_coco_export(tmp_path, names, classes, seed, block):
    cells = np.random.default_rng(seed).integers(-1, 3, (len(names), len(classes)))
    path = write(COCO, view_of(cells, classes, names, block=block), tmp_path)
    assert_same(cells_that_pycocotools_reads(coco_of(path), names, classes), cells)
    assert_same(cells_of(COCO, path, names, classes), cells)


@pytest.mark.filterwarnings("ignore:__array__ implementation")  # pycocotools 2.0 with numpy 2
def test_coco_export_writes_present_classes_as_whole_image_crowd_annotations(tmp_path):
    cells = np.array([[1, 0], [-1, 1]])
    coco = coco_of(write(COCO, view_of(cells), tmp_path))
    assert coco.getAnnIds(iscrowd=False) == []
    for annotation in coco.loadAnns(coco.getAnnIds()):
        assert coco.annToMask(annotation).all()
        assert annotation["area"] == 640 * 480
    assert [image["not_exhaustive_category_ids"] for image in coco.loadImgs(coco.getImgIds())] == [[1], [2]]


def test_torchvision_loads_images_and_labels_of_a_coco_export(tmp_path):
    from PIL import Image
    from torchvision.datasets import CocoDetection

    Image.new("RGB", (640, 480)).save(tmp_path / "a.jpg")
    path = write(COCO, view_of(np.array([[1, 0, 1]]), names=["a.jpg"]), tmp_path)
    with redirect_stdout(StringIO()):
        ((image, target),) = CocoDetection(str(tmp_path), str(path))
    assert image.size == (640, 480)
    assert [annotation["category_id"] for annotation in target] == [1, 3]


def test_coco_export_writes_one_file_per_split(tmp_path):
    names = ["a.jpg", "b.jpg", "c.jpg"]
    view = view_of(np.array([[1], [0], [1]]), names=names, splits=["train", "val", "train"])
    path = write(COCO, view, tmp_path)
    for split, expected in (("train", ["a.jpg", "c.jpg"]), ("val", ["b.jpg"])):
        coco = coco_of(path.with_name(f"labels.{split}.json"))
        assert [image["file_name"] for image in coco.loadImgs(coco.getImgIds())] == expected
    contents, _ = read(COCO, path)
    assert {item.image: item.attributes for item in contents.items if item.attributes} == {
        "a.jpg": {"split": "train"},
        "b.jpg": {"split": "val"},
        "c.jpg": {"split": "train"},
    }


def test_coco_reader_restores_the_provenance_of_model_and_assumed_labels(tmp_path):
    sources = np.array([[ALL_SOURCES.index(name) for name in ("click", "model", "assumed", "done")]])
    path = write(COCO, view_of(np.array([[1, 1, 0, 0]]), sources=sources), tmp_path)
    contents, _ = read(COCO, path)
    given = {label.class_name: label.source for item in contents.items for label in item.labels}
    assert given == {"class 0": "", "class 1": "model", "class 2": "assumed", "class 3": ""}


def test_coco_reader_marks_categories_with_boxes_present_and_none_absent(tmp_path):
    annotations = [
        {"image_id": 9, "category_id": 3, "bbox": [1, 2, 3, 4], "iscrowd": 0},
        {"image_id": 7, "category_id": 3, "segmentation": {"counts": '`[]{"', "size": [1, 1]}, "iscrowd": 1},
        {"image_id": 9, "category_id": 3, "bbox": [5, 6, 7, 8]},
    ]
    for keys in (("annotations", "images", "categories"), ("images", "categories", "annotations")):
        document = {"annotations": annotations, "images": IMAGES, "categories": CATEGORIES}
        path = saved(tmp_path / "instances.json", {key: document[key] for key in keys})
        assert COCO.recognize(path) == "a COCO file: it has annotations and categories and images"
        contents, problems = read(COCO, path)
        assert contents.classes == [("dog", "animal"), ("car", "")]
        items = list(contents.items)
        assert not problems.count
        assert {item.image for item in items} == {"val/a.jpg", "b.jpg"}
        labels = [(item.image, label) for item in items for label in item.labels]
        assert sorted(labels) == [
            ("b.jpg", ImportedLabel("car", PRESENT)),
            ("val/a.jpg", ImportedLabel("car", PRESENT)),
        ]
        assert not any(item.exhaustive for item in items)


def test_lvis_reader_imports_absent_categories_and_image_names_from_urls(tmp_path):
    image = {"id": 1, "coco_url": "http://images.cocodataset.org/val2017/1.jpg", "neg_category_ids": [3]}
    categories = [{"id": 3, "name": "aerosol_can", "synonyms": ["spray"], "def": "a can"}]
    document = {"images": [image], "categories": categories, "annotations": []}
    contents, problems = read(COCO, saved(tmp_path / "lvis.json", document))
    (item,) = contents.items
    assert (item.image, item.labels) == ("val2017/1.jpg", [ImportedLabel("aerosol_can", ABSENT)])
    assert contents.classes == [("aerosol_can", "a can")]
    assert not problems.count


@over(
    change__sentence=[
        ({"annotations": [{"image_id": 7, "category_id": 4}]}, "annotations[0]: no category has the id 4"),
        ({"annotations": [{"image_id": 8, "category_id": 3}]}, "annotations[0]: no image has the id 8"),
        ({"annotations": [{"image_id": "007", "category_id": 3}]}, "annotations[0]: no image has the id '007'"),
        ({"annotations": [{"image_id": 7}]}, "annotations[0] (line 1): Object missing required field `category_id`"),
        ({"annotations": [{"image_id": 7.5, "category_id": 3}]}, "annotations[0]: no image has the id 7.5"),
        ({"annotations": [{"image_id": 2**70, "category_id": 3}]}, "annotations[0] (line 1): "),
        ({"annotations": [5]}, "annotations[0] (line 1): Expected `object`, got `int`"),
        ({"images": [*IMAGES, {"id": 7, "file_name": "c.jpg"}]}, "images: the id 7 is there twice"),
        ({"images": [*IMAGES, {"id": 8}]}, "images[2]: it has no file_name"),
        ({"images": [*IMAGES, {"id": 8, "file_name": 5}]}, "images[2] (line 1): Expected `str`, got `int`"),
        ({"images": [{"id": 1, "file_name": "a", "neg_category_ids": [5]}]}, "images[0].neg_category_ids: no category"),
        ({"categories": [*CATEGORIES, {"id": 3, "name": "x"}]}, "categories[2]: the id 3 is there twice"),
    ]
)
def test_coco_reader_names_the_invalid_entry_of_the_json_file(tmp_path, change, sentence):
    document = {"images": IMAGES, "categories": CATEGORIES, "annotations": []} | change
    contents, problems = read(COCO, saved(tmp_path / "instances.json", document))
    list(contents.items)
    assert [sentence] == [found[: len(sentence)] for found in problems.sentences]


@over(
    document__words=[
        ({"images": IMAGES, "annotations": [{"caption": "a dog"}]}, "captions"),
        ({"images": IMAGES, "categories": CATEGORIES}, None),
        ({"annotations": [], "categories": CATEGORIES}, "no images"),
        ('{"images": [', "ends too early"),
    ]
)
def test_coco_reader_refuses_caption_incomplete_and_truncated_files(tmp_path, document, words):
    path = saved(tmp_path / "file.json", document)
    if words is None:
        assert len(list(read(COCO, path)[0].items)) == 2
        return
    with pytest.raises(AnnotatorError, match=words):
        list(read(COCO, path)[0].items)


def test_coco_results_reader_keeps_the_highest_score_per_image_and_class(tmp_path):
    saved(tmp_path / "instances.json", {"images": IMAGES, "categories": CATEGORIES, "annotations": []})
    results = [
        {"image_id": image_id, "category_id": category_id, "score": score, "bbox": [0, 0, 1, 1]}
        for image_id, category_id, score in [(9, 3, 0.25), (7, 18, 0.5), (9, 3, 0.75), (9, 18, 0.125), (9, 3, 0.5)]
    ]
    path = saved(tmp_path / "results.json", results)
    assert COCO_RESULTS.recognize(path)
    assert COCO.recognize(path) is None
    contents, problems = read(COCO_RESULTS, path)
    scores = {item.image: item.scores for item in contents.items}
    assert scores == {"val/a.jpg": {"dog": 0.5}, "b.jpg": {"car": 0.75, "dog": 0.125}}
    assert not problems.count

    contents, problems = read(COCO_RESULTS, saved(path, [*results, {"image_id": 1, "category_id": 3, "score": 1}]))
    list(contents.items)
    assert problems.sentences == ["entry [5]: no image has the id 1"]
    (tmp_path / "instances.json").unlink()
    with pytest.raises(AnnotatorError, match="must lie in the same folder"):
        read(COCO_RESULTS, path)


def test_coco_results_reader_reads_results_written_by_pycocotools(tmp_path):
    coco = coco_of(write(COCO, view_of(all_cells()), tmp_path))
    results = [{"image_id": 1, "category_id": 2, "bbox": [0, 0, 1, 1], "score": 0.5}]
    with redirect_stdout(StringIO()):
        detected = coco.loadRes(results)
    path = saved(tmp_path / "results.json", list(detected.anns.values()))
    contents, _ = read(COCO_RESULTS, path)
    assert [(item.image, item.scores) for item in contents.items] == [("folder/000000.jpg", {"class 1": 0.5})]
