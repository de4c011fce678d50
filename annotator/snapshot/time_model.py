"""Time model: how many seconds an answer of each kind takes this annotator.

The default times (with sources, below) are the middle of a prior, which this annotator's own times adjust: those of
their newest answers and of the speed test (models/statistics/time_regression.py has the estimate). Without times of
this annotator those of all annotators are used. The module is in snapshot because Autopilot (queues) and the
certificate (quality) both use it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from annotator.snapshot.guesses import guessed_from
from annotator.store.database.database import Database
from annotator.store.labels import answer_times
from annotator.store.labels.answer_times import Answer
from annotator.store.people import speed_tests
from models.statistics.time_regression import Times, fit_times

NEWEST = 3000  # decisions that are read,
ANSWERS, TESTS = 600, 200  # and at most so many answers in them, and so many tasks of the speed test
KEPT = 32  # annotators whose time model is kept in memory
KINDS = ("grid", "image", "click")


@dataclass(frozen=True)
class TimeModel:
    """The seconds that each part of an answer takes.

    Attributes:
        tile: To look at one image of a grid with one class in mind. Krishna et al., "Embracing Error to Enable Rapid
            Crowdsourcing", CHI 2016: 0.1 s where images rush past and mistakes are undone by asking several people, 1.7
            s where each is asked about by itself; a grid that one person scans lies between.
        change: To press one tile or one class: Card, Moran and Newell's keystroke-level model, CACM 1980, 1.1 s to
            point and 0.2 s to press, less where the hand already lies.
        submit: To end a grid or an image and see the next.
        begin: To read what a grid asks about and turn to it: a change of task costs a second or two before the first
            answer. Rogers and Monsell, Journal of Experimental Psychology: General, 1995, and a glance at an example.
        look: To take in one image.
        check: To decide for one more class whether the image shows it: between 0.30 s (Lin et al., "Microsoft COCO",
            ECCV 2014: about 20,000 hours for 328,000 images, 8 people and 91 classes) and 1 s (Bearman et al., "What's
            the Point", ECCV 2016: 20 classes of PASCAL VOC).
        click: To name one thing that an image shows: a look, a choice, and a key.
    """

    tile: float = 0.35
    change: float = 1.0
    submit: float = 1.0
    begin: float = 2.0
    look: float = 1.0
    check: float = 0.7
    click: float = 2.5

    def grid(self, tiles: int, changes: float) -> float:
        """Return the seconds for a grid of this many tiles, of which `changes` are changed."""
        return self.begin + self.submit + tiles * self.tile + changes * self.change

    def image(self, classes: int, changes: float) -> float:
        """Return the seconds for answering this many classes of one image, of which `changes` are changed."""
        return self.look + self.submit + classes * self.check + changes * self.change


DEFAULTS = TimeModel()
PARTS = tuple(field.name for field in fields(TimeModel))
_PRIOR = np.array([getattr(DEFAULTS, part) for part in PARTS])


def time_model_of(db: Database, annotator: str) -> TimeModel:
    """Return the time model of this annotator, fitted to their newest answers; annotator "": to everybody's."""

    def fit() -> TimeModel:
        return fitted(timed_answers(db, annotator) or timed_answers(db, ""))

    key = (annotator, answer_times.newest_of(db, annotator), speed_tests.count_tests(db, annotator))
    if not any(key[1:]):
        key = (annotator, answer_times.newest_of(db, ""), speed_tests.count_tests(db, ""))
    return db.caches.get("time_model", key, fit, KEPT)


def timed_answers(db: Database, annotator: str) -> list[Answer]:
    """Return the newest answers and tasks of the speed test that have a time; annotator "": everybody's."""
    return [
        *answer_times.newest_answers(db, annotator, NEWEST, ANSWERS, guessed_from(db)),
        *speed_tests.newest_tests(db, annotator, TESTS),
    ]


def fitted(answers: Sequence[Answer]) -> TimeModel:
    """Return the time model fitted to these answers, with the defaults as the prior."""
    return TimeModel(*estimated(answers).middle.tolist())


def estimated(answers: Sequence[Answer], *, draws: bool = False) -> Times:
    """Return the estimated seconds of PARTS, in their order.

    Args:
        answers: Timed answers of the annotator.
        draws: Also draw other possible values, for intervals.
    """
    counts = np.array([counts_of(answer.kind, answer.cells, answer.changes) for answer in answers])
    seconds = np.array([answer.seconds for answer in answers])
    groups = np.array([KINDS.index(answer.kind) for answer in answers], np.int64)
    return fit_times(counts.reshape(-1, len(PARTS)), seconds, groups, _PRIOR, draws=draws)


def counts_of(kind: str, cells: int, changes: float) -> np.ndarray:
    """Return how often each part occurs in a task, (PARTS,); the task's seconds are the sum over them.

    TimeModel.grid and TimeModel.image are these sums.
    """
    counts = {
        "grid": {"begin": 1, "submit": 1, "tile": cells, "change": changes},
        "image": {"look": 1, "submit": 1, "check": cells, "change": changes},
        "click": {"click": 1},
    }[kind]
    return np.array([counts.get(part, 0.0) for part in PARTS], float)
