"""Measured answer times from a CSV, which replace the assumed times by a factor per kind of question."""

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from annotator.benchmark.finish.clock import ASSUMED_SOURCE, Clock, count_answer_parts
from annotator.benchmark.finish.protocol import QUESTION_KINDS, Question
from annotator.errors import AnnotatorError, combine_problems
from annotator.snapshot.time_model import TimeModel

MAX_ANSWER_SECONDS = 600.0  # seconds; after a longer time the person was away
COCO_CLASSES = 80
Row = Mapping[str, str]
Measurement = tuple[str, float, float]
"""Kind of question, measured seconds, and the seconds that the model assumes."""


def _read_own_row(row: Row) -> Measurement | None:
    kind = row["kind"].strip()
    if kind not in QUESTION_KINDS:
        raise ValueError(f"there is no kind {kind!r}, only {', '.join(QUESTION_KINDS)}")
    cells, changes = int(row["cells"]), int(row["changes"])
    if cells < 1 or not 0 <= changes <= cells:
        raise ValueError(f"{changes} changes of {cells} cells")
    return kind, float(row["seconds"]), _compute_assumed_seconds(kind, cells, changes)


def _read_coco_row(row: Row) -> Measurement | None:
    actions = json.loads(row["actionHistories"])
    changes = sum(action["actionType"] == "add" for action in actions)
    return "image", int(row["timeSpent"]) / 1000, _compute_assumed_seconds("image", COCO_CLASSES, changes)


def _read_cifar_row(row: Row) -> Measurement | None:
    if row["is_attn_check"].strip() in ("1", "1.0", "True"):
        return None
    return "click", float(row["reaction_time"]) / 1000, _compute_assumed_seconds("click", 10, 1)


def _read_imagenet_row(row: Row) -> Measurement | None:
    entered, seconds = None, 0.0
    for event in json.loads(row["hoveredRecord"]):
        if event["action"] == "enter":
            entered = event["time"]
        elif entered is not None:
            seconds, entered = seconds + (event["time"] - entered) / 1000, None
    usual = TimeModel()
    return "grid", seconds, usual.tile + usual.change * (row["selected"].strip().lower() in ("true", "1"))


TIME_TABLE_FORMATS: dict[str, tuple[tuple[str, ...], Callable[[Row], Measurement | None]]] = {
    "our own": (("kind", "cells", "changes", "seconds"), _read_own_row),
    "COCO-AB": (("timeSpent", "actionHistories"), _read_coco_row),
    "CIFAR-10H": (("annotator_id", "trial_index", "is_attn_check", "reaction_time"), _read_cifar_row),
    "ImageNet-AB": (("imageID", "selected", "hoveredRecord"), _read_imagenet_row),
}


def read_times(path: Path) -> Clock:
    """Return a clock with the measured times of a CSV, which has one answer per row.

    Times outside (0, MAX_ANSWER_SECONDS] are ignored. Kinds without rows keep assumed times. Raises AnnotatorError for
    invalid columns or rows.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            csv.field_size_limit(1 << 27)  # mouse traces are long
            return _build_clock(path, csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise AnnotatorError(f"The times {path} cannot be read: {error}.") from error


def _build_clock(path: Path, rows: csv.DictReader) -> Clock:
    names = set(rows.fieldnames or ())
    published = next((name for name, (columns, _) in TIME_TABLE_FORMATS.items() if names.issuperset(columns)), None)
    if published is None:
        known = [f"{', '.join(columns)} ({name})" for name, (columns, _) in TIME_TABLE_FORMATS.items()]
        raise combine_problems(
            f"{path} has the columns {', '.join(sorted(names)) or 'of none'}. Understood are:", known
        )
    problems: list[str] = []
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for kind, seconds, assumed in _read_measurements(rows, TIME_TABLE_FORMATS[published][1], problems):
        if 0 < seconds <= MAX_ANSWER_SECONDS:
            for place, value in enumerate((seconds, assumed, 1)):
                sums[kind][place] += value
    if problems:
        raise combine_problems(f"The times {path} cannot be used:", problems)
    if not sums:
        raise AnnotatorError(f"{path} has no time between 0 and {MAX_ANSWER_SECONDS:g} seconds.")
    factors, sources = dict.fromkeys(QUESTION_KINDS, 1.0), dict.fromkeys(QUESTION_KINDS, ASSUMED_SOURCE)
    for kind, (seconds, assumed, count) in sums.items():
        factors[kind] = seconds / assumed
        sources[kind] = f"measured: {count:,.0f} answers of {path.name}, columns as {published}"
    return Clock(factors=factors, sources=sources)


def _read_measurements(
    rows: csv.DictReader, read: Callable[[Row], Measurement | None], problems: list[str]
) -> Iterator[Measurement]:
    for row in rows:
        try:
            if measured := read(row):
                yield measured
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problems.append(f"line {rows.line_num}: {error or 'it is not complete'}")


def _compute_assumed_seconds(kind: str, cells: int, changes: int) -> float:
    images, classes = (cells, 1) if kind == "grid" else (1, cells)
    return Clock().compute_seconds(
        kind, count_answer_parts(Question(kind, tuple(range(images)), tuple(range(classes))), changes)[1]
    )
