"""Pascal VOC: torchvision and a reader of ImageSets/Main find what we write; no entity, link or bomb is followed."""

import numpy as np
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
from PIL import Image
from torchvision.datasets import VOCDetection

from annotator.errors import AnnotatorError
from annotator.exchange.files.xml_text import _INVALID_XML_CHARS
from annotator.exchange.formats.voc import VOC
from annotator.records import STATE_NAMES

OBJECT = "<object><name>{}</name><difficult>{}</difficult><bndbox><xmin>1</xmin></bndbox></object>"


def xml(*objects: tuple[str, int], filename: str = "") -> str:
    inside = "".join(OBJECT.format(*object_) for object_ in objects)
    return f"<annotation><filename>{filename}</filename>{inside}</annotation>"


def make(root, annotations: dict[str, str], lists: dict[str, str] | None = None, images: tuple[str, ...] = ()):
    for folder in ("Annotations", "ImageSets/Main", "JPEGImages"):
        (root / folder).mkdir(parents=True)
    for name, text in annotations.items():
        (root / "Annotations" / f"{name}.xml").write_text(text)
    for name, text in (lists or {}).items():
        (root / "ImageSets/Main" / f"{name}.txt").write_text(text)
    for name in images:
        (root / "JPEGImages" / name).write_bytes(b"")
    return root


def cells_of_the_devkit(root, ids: list[str], classes: dict[str, str], split: str) -> np.ndarray:
    """As the devkit reads a class: textread(<class>_<set>.txt, '%s %d'); -1 for what is not listed."""
    cells = np.full((len(ids), len(classes)), -1)
    for column, file in enumerate(classes.values()):
        for line in (root / f"ImageSets/Main/{file}_{split}.txt").read_text().splitlines():
            image, state = line.split()
            cells[ids.index(image), column] = {"1": 1, "-1": 0, "0": UNSURE_CELL}[state]
    return cells


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(names=file_names(), classes=class_names(), seed=st.integers(0, 99), block=st.integers(1, 3))
def test_torchvision_the_devkit_and_our_reader_find_the_same_labels_in_a_voc_export(
    tmp_path_factory, names, classes, seed, block
):
    cells = np.random.default_rng(seed).integers(-1, 3, (len(names), len(classes)))
    files = [f"a b{row}.jpg" for row in range(len(names))]
    view = view_of(cells, classes, names, files=files, block=block)
    folder = tmp_path_factory.mktemp("export")
    if any(_INVALID_XML_CHARS.search(name) for name in (*classes, *names)):
        with pytest.raises(AnnotatorError, match="XML cannot hold"):
            write(VOC, view, folder)
        return
    path = write(VOC, view, folder)
    assert_same(cells_of(VOC, path, names, classes), cells)

    ids = [file.removesuffix(".jpg").replace(" ", "%20") for file in files]
    found = np.full(cells.shape, -1)
    for row, image in enumerate(ids):
        tree = VOCDetection.parse_voc_xml(_root(path / "Annotations" / f"{image}.xml"))["annotation"]
        for object_ in tree["object"]:
            found[row, classes.index(object_["name"])] = 1 if object_["difficult"] == "0" else UNSURE_CELL
    assert_same(found, np.where(cells == 0, -1, cells))

    lists = {file.stem.removesuffix("_trainval") for file in (path / "ImageSets/Main").glob("*_trainval.txt")}
    assert len(lists) == len(classes)
    if lists == set(classes):
        assert_same(cells_of_the_devkit(path, ids, {name: name for name in classes}, "trainval"), cells)
    assert (path / "ImageSets/Main/trainval.txt").read_text().split() == ids


def _root(path):
    from xml.etree.ElementTree import parse

    return parse(path).getroot()


def test_torchvision_loads_a_voc_export_with_images_and_splits(tmp_path):
    cells = np.array([[1, 0, -1], [UNSURE_CELL, 1, 1], [0, 0, 0]])
    view = view_of(cells, files=["a.jpg", "b.jpg", "c.jpg"], splits=["train", "val", "train"])
    path = write(VOC, view, tmp_path)
    (tmp_path / "VOCdevkit").mkdir()
    path.rename(tmp_path / "VOCdevkit/VOC2012")
    path = tmp_path / "VOCdevkit/VOC2012"
    for name in "abc":
        (path / "JPEGImages").mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(path / f"JPEGImages/{name}.jpg")
    train, val = (VOCDetection(str(tmp_path), image_set=name) for name in ("train", "val"))
    assert [target["annotation"]["filename"] for _, target in train] == ["a.jpg", "c.jpg"]
    assert [object_["name"] for object_ in val[0][1]["annotation"]["object"]] == ["class 0", "class 1", "class 2"]
    for place in (path, path.parent, tmp_path):
        assert VOC.recognize(place)
        contents, problems = read(VOC, place)
        items = {item.image[-5:]: item for item in contents.items}
        assert [items[f"{row}.jpg"].attributes["split"] for row in range(3)] == ["train", "val", "train"]
        assert {item.file for item in items.values()} == {"a.jpg", "b.jpg", "c.jpg"}
        assert not problems.count


def test_voc_export_keeps_the_project_name_of_an_image(tmp_path):
    view = view_of(np.array([[1]]), names=["folder/\u05d0 <&>.jpg"], files=["a~1.jpg"])
    (item,) = read(VOC, write(VOC, view, tmp_path))[0].items
    assert (item.image, item.sha256) == ("folder/\u05d0 <&>.jpg", "0" * 64)


def test_voc_export_keeps_the_source_of_model_and_assumed_labels(tmp_path):
    sources = np.array([[ALL_SOURCES.index(name) for name in ("click", "model", "assumed", "done")]])
    path = write(VOC, view_of(np.array([[1, 1, 0, 0]]), sources=sources, files=["a.jpg"]), tmp_path)
    (item,) = read(VOC, path)[0].items
    given = {label.class_name: label.source for label in item.labels}
    assert given == {"class 0": "", "class 1": "model", "class 2": "assumed", "class 3": ""}


def test_voc_reader_takes_labels_from_objects_and_image_lists_only(tmp_path):
    root = make(
        tmp_path / "VOC2007",
        {"000001": xml(("dog", 0), ("dog", 1), ("cat", 1), filename="000001.jpg"), "000002": xml()},
        {
            "train": "000001\n000002\n",
            "trainval": "000001\n000002\n000003\n",
            "val": "000003\n",
            "dog_train": "000001  1\n000002 -1\n",
            "dog_val": "000003  0\n",
            "dog_trainval": "000001  1\n000002 -1\n000003  0\n",
            "pot_plant_trainval": "000003 +1\n",
        },
        ("000001.jpg", "000003.png"),
    )
    contents, problems = read(VOC, root)
    labels = [
        (item.image, label.class_name, STATE_NAMES[label.state]) for item in contents.items for label in item.labels
    ]
    assert sorted(labels) == [
        ("000001.jpg", "cat", "unsure"),
        ("000001.jpg", "dog", "present"),
        ("000001.jpg", "dog", "present"),
        ("000002.jpg", "dog", "absent"),
        ("000003.png", "dog", "unsure"),
        ("000003.png", "pot_plant", "present"),
    ]
    contents, _ = read(VOC, root)
    assert {item.image: item.file for item in contents.items} == {
        "000001.jpg": "000001.jpg",
        "000002.jpg": "",
        "000003.png": "000003.png",
    }
    assert not problems.count
    assert contents.folder == root / "JPEGImages"


@over(
    text__words=[
        ("<annotation><object>", "is no XML: no element found: line 1"),
        (
            "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><annotation><filename>&x;</filename></annotation>",
            "entities",
        ),
        ('<!DOCTYPE a [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><annotation>&b;</annotation>', "entities"),
        ("<annotations/>", "begins with <annotations>"),
        ("<annotation><object><name> </name></object></annotation>", "object 1 has no name"),
        ("<annotation>" + " " * (17 << 20), "more than 16 MB"),
        ("", "no element found"),
    ]
)
def test_invalid_voc_xml_is_reported_with_its_file(tmp_path_factory, text, words):
    root = make(tmp_path_factory.mktemp("VOC"), {"a": text, "b": xml(("dog", 0))})
    contents, problems = read(VOC, root)
    assert [item.image for item in contents.items if item.labels] == ["b.jpg"]
    (sentence,) = problems.sentences
    assert sentence.startswith("Annotations/a.xml")
    assert words in sentence


def test_invalid_voc_list_lines_are_reported_with_their_number(tmp_path):
    root = make(
        tmp_path / "VOC", {}, {"train": "a\n", "dog_train": f"a 1\nb 2\nc\n../d 1\n{'e' * 300} 1\n"}, ("a.jpg",)
    )
    contents, problems = read(VOC, root)
    items = list(contents.items)
    assert [(item.image, item.file) for item in items] == [
        ("a.jpg", "a.jpg"),
        ("../d.jpg", ""),
        ("e" * 300 + ".jpg", ""),
    ]
    assert problems.sentences == [
        f"ImageSets/Main/dog_train.txt, line {line}: {text!r} must be an image and 1, -1 or 0"
        for line, text in ((2, "b 2"), (3, "c"))
    ]


def test_voc_object_with_a_score_is_a_problem(tmp_path):
    from annotator.exchange.files.problems import Problems
    from annotator.exchange.formats.voc_annotation import parse_annotation

    objects = "<object><name>fox</name><score>0.4</score></object><object><name>owl</name></object>"
    (tmp_path / "a.xml").write_text(f"<annotation><filename>a.jpg</filename>{objects}</annotation>")
    problems = Problems()
    found = parse_annotation(tmp_path / "a.xml", "a.xml", problems)
    assert found and list(found["objects"]) == ["owl"]
    assert problems.sentences == ["a.xml: object 1 has the score 0.4: a model found it. Leave it out"]
