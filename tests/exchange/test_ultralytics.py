"""YOLO folders: Ultralytics' own checks accept what we write, and find in a detection set what we find."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness.formats_view import read, view_of, write
from PIL import Image

from annotator.exchange.formats.yolo import YOLO, YOLO_CLS

HERE = Path(__file__).resolve().parents[1]
READERS = Path(os.environ.get("ANNOTATOR_READERS") or HERE.parent / ".venv-readers") / "ultralytics"

pytestmark = [
    pytest.mark.readers,
    pytest.mark.process,
    pytest.mark.skipif(not READERS.is_dir(), reason="Ultralytics is installed by make test-readers"),
]
CLASSES = ["a/b", "traffic light", "\U0001f98a fox", "con", "CON"]


def found_by_ultralytics(task: str, path: Path, tmp_path: Path):
    variables = os.environ | {"PYTHONPATH": str(READERS), "YOLO_CONFIG_DIR": str(tmp_path), "YOLO_OFFLINE": "true"}
    command = [sys.executable, "-P", str(HERE / "readers/read_ultralytics.py"), task, str(path)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER")]
    assert answers, done.stdout + done.stderr
    assert "requires" not in done.stdout + done.stderr, "classes differ between the splits"
    return json.loads(answers[0].removeprefix("ANSWER"))


def picture() -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (32, 32)).save(content, "JPEG")
    return content.getvalue()


def test_ultralytics_finds_every_class_and_image_of_a_classification_export(tmp_path):
    cells = np.array([[1] * 5, [0, 1, 0, 1, -1], [1] * 5, [0] * 5])
    files = [f"{row}.jpg" for row in range(4)]
    view = view_of(cells, CLASSES, files=files, splits=["train", "train", "val", "val"], written="link")
    path = write(YOLO_CLS, view, tmp_path, picture())
    found = found_by_ultralytics("classify", path, tmp_path)
    contents, _ = read(YOLO_CLS, path)
    items = [item for item in contents.items if item.attributes == {"split": "train"}]
    assert found["train"] == sorted(item.image.removeprefix("train/") for item in items)
    assert len(found["train"]) == 5 + 2
    assert len(found["val"]) == 5
    folders = {item.image.split("/")[1]: item.labels[0].class_name for item in items}
    assert len(found["names"]) == len(CLASSES)
    assert {folders[name] for name in found["names"]} == set(CLASSES)


def test_ultralytics_and_our_reader_find_the_same_classes_in_a_detection_set(tmp_path):
    boxes = {"a": "1 0.5 0.5 1 1\n1 0.1 0.1 0.2 0.2\n", "b": "", "c": "\ufeff2 0.5 0.5 1 1\n0.0 .1 .1 .1 .1\n"}
    for part, names in (("train", "ab"), ("valid", "c")):
        for name in names:
            for folder in ("images", "labels"):
                (tmp_path / "set" / part / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / "set" / part / f"images/{name}.jpg").write_bytes(picture())
            (tmp_path / "set" / part / f"labels/{name}.txt").write_text(boxes[name], encoding="utf-8")
    data = tmp_path / "set/data.yaml"
    data.write_text("train: ../train/images\nval: ../valid/images\nnc: 3\nnames: [cat, '1', traffic light]\n")
    contents, problems = read(YOLO, data)
    found = {item.image: sorted(label.class_name for label in item.labels) for item in contents.items}
    assert found == found_by_ultralytics("detect", data, tmp_path)
    assert not problems.count
