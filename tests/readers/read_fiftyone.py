"""FiftyOne: imports its own folder into a database of its own, and says which labels each sample has."""

import os
import tempfile

home = tempfile.TemporaryDirectory()
os.environ |= {
    "HOME": home.name,
    "FIFTYONE_DATABASE_DIR": f"{home.name}/db",
    "FIFTYONE_CONFIG_PATH": f"{home.name}/config.json",
    "FIFTYONE_DO_NOT_TRACK": "true",
    "FIFTYONE_DATABASE_VALIDATION": "false",
    "FIFTYONE_SHOW_PROGRESS_BARS": "false",
}

import fiftyone  # noqa: E402 - after its settings
from loop import Cells, serve  # noqa: E402

FIELDS = {"positive_labels": "present", "negative_labels": "absent", "unsure_labels": "unsure"}


def read(path: str, again: str) -> Cells:
    """Samples by the exact name of their image, which is in a field of ours."""
    data = fiftyone.Dataset.from_dir(dataset_dir=path, dataset_type=fiftyone.types.FiftyOneDataset)
    cells: Cells = {}
    for sample in data:
        cells[sample["multilabel_annotator"]["image"]] = {
            label.label: state for field, state in FIELDS.items() for label in sample[field].classifications
        }
    if again:
        data.export(export_dir=again, dataset_type=fiftyone.types.FiftyOneDataset, export_media=False)
    data.delete()
    return cells


serve(read)
