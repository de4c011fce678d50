"""Files of Label Studio, CVAT, FiftyOne and Datumaro: what of them is an answer, and what is refused."""

import json
import random
import zipfile

import numpy as np
import pytest
from harness.formats_view import all_cells, assert_same, cells_of, read, view_of, write
from harness.tables import over

from annotator.errors import AnnotatorError
from annotator.exchange.files.image_addresses import extract_image_name
from annotator.exchange.formats import FORMATS
from annotator.exchange.formats.contents import ImportedLabel
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.database.database import Database

NAMES = ("label-studio", "cvat", "fiftyone", "datumaro")
FILES = [f"{row}.jpg" for row in range(6)]


def items_of(name: str, path):
    """The items and the sentences about what is wrong."""
    contents, problems = read(FORMATS[name], path)
    return list(contents.items), problems.sentences


@over(name=NAMES)
def test_annotation_tool_export_is_recognized_and_reads_back_identical_labels(tmp_path_factory, name):
    format_ = FORMATS[name]
    names = ["a.jpg", "b/=1.png", "c d.jpg", "🦊.jpg", "e,f.jpg", 'g"h.jpg']
    classes, splits = ["dog", "dog (absent)", "a,b|c".replace("|", "/"), "אב"], ["train", "", "a/b", "train", "", "A/B"]
    cells = all_cells(6, 4)
    path = write(
        format_, view_of(cells, classes, names, splits=splits, files=FILES, block=4), tmp_path_factory.mktemp(name)
    )
    fits = [other for other in FORMATS.values() if other.recognize and other.recognize(path)]
    assert [other for other in fits if not other.is_general] == [format_]
    assert_same(cells_of(format_, path, names, classes), cells)
    contents, _ = read(format_, path)
    assert [name for name, _ in contents.classes] == classes
    items = sorted(contents.items, key=lambda item: names.index(item.image))
    assert [item.attributes.get("split", "") for item in items] == splits
    assert [item.answered for item in items] == (cells != -1).any(1).tolist()
    if not format_.lost.provenance:
        assert {given[2:] for item in items for given in item.labels} == {("ann", 1.7e9, "click")}
        assert [item.sha256 for item in items] == [f"{row:064x}" for row in range(6)]


def test_label_studio_reader_imports_annotations_as_answers_and_predictions_as_scores(tmp_path):
    def task(image, annotations, **more):
        return {"id": 1, "data": {"image": image, "caption": "x"}, "annotations": annotations} | more

    def choices(*names, control="animals", type_="choices"):
        return {"from_name": control, "to_name": "img", "type": type_, "value": {type_: list(names)}}

    by = {"completed_by": {"email": "ann@x.org"}, "created_at": "2026-01-02T03:04:05Z"}
    tasks = [
        task("/data/upload/3/1a2b3c4d-cat%201.jpg", [by | {"result": [choices("cat", "dog")]}]),
        task("s3://bucket/in/two.jpg", [{"result": [choices("cat")], "was_cancelled": True}]),
        task("/data/local-files/?d=in/three.jpg", [{"completed_by": 7, "result": [choices("cat", control="absent")]}]),
        task("four.jpg", [], predictions=[{"score": 0.2, "result": [choices("cat") | {"score": 0.9}, choices("dog")]}]),
        task("five.jpg", [{"result": [choices("cat", type_="rectanglelabels"), choices("x", type_="textarea")]}]),
        task(
            "six.jpg", [{"result": [{"type": "taxonomy", "from_name": "t", "value": {"taxonomy": [["pet", "cat"]]}}]}]
        ),
        task("seven.jpg", [{"result": []}]),
    ]
    path = tmp_path / "project.json"
    path.write_text(json.dumps(tasks))
    items, problems = items_of("label-studio", path)
    assert not problems
    at = 1767323045.0
    assert [(item.image, list(item.labels), dict(item.scores), item.answered) for item in items] == [
        (
            "cat 1.jpg",
            [ImportedLabel("cat", PRESENT, "ann@x.org", at), ImportedLabel("dog", PRESENT, "ann@x.org", at)],
            {},
            True,
        ),
        ("in/two.jpg", [], {}, False),
        ("in/three.jpg", [ImportedLabel("cat", ABSENT, "user 7")], {}, True),
        ("four.jpg", [], {"cat": 0.9, "dog": 0.2}, False),
        ("five.jpg", [ImportedLabel("cat", PRESENT)], {}, True),
        ("six.jpg", [ImportedLabel("cat", PRESENT)], {}, True),
        ("seven.jpg", [], {}, True),
    ]
    assert not any(item.exhaustive for item in items)


def test_exhaustive_import_applies_only_to_answered_label_studio_tasks(annotator, project, photos, tmp_path):
    names = sorted(path.name for path in photos.iterdir())[:3]
    choice = {"from_name": "x", "to_name": "image", "type": "choices", "value": {"choices": ["fox"]}}
    done, skipped = {"result": [choice]}, {"result": [choice], "was_cancelled": True}
    tasks = [{"data": {"image": name}, "annotations": [[done], [skipped], []][row]} for row, name in enumerate(names)]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    annotator("import", project, "tasks.json", "--exhaustive", "--yes")
    db = Database(project)
    answered = db.tuples("SELECT DISTINCT i.name FROM label l JOIN image i ON i.id = l.image_id")
    assert [name for (name,) in answered] == [names[0]]


def test_label_studio_reader_attributes_a_changed_answer_to_its_new_annotator(tmp_path):
    path = write(FORMATS["label-studio"], view_of(np.array([[1, 0]])), tmp_path)
    tasks = json.loads(path.read_text())
    annotation = tasks[0]["annotations"][0]
    annotation["completed_by"] = 4
    for result in annotation["result"]:
        result["from_name"] = {"present": "absent", "absent": "absent"}[result["from_name"]]
    path.write_text(json.dumps(tasks))
    (item,), _ = items_of("label-studio", path)
    assert set(item.labels) == {
        ImportedLabel("class 0", ABSENT, "user 4"),
        ImportedLabel("class 1", ABSENT, "ann", 1.7e9, "click"),
    }


def test_label_studio_export_predicts_only_likely_classes_and_keeps_all_scores(tmp_path):
    view = view_of(np.array([[-1, -1, -1]]))
    (block,) = view.blocks()
    block.probabilities[:] = [[0.9, 0.1, np.nan]]
    path = write(FORMATS["label-studio"], type(view)(**{**vars(view), "blocks": lambda: iter([block])}), tmp_path)
    ((prediction,),) = [task["predictions"] for task in json.loads(path.read_text())]
    assert [result["value"]["choices"] for result in prediction["result"]] == [["class 0"]]
    assert prediction["score"] == 0.9
    (item,), _ = items_of("label-studio", path)
    assert item.scores == {"class 0": 0.9, "class 1": 0.1}


def test_cvat_reader_imports_tags_shapes_and_states_and_marks_model_tags(tmp_path):
    path = tmp_path / "annotations.xml"
    path.write_text(
        """<?xml version="1.0" encoding="utf-8"?>
<annotations><version>1.1</version>
<meta><job><labels><label><name>cat</name><attributes/></label><label><name>no dog</name><attributes>
<attribute><name>class</name><default_value>dog</default_value></attribute>
<attribute><name>state</name><default_value>absent</default_value></attribute></attributes></label></labels></job></meta>
<image id="0" name="in/a &amp; b.jpg" subset="val" width="1" height="1">
<tag label="cat" source="manual"></tag><tag label="no dog"></tag>
<box label="cow" occluded="0" xtl="0" ytl="0" xbr="1" ybr="1"><attribute name="age">3</attribute></box>
<tag label="hen"><attribute name="state">unsure</attribute></tag><tag label="pig" source="auto"></tag></image>
<image id="1" name="c.jpg" width="1" height="1"></image></annotations>"""
    )
    items, problems = items_of("cvat", path)
    assert not problems
    assert [(item.image, set(item.labels), item.answered) for item in items] == [
        (
            "in/a & b.jpg",
            {
                ImportedLabel("cat", PRESENT),
                ImportedLabel("dog", ABSENT),
                ImportedLabel("cow", PRESENT),
                ImportedLabel("hen", UNSURE),
                ImportedLabel("pig", PRESENT, source="model"),
            },
            True,
        ),
        ("c.jpg", set(), False),
    ]
    with zipfile.ZipFile(tmp_path / "task.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(path, "annotations.xml")
    assert FORMATS["cvat"].recognize(tmp_path / "task.zip")
    assert items_of("cvat", tmp_path / "task.zip")[0] == items


def test_xml_export_refuses_names_with_characters_invalid_in_xml(tmp_path):
    with pytest.raises(AnnotatorError, match=r"(?s)images.*a\\x07\.jpg.*b\\x01\.jpg"):
        write(FORMATS["cvat"], view_of(np.array([[1], [1], [1]]), ["dog"], ["a\7.jpg", "b\1.jpg", "c.jpg"]), tmp_path)
    for name in ("cvat", "label-studio"):
        with pytest.raises(AnnotatorError, match="XML cannot hold a letter of these classes"):
            write(FORMATS[name], view_of(np.array([[1]]), ["\ufffe"]), tmp_path)


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><annotations>&b;</annotations>'


@over(
    name__file__text__words=[
        ("label-studio", "x.json", '[{"data": {"image": "a.jpg"}, "annotations": [', "ends too early"),
        ("label-studio", "x.json", "[" * 5000, "nested too deep"),
        ("label-studio", "x.json", '[\n{"data": 3, "annotations": []}]', r"entry \[0\] \(line 2\)"),
        ("label-studio", "x.json", '[{"data": {"n": 3}, "annotations": []}]', "task 1: no value of data"),
        (
            "label-studio",
            "x.json",
            '[{"data": {"image": "a"}, "annotations": [{"result": [{"type": "choices", "value": {"choices": [3]}}]}]}]',
            "task 1: the field value.choices",
        ),
        ("cvat", "x.xml", "<annotations><version>1.1</version><image", "no whole XML file: .*line 1"),
        ("cvat", "x.xml", LAUGHS, "entities or a document type"),
        ("cvat", "x.xml", "<annotations>" + "<a>" * 60, "nested more than 50"),
        ("cvat", "x.xml", "<annotations><track id='0' label='x'/></annotations>", "CVAT for video"),
        ("cvat", "x.xml", "<html></html>", "not of CVAT"),
        ("cvat", "x.xml", "<annotations><image/></annotations>", "image 1: it has no name"),
        ("cvat", "x.xml", "<annotations><image name='a'><tag/></image></annotations>", r"image 1 \(a\): a tag without"),
        ("cvat", "x.zip", "PK\3\4half", "no whole zip"),
        (
            "datumaro",
            "annotations/a.json",
            '{"categories": {"label": {"labels": [3]}}, "items": []}',
            "categories.label",
        ),
        ("datumaro", "annotations/a.json", '{"categories": ' + "[" * 5000, "nested too deep"),
        (
            "datumaro",
            "annotations/a.json",
            '{"categories": {"label": {"labels": []}}, "items": [{"id": "a", "annotations": [{"label_id": 3}]}]}',
            r"a.json: items\[0\].annotations\[0\]: there is no label 3",
        ),
        ("fiftyone", "metadata.json", '{"sample_fields": 3}', "metadata.json cannot be read"),
        ("fiftyone", "metadata.json", "[" * 100_000, "metadata.json cannot be read"),
    ]
)
def test_annotation_file_errors_name_the_file_and_position(tmp_path_factory, name, file, text, words):
    folder = tmp_path_factory.mktemp("bad")
    path = folder / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    with pytest.raises(AnnotatorError, match=words):
        contents, problems = read(FORMATS[name], folder if name in ("datumaro", "fiftyone") else path)
        list(contents.items)
        raise problems.error("It cannot be read:")


def test_annotation_readers_refuse_oversized_xml_and_report_invalid_samples(tmp_path, monkeypatch):
    monkeypatch.setattr("annotator.exchange.formats.cvat.MAX_ELEMENT_BYTES", 1 << 20)
    path = tmp_path / "x.xml"
    path.write_text(f"<annotations><image name='{'x' * (2 << 20)}'/></annotations>")
    with pytest.raises(AnnotatorError, match="MB without an image"):
        items_of("cvat", path)
    (tmp_path / "tasks.json").write_text("[]")
    with (tmp_path / "tasks.config.xml").open("wb") as file:
        file.truncate(17 << 20)
    with pytest.raises(AnnotatorError, match=r"tasks\.config\.xml has more than 16 MB"):
        items_of("label-studio", tmp_path / "tasks.json")
    folder = write(FORMATS["fiftyone"], view_of(np.array([[1]]), files=FILES[:1]), tmp_path)
    (folder / "samples.json").write_text(
        '{"samples": [{"filepath": 3}, {"tags": []}, {"filepath": "a", "positive_labels": 3}]}'
    )
    items, problems = items_of("fiftyone", folder)
    assert not items
    assert [problem.partition(":")[0] for problem in problems] == ["samples[0]", "samples[1]", "samples[2]"]


def test_fiftyone_reader_ignores_file_paths_outside_the_source_folder(tmp_path):
    (tmp_path / "secret.jpg").write_bytes(b"x")
    folder = write(FORMATS["fiftyone"], view_of(np.array([[1]]), files=["a.jpg"]), tmp_path, picture=b"x")
    (folder / "data" / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    paths = ["data/a.jpg", "../secret.jpg", str(tmp_path / "secret.jpg"), "data/link.jpg", "data/../../secret.jpg"]
    (folder / "samples.json").write_text(json.dumps({"samples": [{"filepath": path} for path in paths]}))
    assert [item.file for item in items_of("fiftyone", folder)[0]] == ["data/a.jpg", "", "", "", ""]


@over(
    address__name=[
        ("https://host:80/a/b%20c.jpg?x=1#y", "a/b c.jpg"),
        ("gs://bucket/a/b.jpg", "a/b.jpg"),
        ("/data/upload/12/0a1b2c3d-e.jpg", "e.jpg"),
        ("/data/upload/12/e-0a1b2c3d.jpg", "e-0a1b2c3d.jpg"),
        ("/tasks/3/presign/?fileuri=czM6Ly9idWNrZXQvYS9iLmpwZw==", "a/b.jpg"),
        ("data:image/png;base64,iVBOR", ""),
        ("a b/c#d?.jpg", "a b/c#d?.jpg"),
        ("http://[bad/a.jpg", "http://[bad/a.jpg"),
    ]
)
def test_image_name_is_extracted_from_the_end_of_its_url(address, name):
    assert extract_image_name(address) == name


@over(name=[*NAMES, "huggingface", "webdataset"])
def test_annotation_files_with_damaged_bytes_cause_only_reported_errors_or_problems(tmp_path_factory, name):
    format_, chance = FORMATS[name], random.Random(name)
    view = view_of(all_cells(6, 4), ["a", "é", "🦊", "c d"], files=FILES, splits=["x", "y"] * 3, written="link")
    path = write(format_, view, tmp_path_factory.mktemp(name))
    files = [
        file for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file() and file.suffix != ".jpg"
    ]
    outcomes = set()
    for _ in range(60):
        file = chance.choice(files)
        whole = file.read_bytes()
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 3, 20])):
            damaged[chance.randrange(len(damaged))] = chance.choice([*b'"[{,0<>&', chance.randrange(256)])
        file.write_bytes(damaged[: chance.randrange(len(damaged))] if chance.random() < 0.2 else damaged)
        try:
            assert format_.recognize
            format_.recognize(path)
            outcomes.add(bool(items_of(name, path)[1]))
        except AnnotatorError as error:
            assert str(path.parent) in str(error), error
            outcomes.add(True)
        file.write_bytes(whole)
    assert outcomes == {True, False}, "nothing was damaged"
