"""From a project into another tool's format, and from there into a second project: the same answers, all of them."""

import csv
import json

import pytest

from annotator.store.database.database import Database


def cells(project) -> dict[tuple[str, str], int]:
    """(Image, class) -> state."""
    rows = Database(project).tuples(
        """SELECT i.name, c.name, l.state FROM label l JOIN image i ON i.id = l.image_id
        JOIN class c ON c.id = l.class_id"""
    )
    return {(image, class_): state for image, class_, state in rows}


@pytest.mark.parametrize("kind", ["label-studio", "cvat", "fiftyone", "datumaro", "huggingface", "webdataset"])
def test_second_project_imports_equal_labels_from_the_export_of_the_first(
    annotator, project, photos, class_file, tmp_path, kind
):
    states = ["present", "absent", "unsure", "present", "absent"]
    images = sorted(path.relative_to(photos).as_posix() for path in photos.rglob("*.*"))
    rows = [
        (image, class_, states[(3 * row + column) % 7 % 5])
        for row, image in enumerate(images)
        for column, class_ in enumerate(("fox", "heron", "deer"))
        if (row + column) % 3
    ]
    with (tmp_path / "answers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("image", "class", "state"), *rows])
    annotator("import", project, "answers.csv", "--yes")
    assert cells(project)
    ending = {"label-studio": ".json", "cvat": ".xml"}.get(kind, "")
    annotator("export", project, f"out{ending}", "--format", kind, "--splits", "train=0.5,val=0.5")
    annotator("init", "second", "--images", photos, "--classes", class_file)
    annotator("import", "second", f"out{ending}", "--yes")
    assert cells(tmp_path / "second") == cells(project)


def test_exhaustive_import_applies_only_to_answered_label_studio_tasks(annotator, project, photos, tmp_path):
    names = sorted(path.name for path in photos.iterdir())[:3]
    choice = {"from_name": "x", "to_name": "image", "type": "choices", "value": {"choices": ["fox"]}}
    done, skipped = {"result": [choice]}, {"result": [choice], "was_cancelled": True}
    tasks = [{"data": {"image": name}, "annotations": [[done], [skipped], []][row]} for row, name in enumerate(names)]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    annotator("import", project, "tasks.json", "--exhaustive", "--yes")
    assert {image for image, _ in cells(project)} == {names[0]}
