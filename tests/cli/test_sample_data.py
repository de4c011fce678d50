"""The sample data is what its README says, and docs/sample_data/generate.py draws it."""

import base64
import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
SAMPLE, PAINTER = ROOT / "sample_data", ROOT / "docs" / "sample_data"
TRUTH = {row["image"]: row["labels"].split("|") for row in csv.DictReader((SAMPLE / "truth.csv").open())}
CLASSES = [line.split("\t")[0] for line in (SAMPLE / "classes.txt").read_text().splitlines()]


def test_sample_data_has_160_small_images_with_at_least_two_labels_on_average():
    images = sorted((SAMPLE / "images").glob("*.jpg"))
    assert [path.name for path in images] == sorted(TRUTH)
    assert len(images) == 160
    assert all(max(Image.open(path).size) <= 320 for path in images)
    assert sum(map(len, TRUTH.values())) / len(TRUTH) >= 2
    assert min(map(len, TRUTH.values())) >= 1
    files = [path for path in SAMPLE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files) < 6_000_000
    assert {path.suffix for path in files} == {".jpg", ".csv", ".txt", ".md"}, "data, not the painter"


def test_each_of_the_twelve_sample_classes_occurs_in_at_least_18_images():
    assert len(CLASSES) == 12
    for name in CLASSES:
        assert sum(name in labels for labels in TRUTH.values()) >= 18, name
    assert {name for labels in TRUTH.values() for name in labels} == set(CLASSES)


@pytest.mark.slow
@pytest.mark.process
def test_sample_data_generator_reproduces_the_committed_images_and_labels():
    script = (
        "import base64, json, generate\n"
        "drawn = {index: generate.draw_scene(index) for index in (3, 90)}\n"
        "text = {index: [base64.b64encode(jpeg).decode(), labels] for index, (jpeg, labels, _) in drawn.items()}\n"
        "print(json.dumps(text))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=PAINTER, capture_output=True, text=True, check=True)
    for index, (jpeg, labels) in json.loads(done.stdout).items():
        name = f"scene_{int(index):03}.jpg"
        assert labels == TRUTH[name]
        drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(jpeg))), float)
        kept = np.asarray(Image.open(SAMPLE / "images" / name), float)
        # Byte-identical with the same Pillow; another version may round a pixel differently.
        assert np.abs(drawn - kept).mean() < 2


def test_every_sample_label_has_a_box_within_its_image():
    boxes = list(csv.DictReader((SAMPLE / "boxes.csv").open()))
    assert {(row["image"], row["class"]) for row in boxes} == {
        (image, name) for image, names in TRUTH.items() for name in names
    }
    for row in boxes:
        width, height = Image.open(SAMPLE / "images" / row["image"]).size
        left, top, right, bottom = (float(row[edge]) for edge in ("left", "top", "right", "bottom"))
        assert 0 <= left < right <= width and 0 <= top < bottom <= height, row
