"""Tables of unknown tools: what is stored without a question is what their author meant."""

import csv
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.csv_table import CSV
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import PRESENT

CLASSES = ["fox", "red deer", "owl", "badger", "train"]
TABLES_PER_SEED = 60
Rows = list[dict[str, str]]
SIDE_COLUMNS: dict[str, Callable[[random.Random], str]] = {
    "confidence": lambda draw: f"{draw.random():.2f}",
    "score %": lambda draw: f"{draw.randrange(100)}%",
    "certainty": lambda draw: draw.choice(["high", "low"]),
    "status": lambda draw: draw.choice(["validated", "predicted", "rejected"]),
    "reviewer": lambda draw: draw.choice(["ann", "bob"]),
    "uuid": lambda draw: f"{draw.getrandbits(128):032x}",
    "taken on": lambda draw: f"2024-0{draw.randrange(1, 10)}-1{draw.randrange(10)}",
    "howmany": lambda draw: str(draw.randrange(1, 3)),
    "young_present": lambda draw: draw.choice("01"),
    "night": lambda draw: draw.choice(["true", "false"]),
    "Patient Gender": lambda draw: draw.choice("FM"),
    "kingdom": lambda draw: "Animalia",
    "family": lambda draw: draw.choice(["Canidae", "Cervidae"]),
    "remark": lambda draw: draw.choice(["", "blurred", "two of them"]),
    "vector": lambda draw: str([draw.randrange(2) for _ in range(4)]),
}
"""Columns that are no labels -> a value of each."""
MODEL_COLUMNS = {"confidence", "score %", "status"}
"""Columns that say that a model gave some of the labels, or that somebody rejected them."""
LABEL_NAMES = ["label", "labels", "species", "class", "tags", "choice", "annotation", "what", "Category"]
IMAGE_NAMES = ["image", "file_name", "filename", "photo", "what_file", "id"]


def draw_table(draw: random.Random) -> tuple[Rows, dict[str, set[str]]]:
    """Return the rows of a table of random form and the classes that are present on each image."""
    images = [f"img_{number:03}.jpg" for number in range(draw.randrange(4, 12))]
    truth = {image: set(draw.sample(CLASSES, draw.randrange(1, 3))) for image in images}
    image_name, label_name = draw.choice(IMAGE_NAMES), draw.choice(LABEL_NAMES)
    shape = draw.choice(["joined", "rows", "wide", "list"])
    sides = draw.sample(sorted(SIDE_COLUMNS), draw.randrange(4))
    separator = draw.choice(["|", ",", ";", "、", "; ", " / "])
    yes, no = draw.choice([("1", "0"), ("yes", "no"), ("TRUE", "FALSE"), ("x", "")])
    rows: Rows = []
    for image, present in truth.items():
        names = sorted(present)
        if shape == "joined":
            found = [{label_name: separator.join(names)}]
        elif shape == "list":
            found = [{label_name: str(names)}]
        elif shape == "rows":
            found = [{label_name: name} for name in names]
        else:
            found = [{name: yes if name in present else no for name in CLASSES}]
        rows += [{image_name: image, **cells} for cells in found]
    for row in rows:
        row.update({name: SIDE_COLUMNS[name](draw) for name in sides})
    order = draw.sample(sorted(rows[0]), len(rows[0]))
    return [{name: row[name] for name in order} for row in rows], truth


def write_table(path: Path, rows: Sequence[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read_present(path: Path) -> dict[str, set[str]] | str:
    """Return the present classes of each image, or why nothing is stored without a person."""
    problems = Problems()
    try:
        contents = CSV.read(path, problems, ReadingOptions())
        items = list(contents.items)
    except AnnotatorError as error:
        return str(error)
    asked = [one.why for one in contents.interpretations if not one.is_sure]
    if asked or problems.count:
        return f"{asked}, {problems.count} problems"
    found: dict[str, set[str]] = {}
    for item in items:
        found.setdefault(item.image, set()).update(one.class_name for one in item.labels if one.state == PRESENT)
    return found


@pytest.mark.parametrize("seed", [int(word) for word in os.environ.get("TABLE_SEEDS", "1,2,3").split(",")])
def test_table_of_random_columns_is_read_as_meant_or_asked_about(tmp_path, seed):
    draw = random.Random(seed)
    path, wrong, read = tmp_path / "table.csv", [], 0
    for _ in range(TABLES_PER_SEED):
        rows, truth = draw_table(draw)
        write_table(path, rows)
        found = read_present(path)
        if isinstance(found, str):
            continue
        read += 1
        if found != truth or MODEL_COLUMNS & rows[0].keys():
            wrong.append((rows[:2], found))
    assert not wrong, f"{len(wrong)} tables are read wrong (TABLE_SEEDS={seed}), the first:\n{wrong[0]}"
    assert read, "and not every table is asked about"
