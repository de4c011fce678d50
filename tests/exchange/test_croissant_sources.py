"""Croissant descriptions as sources: our exports in full, declared fields of others, and refusals that help."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from harness.answers import answer_cell

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import find_format, match_formats
from annotator.exchange.formats.contents import Contents
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.images import images

DECLARED = ReadingOptions(image_column="photos/file_name", label_columns=("photos/species",))


def read_description(path: Path, options: ReadingOptions = ReadingOptions()) -> tuple[Contents, list[str]]:
    problems, format_ = Problems(), find_format("croissant", "read")
    assert format_.read
    contents = format_.read(path, problems, options)
    contents.items = iter(list(contents.items))
    return contents, problems.sentences


def write_foreign(folder: Path, table: str = "file_name,species,site\na.jpg,fox,north\nb.jpg,deer,south\n") -> Path:
    """A description by another program, of a table with an image and a label."""
    (folder / "table.csv").write_text(table)
    file = {"fileObject": {"@id": "table"}}
    fields: list[dict[str, Any]] = [
        {"@id": f"photos/{name}", "name": name, "source": file | {"extract": {"column": name}}}
        for name in ("file_name", "species", "site")
    ]
    document = {
        "@context": {"@vocab": "https://schema.org/", "cr": "http://mlcommons.org/croissant/"},
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "foreign",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": "table",
                "contentUrl": "https://example.org/data/table.csv",
                "encodingFormat": "text/csv",
                "sha256": hashlib.sha256(table.encode()).hexdigest(),
            }
        ],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "photos", "field": fields}],
    }
    return write_json(folder / "meta.json", document)


def write_json(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


def change(path: Path, *keys: Any, value: Any) -> Path:
    document = json.loads(path.read_text())
    node = document
    for key in keys[:-1]:
        node = node[key]
    node[keys[-1]] = value
    return write_json(path, document)


@pytest.mark.parametrize("name", ["csv", "coco", "voc"])
def test_import_of_an_exported_croissant_description_restores_every_label_and_split(db, tmp_path, name):
    for image_id, class_id, state in ((1, 1, PRESENT), (1, 2, ABSENT), (2, 3, UNSURE), (24, 2, PRESENT)):
        answer_cell(db, image_id, class_id, state)
    format_ = find_format(name, "write")
    target = tmp_path / f"labels{format_.ending}"
    export_data_set(db, target, name, Choices(croissant=True, splits="train=0.5,val=0.5"), lossy=True)
    path = target / "croissant.json" if target.is_dir() else tmp_path / "labels.croissant.json"
    assert [one.name for one, _ in match_formats(path)] == ["croissant"]
    contents, problems = read_description(path)
    shown = {key: image.name for key, image in images.load_images(db, [1, 2, 24]).items()}
    items = list(contents.items)
    read = {(item.image, label.class_name): label.state for item in items for label in item.labels}
    assert read == {
        (shown[1], "fox"): PRESENT,
        (shown[1], "heron"): ABSENT,
        (shown[2], "deer"): UNSURE,
        (shown[24], "heron"): PRESENT,
    }
    assert len(items) == 24 and {item.attributes["split"] for item in items} == {"train", "val"} and not problems
    assert list(contents.classes) == [("fox", ""), ("heron", "grey, with a long neck"), ("deer", "")]


def test_folder_import_of_an_export_with_a_croissant_description_reads_the_label_file(db, tmp_path, annotator):
    answer_cell(db, 1, 1, PRESENT)
    (tmp_path / "out").mkdir()
    export_data_set(db, tmp_path / "out" / "labels.csv", "csv", Choices(croissant=True))
    said = annotator("import", db.paths.project, tmp_path / "out", "--dry-run", "--yes").stdout
    assert "Labels are read from labels.csv" in said and "croissant" not in said


def test_changed_croissant_records_are_refused_with_both_file_names(db, tmp_path):
    export_data_set(db, tmp_path / "labels.csv", "csv", Choices(croissant=True))
    records = tmp_path / "labels.croissant_records.json"
    records.write_text(records.read_text().replace('"unanswered": ["fox"', '"unanswered": ["wolf"', 1))
    with pytest.raises(
        AnnotatorError, match=r"labels.croissant_records.json is not the file that labels.croissant.json"
    ):
        read_description(tmp_path / "labels.croissant.json")


def test_contradicting_croissant_records_are_reported_as_problems(db, tmp_path):
    export_data_set(db, tmp_path / "labels.csv", "csv", Choices(croissant=True))
    path, records = tmp_path / "labels.croissant.json", tmp_path / "labels.croissant_records.json"
    rows = json.loads(records.read_text())
    rows["records"][0]["present"] = ["fox"]
    rows["records"][1]["present"] = ["wolf"]
    rows["records"][2].pop("unsure")
    write_json(records, rows)
    change(path, "distribution", 0, "sha256", value=hashlib.sha256(records.read_bytes()).hexdigest())
    contents, problems = read_description(path)
    assert len(list(contents.items)) == 21 and len(problems) == 3
    said = " ".join(problems)
    assert "a class is in two of its lists" in said and "'wolf' is not in the record set classes" in said
    assert "missing required field `unsure`" in said


def test_declared_croissant_fields_are_read_from_the_local_file(tmp_path):
    path = write_foreign(tmp_path)
    assert [one.name for one, _ in match_formats(path)] == ["croissant"]
    for options in (DECLARED, ReadingOptions(image_column="file_name", label_columns=("species",))):
        contents, problems = read_description(path, options)
        read = {(item.image, label.class_name, label.state) for item in contents.items for label in item.labels}
        assert read == {("a.jpg", "fox", PRESENT), ("b.jpg", "deer", PRESENT)} and not problems
        assert "1 other fields (first: photos/site)" in " ".join(contents.sentences)


def test_croissant_separator_of_a_declared_field_splits_its_labels(tmp_path):
    path = write_foreign(tmp_path, "file_name,species,site\na.jpg,fox~deer,north\nb.jpg,deer,south\n")
    change(path, "recordSet", 0, "field", 1, "source", "transform", value={"separator": "~"})
    contents, _ = read_description(path, DECLARED)
    assert [[label.class_name for label in item.labels] for item in contents.items] == [["fox", "deer"], ["deer"]]


@pytest.mark.parametrize(
    ("keys", "value", "options", "message"),
    [
        (
            (),
            None,
            ReadingOptions(),
            "Declare two fields of a record set(.|\n)*photos: photos/file_name, photos/species",
        ),
        ((), None, ReadingOptions(image_column="photos/file_name"), "--label-column FIELD"),
        ((), None, ReadingOptions(image_column="image", label_columns=("species",)), "there is no field 'image'"),
        (("distribution", 0, "contentUrl"), "https://example.org/other.csv", DECLARED, "Nothing is downloaded: put"),
        (("distribution", 0, "contentUrl"), "../table.csv", DECLARED, "which is not in"),
        (("distribution", 0, "contentUrl"), "/etc/passwd", DECLARED, "which is not in"),
        (("distribution", 0, "sha256"), "0" * 64, DECLARED, "its sha256 differs"),
        (("distribution", 0, "containedIn"), {"@id": "zip"}, DECLARED, "Unpack it"),
        (("distribution", 0, "encodingFormat"), "text/plain", DECLARED, "Supported: text/csv"),
        (("distribution",), [], DECLARED, "has no single file 'table'"),
        (("distribution",), 3, DECLARED, "has no single file 'table'"),
        (("recordSet", 0, "field", 1, "source", "transform"), {"regex": "a(.*)"}, DECLARED, r"transformed \(regex\)"),
        (("recordSet", 0, "field", 1, "source"), {"fileSet": {"@id": "x"}}, DECLARED, "not a column of a file"),
        (("recordSet",), "photos", DECLARED, "It has no fields"),
        (("recordSet", 0, "field"), [3, None, {"@id": 3}], DECLARED, "there is no field 'photos/file_name'"),
        (("conformsTo",), "http://example.org/1.0", DECLARED, "conformsTo is"),
    ],
)
def test_unusable_croissant_descriptions_are_refused_with_the_reason(tmp_path, keys, value, options, message):
    path = write_foreign(tmp_path)
    if keys:
        change(path, *keys, value=value)
    with pytest.raises(AnnotatorError, match=message):
        read_description(path, options)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        '{"@context": ' + "[" * 100_000,
        '{"@context": {}, "conformsTo": "http://mlcommons.org/croissant/1.0", "recordSet": [',
        '{"@context": {}, "conformsTo": ["http://mlcommons.org/croissant/1.1"], "recordSet": {"field": "x"}}',
    ],
)
def test_broken_croissant_descriptions_are_refused_without_a_crash(tmp_path, text):
    path = tmp_path / "croissant.json"
    path.write_text(text)
    match_formats(path)
    with pytest.raises(AnnotatorError):
        read_description(path)
