"""Labels that somebody has already: a CSV with `image,class,state` or `image,labels` (present classes, "|" between).

Columns are found by name; further ones (split, source, ...) are ignored.
"""

import csv
import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError, did_you_mean, several
from annotator.exchange.formats.text import read_text
from annotator.exchange.formats.text_cells import named
from annotator.records import PRESENT, STATE_NAMES, STATES
from annotator.store.classes import name_problem


@dataclass(frozen=True)
class ImportedLabel:
    """One label of the file, and its line."""

    line: int
    image: str
    class_name: str
    state: int


def read_labels(path: Path, images: Collection[str], classes: Collection[str] | None) -> list[ImportedLabel]:
    """Every label of the file.

    images     all names of images
    classes    the classes that exist; None: any class is accepted

    Raises AnnotatorError that lists every unknown image, unknown class, unusable class name, bad state and
    conflict with its line.
    """
    text = read_text(path, "the label file")
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise AnnotatorError(f"The label file {path} is not a CSV: {error}.") from error
    if not rows:
        raise AnnotatorError(
            f"The label file {path} is empty; it needs a first line image,class,state or image,labels."
        )
    header = [name.strip().lower() for name in rows[0]]
    if "image" in header and {"class", "state"} <= set(header):
        labels, problems = _long(rows, header, images, classes)
    elif "image" in header and "labels" in header:
        labels, problems = _wide(rows, header, images, classes)
    else:
        raise AnnotatorError(
            f"The label file {path} begins with the columns {', '.join(rows[0])}.\n"
            "    It needs image,class,state (present, absent or unsure) or image,labels (present classes, '|' between)."
        )
    problems += _unknown(labels, images, classes) + _conflicts(labels)
    if problems:
        raise several(f"The label file {path} cannot be used, and nothing was changed:", problems)
    return labels


def _long(rows: list[list[str]], header: list[str], images, classes) -> tuple[list[ImportedLabel], list[str]]:
    image, name, state = (header.index(column) for column in ("image", "class", "state"))
    labels, problems = [], []
    for line, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            problems.append(f"line {line}: {len(row)} columns instead of {len(header)}")
            continue
        word = row[state].strip().lower()
        if word not in STATES:
            problems.append(f"line {line}: state {row[state]!r}; it must be present, absent or unsure")
            continue
        labels.append(ImportedLabel(line, named(row[image], images), named(row[name], classes), STATES[word]))
    return labels, problems


def _wide(rows: list[list[str]], header: list[str], images, classes) -> tuple[list[ImportedLabel], list[str]]:
    image, names = header.index("image"), header.index("labels")
    labels, problems = [], []
    for line, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            problems.append(f"line {line}: {len(row)} columns instead of {len(header)}")
            continue
        words = [word.strip() for word in row[names].split("|") if word.strip()]
        shown = named(row[image], images)
        labels += [ImportedLabel(line, shown, named(word, classes), PRESENT) for word in dict.fromkeys(words)]
    return labels, problems


def _unknown(labels: list[ImportedLabel], images: Collection[str], classes: Collection[str] | None) -> list[str]:
    problems = []
    for label in labels:
        if label.image not in images:
            problems.append(f"line {label.line}: no image is called {label.image!r}")
        if classes is not None and label.class_name not in classes:
            problems.append(
                f"line {label.line}: no class is called {label.class_name!r}. {did_you_mean(label.class_name, classes)}"
            )
        elif classes is None and (problem := name_problem(label.class_name)):
            problems.append(f"line {label.line}: not usable as a class: {problem}")
    return list(dict.fromkeys(problems))


def _conflicts(labels: list[ImportedLabel]) -> list[str]:
    first: dict[tuple[str, str], ImportedLabel] = {}
    problems = []
    for label in labels:
        earlier = first.setdefault((label.image, label.class_name), label)
        if earlier.state != label.state:
            problems.append(
                f"line {label.line}: {label.image} / {label.class_name} says the opposite of line {earlier.line}"
            )
    return problems


def conflicts_of_contents(labels: list[ImportedLabel], ids: Mapping[str, int]) -> list[str]:
    """Labels that conflict on one image with several names; [] when all agree.

    ids    name -> image; names that are not in it are skipped
    """
    first: dict[tuple[int, str], ImportedLabel] = {}
    problems = []
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
