"""CVAT: the SDK makes the labels of a task from the file beside the XML."""

import json
from pathlib import Path

from cvat_sdk import models
from loop import Cells, serve


def read(path: str, again: str) -> Cells:
    """Label -> the default values of its attributes."""
    labels = [
        models.PatchedLabelRequest(
            name=label["name"],
            type=label["type"],
            attributes=[models.AttributeRequest(**attribute) for attribute in label["attributes"]],
        )
        for label in json.loads(Path(path).read_text())
    ]
    task = models.TaskWriteRequest(name="task", labels=labels)
    return {
        label.name: {attribute.name: attribute.default_value for attribute in label.attributes} for label in task.labels
    }


serve(read)
