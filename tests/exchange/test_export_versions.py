"""Exports with a name, and what changed between two of them."""

import json

import numpy as np
import pytest
from harness.answers import answer_cell
from harness.csv_rows import rows_of
from safetensors.numpy import load_file

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import export_data_set
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.classes import class_changes, classes
from annotator.store.images import images
from annotator.store.labels import tagged_exports


def test_export_version_stores_its_labels_and_choices(db, tmp_path):
    answer_cell(db, 1, 1, PRESENT)
    answer_cell(db, 2, 2, UNSURE)
    export_data_set(db, tmp_path / "x.csv", "csv", Choices(classes=("heron", "fox")), tag="v1", by="Ann")
    [tag] = tagged_exports.load_tags(db)
    assert (tag.name, tag.annotator, tag.format, tag.last_decision) == ("v1", "Ann", "csv", 2)
    assert Choices.from_json(tag.choices) == Choices(classes=("heron", "fox"))
    stored = load_file(tagged_exports.get_cells_path(db, tag.id))
    assert stored["image_ids"].tolist() == list(range(1, 25))
    assert stored["values"][:2].tolist() == [[-1, 1], [-1, -1]] and stored["states"][:2].tolist() == [[0, 1], [3, 0]]
    with pytest.raises(AnnotatorError, match="is tagged 'v1' already"):
        export_data_set(db, tmp_path / "y.csv", "csv", tag="v1")
    assert not (tmp_path / "y.csv").exists() and len(list(db.paths.tags.iterdir())) == 1
    with pytest.raises(AnnotatorError, match="letters, digits"):
        export_data_set(db, tmp_path / "y.csv", "csv", tag="a\nb")


def test_failed_export_creates_no_export_version(db, tmp_path, monkeypatch):
    monkeypatch.setattr("annotator.exchange.exports.data_card.format_markdown", lambda card: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export_data_set(db, tmp_path / "x.csv", "csv", tag="v1")
    assert not tagged_exports.load_tags(db) and not [*tmp_path.glob("x*"), *tmp_path.glob(".*")]


def test_diff_of_two_export_versions_lists_changed_images_classes_and_labels(db, tmp_path, annotator):
    answer_cell(db, 1, 1, PRESENT)
    answer_cell(db, 2, 1, ABSENT)
    project = db.paths.project
    annotator("export", project, "one.csv", "--tag", "v1", "--class", "fox", "--class", "heron")
    answer_cell(db, 1, 1, ABSENT)
    answer_cell(db, 3, 2, PRESENT)
    class_changes.edit(db, "Ann", {1: {"name": "vixen"}})
    classes.add_classes(db, [("wolf", "")])
    annotator("export", project, "two.csv", "--tag", "v2", "--only-labeled")
    said = annotator("diff", project, "v1", "v2", "--csv", "changes.csv").stdout
    names = {key: image.name for key, image in images.load_images(db, [1, 2, 3]).items()}
    assert "Class 'fox' is called 'vixen' now." in said
    assert "0 added, 23 removed, 1 in both" in said and "2 classes added: deer, wolf" in said
    assert f"heron: unknown -> present: 1 (such as {names[3]})" in said
    assert rows_of(tmp_path / "changes.csv") == [
        {"image": names[3], "class": "heron", "before": "unknown", "after": "present"}
    ]
    annotator("export", project, "three.csv", "--tag", "v3")
    facts = json.loads(annotator("diff", project, "v1", "v3", "--json").stdout)
    assert facts["pairs_changed"] == 2 and facts["images_in_both"] == 24
    assert {(one["before"], one["after"], one["pairs"]) for one in facts["changes"]} == {
        ("present", "absent", 1),
        ("unknown", "present", 1),
    }
    assert "v1" in annotator("tags", project).stdout
    assert [tag["name"] for tag in json.loads(annotator("tags", project, "--json").stdout)] == ["v1", "v2", "v3"]
    assert "Did you mean 'v1'" in annotator("diff", project, "v1x", code=1).stderr


def test_diff_compares_an_export_version_with_current_labels_and_leaves_no_file(db, annotator):
    answer_cell(db, 1, 1, PRESENT)
    annotator("export", db.paths.project, "one.csv", "--tag", "v1", "--unknown", "absent")
    assert "0 pairs of 0 images changed" in annotator("diff", db.paths.project, "v1").stdout
    answer_cell(db, 5, 3, PRESENT)
    said = annotator("diff", db.paths.project, "v1").stdout
    assert "1 pair of 1 image changed" in said and "deer: absent -> present: 1" in said
    assert [path.name for path in db.paths.tags.iterdir()] == ["1.safetensors"]
    tagged_exports.get_cells_path(db, 1).write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    assert "cannot be read" in annotator("diff", db.paths.project, "v1", code=1).stderr


def test_export_version_labels_written_in_blocks_are_read_back_unchanged(db):
    rng = np.random.default_rng(0)
    states = rng.integers(0, 4, (24, 3)).astype(np.int8)
    with tagged_exports.open_cell_writer(db, np.arange(1, 25), classes.load_active_classes(db)) as (writer, path):
        for start in range(0, 24, 7):
            writer.add(-states[start : start + 7], states[start : start + 7])
    cells = tagged_exports.read_cells(path)
    assert (cells.states == states).all() and (cells.values == -states).all()
    assert cells.classes == [(1, "fox"), (2, "heron"), (3, "deer")]
