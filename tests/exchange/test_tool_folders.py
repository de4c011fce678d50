"""Folders of labeling tools with one JSON file per image, next to images."""

import json
from pathlib import Path

import pytest
from conftest import draw
from harness.tool_files import darwin_record, scale_task, superannotate_record

from annotator import open
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import FORMATS
from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
from annotator.exchange.imports.label_files import match_formats
from annotator.exchange.reading.reading_options import ReadingOptions

TAG = {"id": "1", "name": "fox", "tag": {}}
GUESS = {"id": "2", "name": "deer", "tag": {}, "inference": {"confidence": 0.9}}
VIDEO_ITEM = {"name": "film.mp4", "path": "/", "slots": [{"type": "video"}]}
FOLDER_RECORDS = {
    "darwin": {
        "a": darwin_record("a.jpg", TAG, GUESS),
        "b": darwin_record("b.jpg", GUESS),
        "gone": darwin_record("gone.jpg", TAG),
        "film": {**darwin_record("film.mp4", TAG), "item": VIDEO_ITEM},
    },
    "superannotate": {
        "a.jpg___objects": superannotate_record("a.jpg", "Completed"),
        "b.jpg___objects": superannotate_record("b.jpg", "Checked twice"),
        "gone.jpg___objects": superannotate_record("gone.jpg", "Completed"),
        "film.mp4": superannotate_record("film.mp4", "Completed", meta={"start": 0}),
    },
    "scale-ai": {
        "a": scale_task("a.jpg", "completed"),
        "b": scale_task("b.jpg", "completed", customer_review_status="rejected"),
        "gone": scale_task("gone.jpg", "completed"),
    },
}


def read_folder(name: str, path: Path, **options: object) -> tuple[dict[str, list[str]], list[str]]:
    """Return (image -> classes, sentences), after asserting that no problem was found."""
    problems, format_ = Problems(), FORMATS[name]
    assert format_.read and [one.name for one, _ in match_formats(path)] == [name]
    contents = format_.read(path, problems, ReadingOptions(**options))  # type: ignore[arg-type]
    labels = {item.image.rpartition("/")[2]: [one.class_name for one in item.labels] for item in contents.items}
    assert not problems.sentences
    return labels, list(contents.sentences)


@pytest.mark.parametrize("name", FOLDER_RECORDS)
def test_folder_of_a_tool_is_read_with_peoples_answers_and_reports_the_rest(name: str, tmp_path: Path) -> None:
    for image in ("a", "b"):
        draw(tmp_path / f"set/images/{image}.jpg", ("fox",), seed=ord(image))
    (tmp_path / "set/annotations").mkdir()
    for file, record in FOLDER_RECORDS[name].items():
        text = json.dumps(dict(reversed(record.items())), indent=2)
        (tmp_path / f"set/annotations/{file}.json").write_text(text)
    (tmp_path / "set/settings.json").write_text('{"color": "red"}')
    assert [format_.name for format_, _ in match_formats(tmp_path / "set")] == [name]
    with prepare_import(tmp_path / "project", tmp_path / "set", ImportOptions(), "Ann") as plan:
        assert not [one for one in plan.interpretations if not one.is_sure]
        assert "Not read: 1 record is of another kind (first: settings.json)." in plan.sentences
        plan.apply()
    with open(tmp_path / "project") as project:
        assert project.labels()[["image", "class", "state"]].values.tolist() == [["images/a.jpg", "fox", "present"]]


def test_superannotate_class_ids_are_named_by_the_class_list(tmp_path: Path) -> None:
    (tmp_path / "classes").mkdir()
    (tmp_path / "classes/classes.json").write_text('[{"id": 1, "name": "fox", "attribute_groups": []}]')
    record = superannotate_record("a.jpg", "Completed", className="")
    (tmp_path / "a.jpg.json").write_text(json.dumps(record))
    labels, said = read_folder("superannotate", tmp_path)
    assert labels == {"a.jpg": ["fox"]} and not [one for one in said if "another kind" in one]
    (tmp_path / "classes/classes.json").unlink()
    labels, said = read_folder("superannotate", tmp_path)
    assert labels == {"a.jpg": []} and "Not read: 1 instance has no class (first: a.jpg)." in said


def test_superannotate_predictions_are_left_out(tmp_path: Path) -> None:
    record = superannotate_record("a.jpg", "Completed", creationType="Prediction")
    (tmp_path / "a.jpg.json").write_text(json.dumps(record))
    labels, said = read_folder("superannotate", tmp_path)
    assert labels == {"a.jpg": []}
    assert "Not read: 1 instance was not created by a person (first: a.jpg)." in said


def test_unsubmitted_images_are_read_if_the_user_declares_it(tmp_path: Path) -> None:
    (tmp_path / "a.jpg.json").write_text(json.dumps(superannotate_record("a.jpg", "InProgress")))
    assert read_folder("superannotate", tmp_path)[0] == {"a.jpg": []}
    assert read_folder("superannotate", tmp_path, kept_rows="none")[0] == {"a.jpg": ["fox"]}


def test_darwin_item_properties_are_fields_until_one_is_declared(tmp_path: Path) -> None:
    record = {**darwin_record("a.jpg"), "properties": [{"name": "kind", "value": "owl"}]}
    (tmp_path / "a.json").write_text(json.dumps(record, indent=1))
    assert read_folder("darwin", tmp_path)[0] == {"a.jpg": []}
    assert read_folder("darwin", tmp_path, label_columns=("kind",))[0] == {"a.jpg": ["owl"]}


def test_darwin_pixels_of_masks_are_no_class(tmp_path: Path) -> None:
    raster = {"id": "3", "name": "__raster_layer__", "raster_layer": {"dense_rle": [0, 9]}}
    record = darwin_record("a.jpg", {"id": "2", "name": "fox", "mask": {}}, raster)
    (tmp_path / "a.json").write_text(json.dumps(record, indent=1))
    assert read_folder("darwin", tmp_path)[0] == {"a.jpg": ["fox"]}


def test_scale_categories_of_a_page_of_tasks_are_present(tmp_path: Path) -> None:
    tasks = [scale_task("a.jpg", "completed", response={"category": ["fox", "owl"]}), scale_task("b.jpg", "canceled")]
    (tmp_path / "tasks.json").write_text(json.dumps({"docs": tasks, "total": 2}, indent=1))
    labels, said = read_folder("scale-ai", tmp_path / "tasks.json")
    assert labels == {"a.jpg": ["fox", "owl"], "b.jpg": []}
    assert "Not read: 1 task is canceled (first: https://example.org/b.jpg)." in said
