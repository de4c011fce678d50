"""The report on a person's times: each part of the time model and some whole tasks, with 95 % intervals.

It is about one person. Nothing here compares people, because their images, classes and devices differ.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from annotator.shares import counted
from annotator.snapshot.time_model import (
    DEFAULTS,
    KINDS,
    PARTS,
    counts_of,
    estimated,
    timed_answers,
)
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import answer_times
from annotator.store.people import speed_tests

TILES, CHANGES = 24, 3  # of the grid whose seconds are reported
NAMED = 1.5  # classes that an image is assumed to show, of those it is asked about
KEPT = 8

ABOUT = {
    "tile": "looking at one image of a grid",
    "change": "marking one image or one class",
    "submit": "saving, and seeing the next",
    "begin": "reading what a grid asks about",
    "look": "taking in one image",
    "check": "deciding on one more class of an image",
    "click": "naming one class of an image",
}


@dataclass(frozen=True)
class Figure:
    """One time, in seconds, with its 95 % interval.

    Attributes:
        name: Of the part or the task.
        about: Describes it in words.
        default: The value while nothing is known.
        answers: How many timed answers it is estimated from; with 0 the interval is that of the prior.
        an_hour, labels_an_hour: Of a task: how many tasks, and how many labels, fit in an hour without pauses; None of
            a part.
    """

    name: str
    about: str
    default: float
    seconds: float
    low: float
    high: float
    answers: int
    an_hour: float | None = None
    labels_an_hour: float | None = None


@dataclass(frozen=True)
class TimeReport:
    """The times of one person.

    Attributes:
        annotator: "" for everybody together.
        answers: Timed answers by kind: grid, image, click; tasks of the speed test included.
        tested: How many of them are tasks of the speed test.
        parts: The parts of the time model.
        tasks: Some whole tasks.
    """

    annotator: str
    answers: dict[str, int]
    tested: int
    parts: tuple[Figure, ...]
    tasks: tuple[Figure, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON value."""
        return asdict(self)


def time_report(db: Database, annotator: str) -> TimeReport:
    """Return the times of this person; annotator "": of everybody together."""
    class_count = max(1, len(classes.all_classes(db)))
    newest, tested = answer_times.newest_of(db, annotator), speed_tests.count_tests(db, annotator)
    key = (annotator, newest, tested, class_count)
    return db.caches.get("time_report", key, lambda: _report(db, annotator, class_count, tested), KEPT)


def _report(db: Database, annotator: str, class_count: int, tested: int) -> TimeReport:
    answers = timed_answers(db, annotator)
    times = estimated(answers, draws=True)
    of_kind = {kind: sum(answer.kind == kind for answer in answers) for kind in KINDS}

    def figure(name: str, about: str, counts: np.ndarray, from_answers: int, labels: float | None = None) -> Figure:
        default = float(counts @ np.array([getattr(DEFAULTS, part) for part in PARTS]))
        seconds, low, high = (round(value, 3) for value in times.task(counts))
        rates = () if labels is None else (round(3600 / seconds, 1), round(3600 * labels / seconds, 1))
        return Figure(name, about, round(default, 3), seconds, low, high, from_answers, *rates)

    # A part is estimated from the kinds of answers that have it, also from those in which nothing was changed.
    has_part = {part: [kind for kind in KINDS if counts_of(kind, 1, 1)[place]] for place, part in enumerate(PARTS)}
    parts = [
        figure(part, ABOUT[part], np.eye(len(PARTS))[place], sum(of_kind[kind] for kind in has_part[part]))
        for place, part in enumerate(PARTS)
    ]
    tasks = [
        figure(kind, about, counts_of(kind, cells, changes), of_kind[kind], cells)
        for kind, about, cells, changes in (
            ("grid", f"a grid of {TILES} images with {CHANGES} changes", TILES, CHANGES),
            (
                "image",
                f"an image, all {counted(class_count, 'class', 'classes')}",
                class_count,
                min(NAMED, class_count),
            ),
            ("click", "an image, one class", 1, 1),
        )
    ]
    return TimeReport(annotator, of_kind, tested, tuple(parts), tuple(tasks))
