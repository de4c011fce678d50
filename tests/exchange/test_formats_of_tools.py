"""Exports of other tools as people have them: LabelMe, LabelImg, YOLO, CVAT, FiftyOne, CreateML, VIA, COCO.

Each layout is a small real folder of drawn images, imported by the command line. What could be wrong is asked.
"""

import csv
import json
import zipfile
from pathlib import Path

import pytest
from conftest import draw
from harness.formats_view import read
from harness.tables import over

from annotator.errors import AnnotatorError
from annotator.exchange.formats import FORMATS
from annotator.exchange.imports.label_files import match_formats

XML = "<annotation><filename>{}</filename>{}</annotation>"
OBJECT = "<object><name>{}</name><bndbox><xmin>1</xmin></bndbox></object>"
BOX = "0.5 0.5 0.2 0.2"


def put(root: Path, files: dict[str, object]) -> Path:
    """Write files: images are drawn, dictionaries and lists are JSON."""
    for seed, (name, content) in enumerate(files.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            draw(path, seed=seed, size=(48, 36))
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
    return root


@pytest.fixture
def cells(annotator, tmp_path):
    """Imports a source into a new project and returns image -> its known cells, as an export has them."""

    def imported(source: Path, *options: object) -> dict[str, dict[str, str]]:
        project, table = tmp_path / "project", tmp_path / "out.csv"
        imported.said = annotator("import", project, source, *options, "--yes").stdout
        annotator("export", project, table, "--overwrite")
        with table.open(newline="") as file:
            return {
                row.pop("image"): {name: value for name, value in row.items() if value} for row in csv.DictReader(file)
            }

    return imported


def refused(annotator, tmp_path, source: Path, *options: object) -> str:
    """Returns the error of an import that stores nothing."""
    done = annotator("import", tmp_path / "project", source, *options, "--yes", code=1)
    assert not (tmp_path / "project/project.db").exists()
    return done.stderr


def labelme(flags=None, shapes=(), image="", **more):
    return {"version": "5.2.1", "flags": flags or {}, "shapes": list(shapes), "imagePath": image, **more}


def test_labelme_flags_and_shape_labels_are_imported_as_answers(cells, tmp_path):
    photos = put(
        tmp_path / "photos",
        {
            "a.jpg": None,
            "deep/b.jpg": None,
            "c.jpg": None,
            "d.jpg": None,
            "a.json": labelme({"fox": True, "deer": False, "__ignore__": False}, image="a.jpg"),
            "deep/b.json": labelme({"fox": None}, [{"label": "bird"}, {"label": "_background_"}], "..\\deep\\b.jpg"),
            "c.json": labelme({"fox": True, "__ignore__": True}, image="c.jpg"),
            "d.json": labelme({}, [{"label": "fox", "score": 0.4}], "d.jpg"),
        },
    )
    assert cells(photos) == {"a.jpg": {"fox": "1", "deer": "0"}, "c.jpg": {}, "d.jpg": {}, "deep/b.jpg": {"bird": "1"}}
    assert "1 shape has a score" in cells.said


def test_labelme_shapes_with_scores_are_imported_as_present_when_marked_checked(cells, tmp_path):
    shapes = [{"label": "fox", "score": 0.4}]
    photos = put(tmp_path / "photos", {"a.jpg": None, "a.json": labelme({}, shapes, "a.jpg", checked=True)})
    assert cells(photos) == {"a.jpg": {"fox": "1"}}


def test_labelme_flags_that_are_all_false_require_the_absent_option(annotator, cells, tmp_path):
    photos = put(tmp_path / "photos", {"a.jpg": None, "a.json": labelme({"fox": False}, image="a.jpg")})
    assert "--absent false" in refused(annotator, tmp_path, photos)
    assert cells(photos, "--absent", "false") == {"a.jpg": {"fox": "0"}}


def test_label_file_that_names_another_image_is_refused(annotator, tmp_path):
    photos = put(tmp_path / "photos", {"a.jpg": None, "b.jpg": None, "a.json": labelme({"fox": True}, image="b.jpg")})
    assert "a.json: it names the image 'b.jpg', but 'a.jpg' beside it" in refused(annotator, tmp_path, photos)
    photos = put(tmp_path / "other", {"a.jpg": None, "b.jpg": None, "a.xml": XML.format("b.jpg", OBJECT.format("fox"))})
    assert "a.xml: it names the image 'b.jpg', but 'a.jpg' beside it" in refused(annotator, tmp_path, photos)


@over(
    files=[
        {"a.jpg": None, "a.xml": XML.format("a.jpg", OBJECT.format("fox"))},
        {"a.jpg": None, "a.xml": XML.format("a", OBJECT.format("fox"))},
        {"a.jpg": None, "a.xml": XML.format("C:\\\\photos\\\\old.jpg", OBJECT.format("fox"))},
        {"a.jpg": None, "a.xml": XML.format("a.png", OBJECT.format("fox")).encode("utf-16")},
        {"images/a.jpg": None, "annotations/a.xml": XML.format("a.jpg", OBJECT.format("fox"))},
        {"JPEGImages/a.jpg": None, "Annotations/a.xml": XML.format("a", OBJECT.format("fox"))},
        {"JPEGImages/a.PNG": None, "Annotations/a.xml": XML.format("a.jpg", OBJECT.format("fox"))},
    ]
)
def test_labelimg_xml_is_found_next_to_the_image_or_nearby(files, tmp_path_factory):
    root = put(tmp_path_factory.mktemp("set"), files)
    assert [format_.name for format_, _ in match_formats(root)] == ["voc"]
    (item,) = items_of("voc", root)
    assert (Path(item.file).stem, [given.class_name for given in item.labels]) == ("a", ["fox"])


def items_of(name: str, path: Path):
    contents, problems = read(FORMATS[name], path)
    items = list(contents.items)
    assert problems.sentences == []
    return items


def test_equal_image_names_in_two_splits_stay_separate_images(cells, tmp_path):
    files = {"train/1.jpg": None, "valid/1.jpg": None}
    files |= {"train/1.xml": XML.format("1.jpg", OBJECT.format("fox"))}
    files |= {"valid/1.xml": XML.format("1.jpg", OBJECT.format("deer"))}
    assert cells(put(tmp_path / "set", files)) == {"train/1.jpg": {"fox": "1"}, "valid/1.jpg": {"deer": "1"}}


def test_xml_with_entities_is_refused_and_named(annotator, tmp_path):
    bomb = '<!DOCTYPE a [<!ENTITY b "bb">]><annotation><filename>&b;</filename></annotation>'
    photos = put(tmp_path / "photos", {"a.jpg": None, "a.xml": bomb})
    assert "a.xml declares a document type or entities" in refused(annotator, tmp_path, photos)


@over(
    files=[
        {"a.jpg": None, "a.txt": f"1 {BOX}\n", "classes.txt": "fox\ndeer\n"},
        {"in/a.jpg": None, "in/a.txt": f"1 {BOX}\n", "in/classes.txt": "fox\ndeer\n"},
        {"train/a.jpg": None, "train/a.txt": f"1 {BOX}\n", "train/_darknet.labels": "fox\ndeer\n"},
        {"data/a.jpg": None, "data/a.txt": f"1 {BOX}\n", "obj.names": "fox\ndeer\n", "images.txt": "data/a.jpg\n"},
        {"images/a.jpg": None, "labels/a.txt": f"1 {BOX}\n", "labels/classes.txt": "fox\ndeer\n"},
        {"images/a.jpg": None, "labels/a.txt": f"1 {BOX}\n", "animals.yaml": "names: [fox, deer]\n"},
        {"a.jpg": None, "a.txt": f"1 {BOX}\n", "animals.names": "fox\ndeer\n"},
        {"a.jpg": None, "labels/a.txt": f"1 {BOX}\n", "labels/classes.txt": "\ufefffox\r\ndeer\r\n"},
        {
            "obj_train_data/a.jpg": None,
            "obj_train_data/a.txt": f"1 {BOX}\n",
            "obj_valid_data/b.jpg": None,
            "obj.names": "fox\ndeer\n",
            "obj.data": "classes = 2\ntrain = data/train.txt\nnames = data/obj.names\n",
            "train.txt": "data/obj_train_data/a.jpg\n",
        },
    ]
)
def test_yolo_reader_finds_labels_in_the_layouts_of_common_tools(files, tmp_path_factory):
    root = put(tmp_path_factory.mktemp("set"), files)
    assert [format_.name for format_, _ in match_formats(root)] == ["yolo"]
    first = items_of("yolo", root)[0]
    assert (Path(first.file).name, [given.class_name for given in first.labels]) == ("a.jpg", ["deer"])


def test_darknet_labels_without_images_refer_to_project_images(tmp_path):
    files = {"obj.names": "fox\ndeer\n", "obj.data": "names = data/obj.names\ntrain = data/train.txt\n"}
    files |= {"train.txt": "data/obj_train_data/in/a.png\n", "obj_train_data/in/a.txt": f"1 {BOX}\n"}
    (item,) = items_of("yolo", put(tmp_path / "set", files))
    assert item.image == "data/obj_train_data/in/a.png"
    assert ([given.class_name for given in item.labels], dict(item.attributes)) == (["deer"], {"split": "train"})


def test_yolo_box_confidence_is_a_score_and_not_an_answer(annotator, cells, tmp_path):
    files = {"a.jpg": None, "a.txt": f"0 {BOX} 0.31\n0 {BOX} 0.62\n1 {BOX}\n", "classes.txt": "fox\ndeer\n"}
    photos = put(tmp_path / "photos", files | {"b.jpg": None, "b.txt": "1 0 0 1 0 1 1\n"})  # b: a polygon
    assert cells(photos) == {"a.jpg": {"deer": "1"}, "b.jpg": {"deer": "1"}}
    assert "2 boxes have a confidence" in cells.said
    assert [dict(item.scores) for item in items_of("yolo", photos)] == [{"fox": 0.62}, {}]


def test_yolo_boxes_without_class_names_are_refused_with_advice(annotator, tmp_path):
    photos = put(tmp_path / "photos", {"a.jpg": None, "a.txt": f"0 {BOX}\n"})
    assert "classes.txt with one class a line" in refused(annotator, tmp_path, photos)


def test_text_captions_next_to_images_are_not_recognized_as_yolo(tmp_path):
    photos = put(tmp_path / "photos", {"a.jpg": None, "a.txt": "0 foxes and 1 deer here\n", "classes.txt": "fox\n"})
    assert match_formats(photos) == []


def test_unpacked_cvat_export_reads_labels_per_subset_image(cells, annotator, tmp_path):
    xml = (
        '<annotations><version>1.1</version><image id="0" name="in/a.jpg" subset="Train"><tag label="fox"/></image>'
        '<image id="1" name="a.jpg" subset="Test"><tag label="deer"/></image></annotations>'
    )
    files = {"images/Train/in/a.jpg": None, "images/Test/a.jpg": None, "annotations.xml": xml}
    root = put(tmp_path / "export", files)
    expected = {"images/Test/a.jpg": {"deer": "1"}, "images/Train/in/a.jpg": {"fox": "1"}}
    assert cells(root) == expected


def test_import_of_a_folder_finds_a_label_file_without_extension(cells, tmp_path):
    xml = '<annotations><version>1.1</version><image id="0" name="a.jpg"><tag label="fox"/></image></annotations>'
    folder = put(tmp_path / "photos", {"a.jpg": None, "CVAT": xml, "README": "[all rights reserved]\n"})
    assert cells(folder) == {"a.jpg": {"fox": "1"}}
    assert "Labels are read from CVAT" in cells.said


@pytest.mark.slow
def test_fiftyone_labels_may_be_numbers_names_lists_or_empty(cells, tmp_path):
    labels = {"a": 1, "in/b": None, "c": "fox", "d": {"label": 0, "confidence": 0.9}}
    labels |= {"e.png": [{"label": "fox"}, {"label": "deer", "bounding_box": [0, 0, 1, 1]}]}
    images = dict.fromkeys(("data/a.jpg", "data/in/b.png", "data/c.jpg", "data/d.jpg", "data/e.png"))
    root = put(tmp_path / "set", images | {"labels.json": {"classes": ["fox", "deer"], "labels": labels}})
    assert cells(root) == {
        "a.jpg": {"deer": "1"},
        "c.jpg": {"fox": "1"},
        "d.jpg": {},
        "e.png": {"fox": "1", "deer": "1"},
        "in/b.png": {},
    }
    assert {item.image: dict(item.scores) for item in items_of("fiftyone-labels", root)}["d.jpg"] == {"fox": 0.9}


@over(label=[2, -1, 0.5, True, {"label": "fox", "confidence": "high"}, {}])
def test_invalid_fiftyone_label_is_reported_with_its_key(label, tmp_path_factory):
    root = put(tmp_path_factory.mktemp("set"), {"labels.json": {"classes": ["fox", "deer"], "labels": {"a": label}}})
    contents, problems = read(FORMATS["fiftyone-labels"], root)
    found = list(contents.items)
    assert problems.sentences[0].startswith("labels.a: ") if label != {} else not found[0].labels


@over(
    entries__expected=[
        ([{"image": "a.jpg", "annotations": [{"label": "fox", "coordinates": {}}]}], (["fox"], {})),
        ([{"image": "a.jpg", "annotations": ["fox", "deer"]}], (["fox", "deer"], {})),
        ([{"imagefilename": "a.jpg", "annotation": [{"label": "fox"}, {"label": "fox"}]}], (["fox"], {})),
        ([{"image": "a.jpg", "annotations": [{"label": "fox", "confidence": 0.3}]}], ([], {"fox": 0.3})),
    ]
)
def test_createml_annotations_are_imported_as_labels_or_as_scores_with_a_confidence(
    entries, expected, tmp_path_factory
):
    path = put(tmp_path_factory.mktemp("set"), {"labels": entries}) / "labels"
    assert "createml" in [format_.name for format_, _ in match_formats(path)]
    (item,) = items_of("createml", path)
    assert ([given.class_name for given in item.labels], dict(item.scores)) == expected


def via(**files):
    return {
        f"{name}.jpg99": {"filename": f"{name}.jpg", "size": 99, "regions": regions, "file_attributes": attributes}
        for name, (attributes, regions) in files.items()
    }


def region(**attributes):
    return {"shape_attributes": {"name": "rect"}, "region_attributes": attributes}


def test_via_attribute_values_become_classes(cells, tmp_path):
    one = via(a=({}, [region(type="fox"), region(type="undefined")]), b=({}, {"0": region(type={"deer": True})}))
    images = {"a.jpg": None, "b.jpg": None}
    root = put(tmp_path / "one", images | {"via.json": {"_via_settings": {}, "_via_img_metadata": one}})
    assert cells(root) == {"a.jpg": {"fox": "1"}, "b.jpg": {"deer": "1"}}


@pytest.mark.slow
def test_via_export_with_several_text_attributes_requires_the_label_column_option(annotator, cells, tmp_path):
    files = via(a=({"caption": "good"}, [region(species="fox")]), b=({"caption": "bad"}, [region(species="deer")]))
    root = put(tmp_path / "set", {"a.jpg": None, "b.jpg": None, "via.json": files})
    assert "--label-column" in refused(annotator, tmp_path, root)
    assert cells(root, "--label-column", "species") == {"a.jpg": {"fox": "1"}, "b.jpg": {"deer": "1"}}


def test_via_csv_reads_region_attributes_as_classes(cells, tmp_path):
    rows = [
        "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes",
        'a.jpg,9,"{}",2,0,"{}","{""species"":""fox""}"',
        'a.jpg,9,"{}",2,1,"{}","{""species"":""deer""}"',
    ]
    root = put(tmp_path / "set", {"a.jpg": None, "via.csv": "\n".join(rows) + "\n"})
    assert cells(root) == {"a.jpg": {"fox": "1", "deer": "1"}}


def test_supervisely_tags_and_objects_are_imported_as_present_labels(cells, tmp_path):
    tags = [{"name": "night", "value": None}, {"name": "weather", "value": "rain"}]
    objects = [{"classTitle": "fox", "labelerLogin": "ann"}]
    files = {"set/img/a.jpg": None, "set/img/b.jpg": None, "set/ann/a.jpg.json": {"tags": tags, "objects": objects}}
    files |= {"meta.json": {"classes": [{"title": "fox"}, {"title": "deer"}], "tags": []}, "set/ann/b.jpg.json": {}}
    root = put(tmp_path / "project of another", files)
    assert cells(root) == {"set/img/a.jpg": {"fox": "1", "night": "1", "weather: rain": "1"}, "set/img/b.jpg": {}}


def test_vott_region_tags_are_imported_as_present_labels(cells, tmp_path):
    assets = {
        "1": {"asset": {"name": "a.jpg", "state": 2}, "regions": [{"tags": ["fox", "deer"]}, {"tags": ["fox"]}]},
        "2": {"asset": {"name": "b.jpg", "state": 0}, "regions": []},
    }
    export = {"securityToken": "x", "tags": [{"name": "fox"}], "assets": assets}
    root = put(tmp_path / "set", {"a.jpg": None, "b.jpg": None, "export.json": export})
    assert cells(root) == {"a.jpg": {"fox": "1", "deer": "1"}, "b.jpg": {}}


def test_via_options_are_read_by_the_descriptions_that_annotators_see(cells, tmp_path):
    options = {"1": "fox", "2": "deer"}
    project = {
        "_via_settings": {},
        "_via_img_metadata": {
            "a.jpg9": {"filename": "a.jpg", "size": 9, "regions": [], "file_attributes": {"animals": {"1": True}}}
        },
        "_via_attributes": {"region": {}, "file": {"animals": {"type": "checkbox", "options": options}}},
    }
    root = put(tmp_path / "set", {"a.jpg": None, "via.json": project})
    assert cells(root) == {"a.jpg": {"fox": "1"}}
    assert "Options are read by their descriptions: 1 is 'fox', 2 is 'deer'." in cells.said


def test_via_options_with_the_same_description_keep_their_ids(tmp_path):
    options = {"1": "fox", "2": "fox"}
    project = {
        "_via_img_metadata": {"a": {"filename": "a.jpg", "regions": [], "file_attributes": {"animals": {"1": True}}}},
        "_via_attributes": {"file": {"animals": {"options": options}}},
    }
    root = put(tmp_path / "set", {"via.json": project})
    assert [given.class_name for item in items_of("via", root / "via.json") for given in item.labels] == ["1"]


def test_coco_folder_is_read_from_its_instances_without_captions_and_keypoints(cells, tmp_path):
    def instances(image: str, name: str) -> dict[str, object]:
        return {
            "images": [{"id": 1, "file_name": image}],
            "annotations": [{"id": 1, "image_id": 1, "category_id": 1}],
            "categories": [{"id": 1, "name": name}],
        }

    captions = {"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [{"image_id": 1, "caption": "A fox."}]}
    files = {
        "train2017/a.jpg": None,
        "val2017/b.jpg": None,
        "test2017/c.jpg": None,
        "annotations/image_info_test2017.json": {**instances("c.jpg", "fox"), "annotations": []},
        "annotations/captions_train2017.json": captions,
        "annotations/person_keypoints_train2017.json": instances("a.jpg", "person"),
        "annotations/instances_train2017.json": instances("a.jpg", "fox"),
        "annotations/instances_val2017.json": instances("b.jpg", "deer"),
    }
    root = put(tmp_path / "set", files)
    assert cells(root) == {"train2017/a.jpg": {"fox": "1"}, "val2017/b.jpg": {"deer": "1"}, "test2017/c.jpg": {}}
    said = " ".join(cells.said.split())
    others = ("captions_train2017", "image_info_test2017", "person_keypoints_train2017")
    assert f"not read: {', '.join(f'annotations/{name}.json' for name in others)}" in said
    assert "--labels annotations/instances_train2017.json,annotations/instances_val2017.json" in said


def test_deleted_objects_of_mit_labelme_are_skipped(cells, tmp_path):
    deleted = (
        "<object><name>fox</name><deleted>1</deleted></object><object><name>deer</name><deleted>0</deleted></object>"
    )
    assert cells(put(tmp_path / "set", {"a.jpg": None, "a.xml": XML.format("a.jpg", deleted)})) == {
        "a.jpg": {"deer": "1"}
    }


@pytest.mark.slow
def test_table_next_to_per_image_label_files_requires_the_labels_option(annotator, cells, tmp_path):
    files = {"a.jpg": None, "a.json": labelme({"fox": True}, image="a.jpg"), "labels.csv": "image,fox\na.jpg,0\n"}
    photos = put(tmp_path / "photos", files)
    error = refused(annotator, tmp_path, photos)
    assert "--labels beside" in error
    assert "labels.csv" in error
    assert cells(photos, "--labels", "beside") == {"a.jpg": {"fox": "1"}}


def test_per_image_label_files_take_precedence_over_folder_names(cells, tmp_path):
    files = {"site A/1.jpg": None, "site B/1.jpg": None, "site A/1.json": labelme({"fox": True}, image="1.jpg")}
    assert cells(put(tmp_path / "photos", files)) == {"site A/1.jpg": {"fox": "1"}, "site B/1.jpg": {}}
    assert "the names of folders are no classes" in cells.said


def coco(category_ids, **more):
    return {
        "images": [{"id": 1, "file_name": "/srv/data/a.jpg"}, {"id": 2.0, "file_name": "data/b.jpg"}],
        "categories": [{"id": 1, "name": "fox"}, {"id": 2, "name": "deer"}],
        "annotations": [
            {"image_id": image, "category_id": category} | more
            for image, category in zip((1, "2"), category_ids, strict=True)
        ],
    }


def test_coco_ids_match_as_numbers_floats_and_strings(cells, tmp_path):
    put(tmp_path / "photos", {"a.jpg": None, "b.jpg": None})
    root = put(tmp_path / "set", {"coco": coco((1.0, "2"))})
    assert cells(root / "coco", "--images", tmp_path / "photos") == {"a.jpg": {"fox": "1"}, "b.jpg": {"deer": "1"}}


def test_coco_annotations_with_a_score_are_scores_and_not_answers(annotator, tmp_path):
    root = put(tmp_path / "set", {"coco.json": coco((1, 1), score=0.7)})
    items = [item for item in items_of("coco", root / "coco.json") if item.scores or item.labels]
    assert [(item.image, list(item.labels), dict(item.scores)) for item in items] == [
        ("/srv/data/a.jpg", [], {"fox": 0.7}),
        ("data/b.jpg", [], {"fox": 0.7}),
    ]


def test_labelme_zip_is_read_like_its_folder(cells, tmp_path):
    photos = put(tmp_path / "photos", {"a.jpg": None, "a.json": labelme({"fox": True, "deer": False}, image="a.jpg")})
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for path in photos.iterdir():
            archive.write(path, path.name)
    assert cells(tmp_path / "photos.zip") == {"a.jpg": {"fox": "1", "deer": "0"}}


@over(name__content=[("a.json", '{"flags": {"fox": tr'), ("a.json", '{"shapes": [], "flags": ' + "[" * 100_000)])
def test_broken_or_deeply_nested_labelme_json_is_reported_with_its_name(name, content, tmp_path_factory):
    root = put(tmp_path_factory.mktemp("set"), {"a.jpg": None, name: content + ' "shapes" "imageData"'})
    contents, problems = read(FORMATS["labelme"], root)
    assert list(contents.items) == []
    assert problems.sentences[0].startswith("a.json is no file of LabelMe")


DEEP = "[" * 50_000
CHOSEN = {"completed_by": 1, "result": [{"type": "choices", "from_name": "c", "value": {"choices": ["fox"]}}]}
FILES = {
    "labelme": ("a.json", json.dumps(labelme({"fox": True}, [{"label": "fox", "score": 0.5}], "a.jpg", checked=False))),
    "voc": ("a.xml", XML.format("a.jpg", OBJECT.format("fox"))),
    "yolo": ("a.txt", f"0 {BOX}\n1 {BOX} 0.5\n"),
    "fiftyone-labels": ("labels.json", json.dumps({"classes": ["fox"], "labels": {"a": 0, "b": [{"label": "fox"}]}})),
    "createml": ("labels.json", json.dumps([{"image": "a.jpg", "annotations": [{"label": "fox"}]}])),
    "via": ("via.json", json.dumps(via(a=({}, [region(type="fox")])))),
    "vott": (
        "vott.json",
        json.dumps({"securityToken": "", "tags": [], "assets": {"1": {"asset": {"name": "a"}, "regions": []}}}),
    ),
    "supervisely": ("set/ann/a.jpg.json", json.dumps({"tags": [], "objects": [{"classTitle": "fox"}]})),
    "label-studio": ("tasks.json", json.dumps([{"id": 1, "data": {"image": "a.jpg"}, "annotations": [CHOSEN]}])),
    "label-studio of JSON-MIN": (
        "min.json",
        json.dumps([{"image": "a.jpg", "id": 1, "choice": "fox", "annotator": 1, "annotation_id": 1}]),
    ),
    "coco": ("coco.json", json.dumps(coco((1, 2.0), score=0.5))),
}


@pytest.mark.slow
@over(name=FILES)
def test_label_file_with_missing_or_extra_bytes_is_read_or_refused_without_a_crash(name, tmp_path_factory):
    root = put(tmp_path_factory.mktemp("set"), {"a.jpg": None, "classes.txt": "fox\ndeer\n", "meta.json": "{}"})
    file, text = FILES[name]
    content = text.encode()
    put(root, {file: content})
    path = root if name in OF_FOLDERS else root / file
    assert FORMATS[name.split()[0]].recognize(path) or name == "supervisely"
    for place in range(0, len(content), 2):
        before, after = content[:place], content[place:]
        for broken in (before, before + after[1:], before + b'"' + after):
            (root / file).write_bytes(broken)
            _read_or_refused(name, path)


@over(
    name=[name for name in FILES if name not in ("voc", "yolo")],
    inside=[DEEP, "9" * 5000, "1e999", '"\\ud800"', "null"],
)
def test_deeply_nested_or_huge_values_are_read_or_refused_without_a_crash(name, inside, tmp_path_factory):
    root = put(tmp_path_factory.mktemp("set"), {"a.jpg": None, "meta.json": '{"classes": []}'})
    file, text = FILES[name]
    for value in ('"fox"', "true", "0", '"a.jpg"', "[]"):
        put(root, {file: text.replace(value, inside, 1)})
        _read_or_refused(name, root if name in OF_FOLDERS else root / file)


def test_json_number_with_thousands_of_digits_is_refused(tmp_path):
    long = '{"dm_format_version": "1.0", "categories": {"label": {"labels": [' + "9" * 5000 + "]}}}"
    with pytest.raises(AnnotatorError, match=r"a number of more than 1,000 digits"):
        items_of("datumaro", put(tmp_path / "set", {"labels.json": long}) / "labels.json")


OF_FOLDERS = ("labelme", "voc", "yolo", "supervisely")


def _read_or_refused(name: str, path: Path) -> None:
    format_ = FORMATS[name.split()[0]]
    format_.recognize(path)
    try:
        contents, _ = read(format_, path)
        for item in contents.items:
            assert all(isinstance(given.class_name, str) for given in item.labels)
    except AnnotatorError:
        pass
