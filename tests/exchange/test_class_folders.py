"""Folders of classes and of YOLO: what torchvision's ImageFolder sees, and no label that a folder does not state."""

import numpy as np
import pytest
from harness.formats_view import UNSURE_CELL, class_names, read, view_of, write
from harness.tables import over
from hypothesis import HealthCheck, given, settings

from annotator.errors import AnnotatorError
from annotator.exchange.formats.contents import ImportedLabel
from annotator.exchange.formats.imagefolder import IMAGEFOLDER
from annotator.exchange.formats.yolo import YOLO, YOLO_CLS
from annotator.records import PRESENT
from annotator.store.pictures.leftovers import is_leftover_folder


def make(root, *paths: str):
    for path in paths:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.encode())
    return root


def labels_of(format_, path) -> dict[str, set[str]]:
    contents, problems = read(format_, path)
    items = list(contents.items)
    assert not problems.count, problems.sentences
    assert not any(item.exhaustive for item in items)
    assert all(label.state == PRESENT for item in items for label in item.labels)
    return {item.image: {label.class_name for label in item.labels} for item in items}


@over(
    paths__labels__splits=[
        (["cat/1.jpg", "dog/1.jpg", "dog/inner/2.png"], ["cat", "dog", "dog"], ["", "", ""]),
        (["test/dog/1.jpg", "train/cat/1.jpg", "val/cat/x/1.jpg"], ["dog", "cat", "cat"], ["test", "train", "val"]),
        (["train/1.jpg", "val/2.jpg"], ["train", "val"], ["", ""]),
        (["a b/'=x, |.JPG", "\u05d0\U0001f98a/1.webp"], ["a b", "\u05d0\U0001f98a"], ["", ""]),
        (["0.jpg", "cat/1.jpg", "dog/2.jpg"], [None, "cat", "dog"], ["", "", ""]),
        (["train/0.jpg", "train/cat/1.jpg"], [None, "cat"], ["train", "train"]),
    ]
)
def test_imagefolder_reader_imports_the_class_folder_as_the_only_label(tmp_path_factory, paths, labels, splits):
    root = make(tmp_path_factory.mktemp("set"), *paths, "cat/Thumbs.db", ".hidden/dog/3.jpg")
    contents, _ = read(IMAGEFOLDER, root)
    items = {item.image: item for item in contents.items}
    assert sorted(items) == sorted(paths)
    for path, label, split in zip(paths, labels, splits, strict=True):
        assert items[path].labels == ((ImportedLabel(label, PRESENT),) if label else ())
        assert items[path].attributes == ({"split": split} if split else {})
        assert items[path].file == path
        assert not items[path].exhaustive
    assert contents.folder == root


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(names=class_names(least=2))
def test_imagefolder_reader_matches_torchvision_classes_and_images(tmp_path_factory, names):
    from torchvision.datasets import ImageFolder

    root = tmp_path_factory.mktemp("set")
    usable = [name for name in names if "/" not in name and not name.startswith(".") and len(name.encode()) < 250]
    usable = [name for name in usable if not is_leftover_folder(name)]  # Hypothesis finds them in the source code
    for number, name in enumerate(usable):
        make(root, f"{name}/{number}.jpg")
    if not usable or {name.lower() for name in usable} <= {"train", "val", "test"}:
        return
    theirs = ImageFolder(str(root))
    contents, _ = read(IMAGEFOLDER, root)
    assert [name for name, _ in contents.classes] == theirs.classes
    expected = {path.removeprefix(f"{root}/"): {theirs.classes[number]} for path, number in theirs.samples}
    assert labels_of(IMAGEFOLDER, root) == expected


@over(
    paths__words=[
        (["cat/1.jpg", "dog/2.jpg"], "one folder a class: cat, dog"),
        (["train/cat/1.jpg", "val/dog/2.jpg"], "one folder a class: cat, dog"),
        (["train/cat/1.jpg", "train/dog/2.jpg", "test/3.jpg"], "one folder a class: cat, dog"),
        (["train/cat/1.jpg", "train/dog/2.jpg", "train/3.jpg"], None),
        (["cat/1.jpg", "2.jpg"], None),
        (["images/1.jpg", "labels/1.txt"], None),
        (["only/1.jpg"], None),
        (["a/readme.txt", "b/readme.txt"], None),
        (["train/1.jpg", "val/2.jpg"], None),
        (["thumbs/1.jpg", "heatmaps/2.jpg", "project.db"], None),
    ]
)
def test_class_folders_are_recognized_and_other_folders_are_not(tmp_path_factory, paths, words):
    assert IMAGEFOLDER.recognize(make(tmp_path_factory.mktemp("set"), *paths)) == words


def test_folder_without_class_folders_is_refused_with_an_example(tmp_path):
    with pytest.raises(AnnotatorError, match=r"no class folders.*cat/picture\.jpg"):
        read(IMAGEFOLDER, make(tmp_path, "1.jpg"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(classes=class_names())
def test_torchvision_and_our_reader_find_every_present_class_of_exported_yolo_folders(tmp_path_factory, classes):
    from torchvision.datasets import ImageFolder

    cells = np.array(
        [[1] * len(classes), [0] * len(classes), [-1] * (len(classes) - 1) + [1], [UNSURE_CELL] * len(classes)]
    )
    files = [f"{row}.jpg" for row in range(4)]
    view = view_of(cells, classes, splits=["train", "train", "val", "val"], files=files, written="link")
    path = write(YOLO_CLS, view, tmp_path_factory.mktemp("export"))
    theirs = ImageFolder(str(path / "train"))
    assert len(theirs.classes) == len(classes)
    assert sorted(name.rpartition("/")[2] for name, _ in theirs.samples) == ["0.jpg"] * len(classes)
    contents, problems = read(YOLO_CLS, path)
    found = sorted((item.attributes["split"], item.image[-5:], item.labels[0].class_name) for item in contents.items)
    assert found == sorted([("train", "0.jpg", name) for name in classes] + [("val", "2.jpg", classes[-1])])
    assert not problems.count


def test_yolo_folder_export_without_images_is_refused(tmp_path):
    with pytest.raises(AnnotatorError, match="leave out --images none"):
        write(YOLO_CLS, view_of(np.array([[1]]), files=["a.jpg"]), tmp_path)


def yolo(root, data: str = "names:\n  0: cat\n  1: traffic light\n", **files: str):
    (root / "data.yaml").write_text(data)
    for name, text in files.items():
        image = f"images/train/{name}.jpg"
        make(root, image)
        label = root / "labels" / "train" / f"{name}.txt"
        label.parent.mkdir(parents=True, exist_ok=True)
        label.write_text(text)
    return root


def test_yolo_reader_marks_classes_with_boxes_present_and_none_absent(tmp_path):
    root = yolo(tmp_path, a="1 0.5 0.5 1 1\n1 0.1 0.1 0.2 0.2\n", b="", c="0 0 0 1 0 1 1\n1.0 .1 .1 .1 .1\n")
    make(root, "images/train/d.jpg")
    assert YOLO.recognize(root)
    assert YOLO.recognize(root / "data.yaml")
    assert IMAGEFOLDER.recognize(root) is None
    expected = {"a": {"traffic light"}, "b": set(), "c": {"cat", "traffic light"}, "d": set()}
    for path in (root, root / "data.yaml"):
        assert labels_of(YOLO, path) == {f"images/train/{name}.jpg": labels for name, labels in expected.items()}
        assert {item.attributes["split"] for item in read(YOLO, path)[0].items} == {"train"}


@over(
    data__paths__splits=[
        (
            "names: [cat]\ntrain: ../train/images\nval: ../valid/images\n",
            ["train/images/a.jpg", "valid/images/b.jpg"],
            "train val",
        ),
        (
            "names: [cat]\npath: .\ntrain: images/one\nval: [images/two]\n",
            ["images/one/a.jpg", "images/two/b.jpg"],
            "train val",
        ),
        ("names: [cat]\ntrain: part.txt\n", ["images/a.jpg", "images/b.jpg"], "train -"),
        ("names: [cat]\npath: /\ntrain: /etc\n", ["images/a.jpg", "images/val/b.jpg"], "- val"),
    ]
)
def test_yolo_reader_takes_splits_from_the_yaml_file(tmp_path_factory, data, paths, splits):
    root = yolo(tmp_path_factory.mktemp("set"), data)
    make(root, *paths)
    (root / "part.txt").write_text("./images/a.jpg\n")
    found = {item.image: item.attributes.get("split", "-") for item in read(YOLO, root)[0].items}
    assert found == dict(zip(paths, splits.split(), strict=True))


@over(
    label__sentence=[
        ("2 0 0 1 1\n", "labels/train/a.txt, line 1: there is no class 2; the last one is 1"),
        ("0 0 0 1 1\n\ncat 0 0 1 1", "labels/train/a.txt, line 3: 'cat' is no number of a class"),
        ("-1 0 0 1 1", "labels/train/a.txt, line 1: there is no class -1; the last one is 1"),
        ("nan 0 0 1 1", "labels/train/a.txt, line 1: 'nan' is no number of a class"),
        ("0 0 0 1 1\n1 0.5", "labels/train/a.txt, line 2: 2 words; a box has a class and 4 numbers"),
        ("0 " * (1 << 20), "labels/train/a.txt has more than 1,048,576 bytes"),
    ]
)
def test_yolo_label_file_errors_name_the_file_and_line(tmp_path, label, sentence):
    contents, problems = read(YOLO, yolo(tmp_path, a=label))
    list(contents.items)
    assert problems.sentences == [sentence]


@over(
    data__words=[
        ("names: 5\n", "names must be a list"),
        ("nc: 2\n", "names must be a list"),
        ("- names\n", "has no names"),
        ("names: [cat\n", "cannot be read as YAML"),
        ("names: [[cat]]\n", "names must be a list"),
        ("names: {cat: 0}\n", "names must be a list"),
    ]
)
def test_yolo_yaml_without_valid_class_names_is_refused(tmp_path, data, words):
    with pytest.raises(AnnotatorError, match=words):
        read(YOLO, yolo(tmp_path, data))


def test_yolo_reader_reports_symlinked_label_files_and_does_not_read_them(tmp_path):
    secret = make(tmp_path, "secret.txt") / "secret.txt"
    root = tmp_path / "set"
    make(root, "images/train/a.jpg", "images/val/b.jpg")
    (root / "data.yaml").write_text("names: [cat]\n")
    (root / "labels/train").mkdir(parents=True)
    (root / "labels/train/a.txt").symlink_to(secret)
    (root / "labels/val").symlink_to(tmp_path)
    contents, problems = read(YOLO, root)
    assert [item.labels for item in contents.items] == [[], []]
    assert len(problems.sentences) == 2
    assert all("link" in sentence and "secret" not in sentence for sentence in problems.sentences)


def test_yolo_yaml_class_names_are_text_and_yaml_tags_are_not_executed(tmp_path):
    data = f"names: [no, 1.0, !!python/object/apply:os.mkdir ['{tmp_path}/made']]\n"
    with pytest.raises(AnnotatorError, match="names must be a list"):
        read(YOLO, yolo(tmp_path, data))
    assert not (tmp_path / "made").exists()
    contents, _ = read(YOLO, yolo(tmp_path, "names: [no, 1.0, 0x10, null]\n"))
    assert [name for name, _ in contents.classes] == ["no", "1.0", "0x10", "null"]


def test_yolo_data_set_without_any_label_file_is_a_problem(tmp_path):
    make(tmp_path, "images/a.jpg", "labelTxt/a.txt")
    (tmp_path / "data.yaml").write_text("names: [fox]\n")
    contents, problems = read(YOLO, tmp_path)
    assert [item.labels for item in contents.items] == [[]]
    assert "no image has a label file, such as labels/a.txt" in problems.sentences[0]
