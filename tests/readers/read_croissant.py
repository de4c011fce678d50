"""mlcroissant: validates a Croissant description, and says which classes each image has in each state."""

import json
import subprocess
import sys
from pathlib import Path

import mlcroissant
from loop import Cells, serve

STATES = ("present", "absent", "unsure", "unanswered")


def read(path: str, again: str) -> Cells:
    """Records by their image; unanswered classes, too. `again` is a file for what its validator prints."""
    if again:
        command = [str(Path(sys.executable).with_name("mlcroissant")), "validate", "--jsonld", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        Path(again).write_text(json.dumps([done.returncode, done.stdout + done.stderr]), encoding="utf-8")
    cells: Cells = {}
    for record in mlcroissant.Dataset(jsonld=path).records("image_labels"):
        image = record["image_labels/image"].decode()
        cells[image] = {
            name.decode() if isinstance(name, bytes) else name: state
            for state in STATES
            for name in record[f"image_labels/{state}"]
        }
    return cells


serve(read)
