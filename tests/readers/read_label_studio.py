"""Label Studio: its SDK checks tasks against the labeling config beside them, and its converter reads them."""

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from label_studio_sdk.converter import Converter
from label_studio_sdk.label_interface import LabelInterface
from loop import Cells, serve


def read(path: str, again: str) -> Cells:
    """Again: the tasks as a project of Label Studio exports them, which adds fields of its own.

    Raises AssertionError for what the SDK refuses.
    """
    config = Path(path).with_suffix(".config.xml").read_text()
    interface = LabelInterface(config)
    interface.validate()
    tasks = json.loads(Path(path).read_text())
    for task in tasks:
        assert task["data"]["image"]
        for annotation in task["annotations"]:
            assert interface.validate_annotation(annotation), annotation
        for prediction in task["predictions"]:
            assert not interface.validate_prediction(prediction, return_errors=True)
    if again:
        Path(again).write_text(json.dumps([exported(task) for task in tasks], indent=2))
    cells: Cells = {}
    converter = Converter(config, project_dir=None, download_resources=False)
    for row in converter.iter_from_json_file(path):
        image = parse_qs(urlsplit(row["input"]["image"]).query)["d"][0]
        cells[image] = {
            choice: state
            for state in ("present", "absent", "unsure")
            for value in row["output"].get(state, ())
            for choice in value["choices"]
        }
    return cells


def exported(task: dict) -> dict:
    """A task after import and export by a server: label_studio/tasks/serializers.py."""
    added = {"completed_by": 1, "created_at": "2026-01-02T03:04:05.000000Z", "lead_time": 3.5, "unique_id": "x"}
    task["annotations"] = [annotation | added | {"id": 1, "task": 7} for annotation in task["annotations"]]
    return task | {"id": 7, "inner_id": 1, "project": 3, "total_annotations": 1, "updated_at": added["created_at"]}


serve(read)
