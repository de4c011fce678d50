"""The true labels of an image folder, read from a table and checked."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.shared.label_table import read_table
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import STATE_NAMES
from annotator.store.classes.classes import find_name_problem


@dataclass(frozen=True)
class TrueLabel:
    """One label of the truth table, with its line number."""

    line: int | str
    image: str
    class_name: str
    state: int


def read_truth(path: Path, images: Collection[str]) -> list[TrueLabel]:
    """Read all labels of a table in any layout of label_table.py. Classes that an exhaustive row omits are absent.

    Raises AnnotatorError that lists every problem with its line.
    """
    problems = Problems()
    contents = read_table(path, problems, ReadingOptions())
    classes = [name for name, _ in contents.classes]
    first: dict[tuple[str, str], TrueLabel] = {}
    for item in contents.items:
        readings = (item.image, item.image.strip(), f"'{item.image}")
        image = next((reading for reading in readings if reading in images), None)
        if image is None:
            problems.add(f"line {item.place}: no image is called {item.image!r}")
            continue
        states = {given.class_name: given.state for given in item.labels}
        states |= {name: -1 for name in (classes if item.exhaustive else ()) if name not in states}
        for name, state in states.items():
            label = TrueLabel(item.place, image, name, state)
            if problem := find_name_problem(name):
                problems.add(f"line {item.place}: not usable as a class: {problem}")
            elif (earlier := first.setdefault((image, name), label)).state != state:
                problems.add(f"line {item.place}: {image} / {name} says the opposite of line {earlier.line}")
    if problems.count:
        raise problems.error(f"The truth {path} cannot be used:")
    return list(first.values())


def find_content_conflicts(labels: Collection[TrueLabel], ids: Mapping[str, int]) -> list[str]:
    """Return a sentence per conflict between the labels of duplicate images. `ids` are image ids by name."""
    first: dict[tuple[int, str], TrueLabel] = {}
    problems: list[str] = []
    for label in labels:
        if label.image not in ids:
            continue
        earlier = first.setdefault((ids[label.image], label.class_name), label)
        if earlier.state != label.state:
            problems.append(
                f"line {label.line}: {label.class_name!r} is {STATE_NAMES[label.state]} on {label.image!r}, but "
                f"{STATE_NAMES[earlier.state]} on {earlier.image!r} (line {earlier.line}), which is the same picture"
            )
    return problems
