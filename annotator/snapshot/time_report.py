"""A report on the answer times of one annotator, with 95% intervals.

It never compares annotators, because their images, classes and devices differ.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from annotator.humanize import format_count
from annotator.snapshot.time_model import (
    ANSWER_KINDS,
    DEFAULT_TIMES,
    TIME_PARTS,
    count_parts,
    estimate_times,
    load_timed_answers,
)
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import answer_times
from annotator.store.people import speed_tests

GRID_TILES, GRID_CHANGES = 24, 3  # of the grid whose seconds are reported
NAMED_CLASSES_PER_IMAGE = 1.5  # classes that an image is assumed to show, of those it is asked about
MAX_CACHED_REPORTS = 8

PART_DESCRIPTIONS = {
    "tile": "looking at one image of a grid",
    "change": "marking one image or one class",
    "submit": "saving, and seeing the next",
    "begin": "reading what a grid asks about",
    "look": "taking in one image",
    "check": "deciding on one more class of an image",
    "click": "naming one class of an image",
}


@dataclass(frozen=True)
class TimeFigure:
    """The seconds of one part of an answer, with 95% interval."""

    name: str
    about: str
    # prior value
    default: float
    seconds: float
    low: float
    high: float
    # timed answers behind it
    answers: int
    # an_hour, labels_an_hour: tasks and labels per hour
    an_hour: float | None = None
    labels_an_hour: float | None = None


@dataclass(frozen=True)
class TimeReport:
    """The answer times of one annotator, or of all ("").

    `answers` by kind include the `tested` tasks of the speed test.
    """

    annotator: str
    answers: dict[str, int]
    tested: int
    parts: tuple[TimeFigure, ...]
    tasks: tuple[TimeFigure, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def load_time_report(db: Database, annotator: str) -> TimeReport:
    """Return the times of this annotator, or of all for ""."""
    class_count = max(1, len(classes.load_active_classes(db)))
    newest, tested = answer_times.get_newest_own_decision_id(db, annotator), speed_tests.count_tests(db, annotator)
    key = (annotator, newest, tested, class_count)
    return db.caches.get(
        "time_report", key, lambda: _build_report(db, annotator, class_count, tested), MAX_CACHED_REPORTS
    )


def _build_report(db: Database, annotator: str, class_count: int, tested: int) -> TimeReport:
    answers = load_timed_answers(db, annotator)
    times = estimate_times(answers, draws=True)
    of_kind = {kind: sum(answer.kind == kind for answer in answers) for kind in ANSWER_KINDS}

    def figure(name: str, about: str, counts: np.ndarray, from_answers: int, labels: float | None = None) -> TimeFigure:
        default = float(counts @ np.array([getattr(DEFAULT_TIMES, part) for part in TIME_PARTS]))
        seconds, low, high = (round(value, 3) for value in times.estimate_task(counts))
        rates = () if labels is None else (round(3600 / seconds, 1), round(3600 * labels / seconds, 1))
        return TimeFigure(name, about, round(default, 3), seconds, low, high, from_answers, *rates)

    # A part is estimated from the kinds of answers that have it, also from those in which nothing was changed.
    has_part = {
        part: [kind for kind in ANSWER_KINDS if count_parts(kind, 1, 1)[place]] for place, part in enumerate(TIME_PARTS)
    }
    parts = [
        figure(
            part, PART_DESCRIPTIONS[part], np.eye(len(TIME_PARTS))[place], sum(of_kind[kind] for kind in has_part[part])
        )
        for place, part in enumerate(TIME_PARTS)
    ]
    tasks = [
        figure(kind, about, count_parts(kind, cells, changes), of_kind[kind], cells)
        for kind, about, cells, changes in (
            ("grid", f"a grid of {GRID_TILES} images with {GRID_CHANGES} changes", GRID_TILES, GRID_CHANGES),
            (
                "image",
                f"an image, all {format_count(class_count, 'class', 'classes')}",
                class_count,
                min(NAMED_CLASSES_PER_IMAGE, class_count),
            ),
            ("click", "an image, one class", 1, 1),
        )
    ]
    return TimeReport(annotator, of_kind, tested, tuple(parts), tuple(tasks))
