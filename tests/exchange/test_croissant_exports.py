"""Croissant descriptions: files with hashes, records with every label, and facts that only people know."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from harness import audit_answers
from harness.answers import answer_cell
from harness.export_page import page, settled

from annotator.exchange.croissant.croissant_facts import load_facts
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.formats import FORMATS
from annotator.quality import audit_sampling
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.images import images

FACTS = {
    "name": "Birds",
    "version": "1.0.0",
    "datePublished": "2026-05-01",
    "license": "CC-BY-4.0",
    "citeAs": "Ann (2026)",
    "creator": [{"type": "Person", "name": "Ann", "url": "https://example.org/ann"}],
    "rai:dataBiases": ["More photos by day than by night."],
    "rai:dataLimitations": "One forest only.",
}
STATES = ("present", "absent", "unsure", "unanswered")


def load_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def answer_some(db) -> dict[int, dict[str, list[str]]]:
    """Answer four cells; image -> state -> class names."""
    for image_id, class_id, state in ((1, 1, PRESENT), (1, 2, ABSENT), (2, 3, UNSURE), (24, 2, PRESENT)):
        answer_cell(db, image_id, class_id, state)
    empty = {"present": [], "absent": [], "unsure": [], "unanswered": ["fox", "heron", "deer"]}
    return dict.fromkeys(range(1, 25), empty) | {
        1: {"present": ["fox"], "absent": ["heron"], "unsure": [], "unanswered": ["deer"]},
        2: {"present": [], "absent": [], "unsure": ["deer"], "unanswered": ["fox", "heron"]},
        24: {"present": ["heron"], "absent": [], "unsure": [], "unanswered": ["fox", "deer"]},
    }


def name_files(target: Path) -> tuple[Path, Path]:
    """The description of an export, and the folder that its file names begin in."""
    if target.is_dir():
        return target / "croissant.json", target
    return target.with_name(f"{target.stem}.croissant.json"), target.parent


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("csv", "voc", "huggingface") else pytest.mark.slow)
        for name, format_ in FORMATS.items()
        if format_.write and not format_.extra
    ],
)
def test_croissant_description_lists_every_file_with_its_hash_and_size(db, tmp_path, name):
    answer_some(db)
    target = tmp_path / f"labels{FORMATS[name].ending}"
    export_data_set(db, target, name, Choices(croissant=True, unknown="absent"), lossy=True)
    path, folder = name_files(target)
    document = load_json(path)
    listed = {one["contentUrl"]: one for one in document["distribution"] if one["@type"] == "cr:FileObject"}
    for file, described in listed.items():
        content = (folder / file).read_bytes()
        assert described["sha256"] == hashlib.sha256(content).hexdigest()
        assert described["contentSize"] == f"{len(content)} B"
    sets = [one for one in document["distribution"] if one["@type"] == "cr:FileSet"]
    found = {file for one in sets for pattern in one["includes"] for file in folder.glob(pattern.replace("/", "/**/"))}
    card = "data_card.json" if target.is_dir() else "labels.card.json"
    expected = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    if not target.is_dir():
        expected = {file for file in expected if file.startswith("labels.")}
    in_sets = {file.relative_to(folder).as_posix() for file in found}
    assert listed.keys() | in_sets == expected - {card, path.name}
    assert load_json(folder / card)["written"][path.name] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_croissant_records_hold_every_label_of_every_image_and_its_split(db, tmp_path):
    expected = answer_some(db)
    target = tmp_path / "labels.csv"
    export_data_set(db, target, "csv", Choices(croissant=True, splits="train=0.5,val=0.5"))
    records = load_json(tmp_path / "labels.croissant_records.json")["records"]
    names = {image.name: key for key, image in images.load_images(db, list(range(1, 25))).items()}
    assert len(records) == 24 and {record["image"] for record in records} == set(names)
    for record in records:
        assert {state: record[state] for state in STATES} == expected[names[record["image"]]]
    assert {record["split"] for record in records} == {"train", "val"}
    document = load_json(tmp_path / "labels.croissant.json")
    classes, splits, labels = document["recordSet"]
    assert [row["classes/name"] for row in classes["data"]] == ["fox", "heron", "deer"]
    assert [row["splits/name"] for row in splits["data"]] == ["train", "val"]
    assert [field["name"] for field in labels["field"]] == ["image", "sha256", "split", *STATES]


def test_croissant_description_has_only_measured_figures_and_stored_facts(db, tmp_path, annotator):
    answer_some(db)
    (tmp_path / "facts.json").write_text(json.dumps(FACTS))
    said = annotator("export", db.paths.project, "one.csv", "--croissant").stdout
    assert "croissant.json lacks license, creator, version, datePublished, citeAs" in said
    document = load_json(tmp_path / "one.croissant.json")
    assert not document.keys() & {"license", "creator", "version", "rai:machineAnnotationTools", "rai:dataBiases"}
    assert not any("recall of" in sentence for sentence in document["rai:dataLimitations"])
    assert document["rai:annotationsPerItem"].startswith("0.17 labels per image on average: 4 labels on 24 images")
    annotator("export", db.paths.project, "two.csv", "--croissant", "--croissant-facts", "facts.json")
    said = annotator("export", db.paths.project, "three.csv", "--croissant", "--license", "MIT").stdout
    assert "lacks" not in said
    document = load_json(tmp_path / "three.croissant.json")
    assert document["license"] == "MIT" and document["name"] == "Birds"
    assert document["creator"] == [{"@type": "Person", "name": "Ann", "url": "https://example.org/ann"}]
    assert document["rai:dataLimitations"][-1] == "One forest only."
    assert document["conformsTo"] == ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]


def test_croissant_limitations_have_the_recall_of_audited_classes(db, tmp_path):
    audit_sampling.draw_audit(db, 30, seed=1)
    audit_answers.answer(db)
    export_data_set(db, tmp_path / "labels.csv", "csv", Choices(croissant=True))
    card, document = (load_json(tmp_path / f"labels.{name}.json") for name in ("card", "croissant"))
    said = [sentence for sentence in document["rai:dataLimitations"] if sentence.startswith("The recall of")]
    rows = [*card["classes"], {"name": "all classes", "certificate": card["certificate"]["overall"]}]
    expected = [
        f"The recall of {row['name']} {condition} is {row['certificate'][kind]['estimate']:.3f} (95% interval"
        for row in rows
        for kind, condition in (
            ("recall", "if people's answers are right"),
            ("recall_allowing", "if 1 answer in 50 is wrong"),
        )
        if row["certificate"][kind]["estimate"] is not None
    ]
    assert len(said) == len(expected) > 2
    assert all(sentence.startswith(start) for sentence, start in zip(said, expected, strict=True))


def test_croissant_limitations_have_no_recall_of_a_class_that_no_audit_checked(db, tmp_path):
    for image_id in range(1, 25):
        answer_cell(db, image_id, 1, PRESENT)
    export_data_set(db, tmp_path / "labels.csv", "csv", Choices(croissant=True))
    card, document = (load_json(tmp_path / f"labels.{name}.json") for name in ("card", "croissant"))
    assert card["classes"][0]["certificate"]["recall"]["estimate"] == 1  # if the answers are right
    assert "recall" not in " ".join(document["rai:dataLimitations"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "is not a JSON object"),
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"licence": "MIT"}', "'licence' is not a known fact"),
        ('{"version": "v1"}', "MAJOR.MINOR.PATCH"),
        ('{"datePublished": "May 2026"}', "it must be a date"),
        ('{"creator": "Ann"}', "'creator' has 'Ann'"),
        ('{"rai:dataBiases": [1]}', "a text or a list of texts"),
        ('{"name": {"en": "Birds"}}', "it must be a text"),
        (" " * (2 << 20), "more than 1,048,576 bytes"),
    ],
)
def test_invalid_croissant_facts_are_refused_before_anything_is_written(db, tmp_path, annotator, content, message):
    (tmp_path / "facts.json").write_text(content)
    done = annotator("export", db.paths.project, "x.csv", "--croissant", "--croissant-facts", "facts.json", code=1)
    assert message in done.stderr and not [*tmp_path.glob("x*")]


def test_croissant_facts_without_a_croissant_description_are_refused(db, tmp_path, annotator):
    done = annotator("export", db.paths.project, "x.csv", "--croissant-facts", "facts.json", code=1)
    assert "--croissant writes" in done.stderr


def test_export_with_a_croissant_description_replaces_its_own_earlier_files_only(db, tmp_path, annotator):
    target = tmp_path / "x.csv"
    for _ in range(2):
        export_data_set(db, target, "csv", Choices(croissant=True))
    (tmp_path / "x.croissant.json").write_text("mine")
    done = annotator("export", db.paths.project, "x.csv", "--croissant", code=1)
    assert "x.croissant.json" in done.stderr and (tmp_path / "x.croissant.json").read_text() == "mine"


def test_export_page_stores_the_facts_of_its_form_and_shows_what_is_missing(db):
    test = page(db, export_croissant=True)
    assert [one.label for one in test.expander if "Croissant" in one.label] == [
        "Facts for Croissant: missing License, Creators, Version, Date of publication, Citation"
    ]
    test.text_input(key="croissant_version").input("1.0")
    test.text_area(key="croissant_rai:dataBiases").input("Few nights.\n\nOne forest.")
    settled(test.button(key="save_croissant_facts").click())
    assert "must be MAJOR" in test.error[0].value
    assert not load_facts(db)
    test.text_input(key="croissant_version").input("1.0.0")
    settled(test.button(key="save_croissant_facts").click())
    assert load_facts(db) == {"version": "1.0.0", "rai:dataBiases": ["Few nights.", "One forest."]}
