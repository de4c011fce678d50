"""Time model: the seconds that each part of an answer takes an annotator.

Default times are the prior, adjusted by the newest answers and the speed test.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from annotator.snapshot.preset_threshold import find_preset_threshold
from annotator.store.database.database import Database
from annotator.store.labels import answer_times
from annotator.store.labels.answer_times import TimedAnswer
from annotator.store.people import speed_tests
from spmll.statistics.time_regression import PartTimes, fit_times

MAX_DECISIONS_READ = 3000  # decisions that are read,
MAX_ANSWERS, MAX_TESTS = 600, 200  # and at most so many answers in them, and so many tasks of the speed test
MAX_CACHED_MODELS = 32  # annotators whose time model is kept in memory
ANSWER_KINDS = ("grid", "image", "click")


@dataclass(frozen=True)
class TimeModel:
    """The seconds of each part of an answer, for one annotator."""

    # inspect one grid image. Krishna et al., CHI 2016: 0.1 s in a stream, 1.7 s one by one
    tile: float = 0.35
    # click one tile or class. Card, Moran and Newell's keystroke-level model, CACM 1980: 1.1 s to point, 0.2 s to
    # press
    change: float = 1.0
    # finish a grid or image
    submit: float = 1.0
    # read a grid's question, including a task switch (Rogers and Monsell, Journal of Experimental Psychology:
    # General, 1995)
    begin: float = 2.0
    # view one image
    look: float = 1.0
    # decide one more class: 0.30 s (Lin et al., ECCV 2014) to 1 s (Bearman et al., ECCV 2016)
    check: float = 0.7
    # name one object
    click: float = 2.5

    def estimate_grid_seconds(self, tiles: int, changes: float) -> float:
        """Return the seconds for a grid of `tiles` with `changes` clicks."""
        return self.begin + self.submit + tiles * self.tile + changes * self.change

    def estimate_image_seconds(self, classes: int, changes: float) -> float:
        """Return the seconds for one image with `classes` to decide and `changes` clicks."""
        return self.look + self.submit + classes * self.check + changes * self.change


DEFAULT_TIMES = TimeModel()
TIME_PARTS = tuple(field.name for field in fields(TimeModel))
_PRIOR_SECONDS = np.array([getattr(DEFAULT_TIMES, part) for part in TIME_PARTS])


def load_time_model(db: Database, annotator: str) -> TimeModel:
    """Return the time model of this annotator, or of all for ""."""

    def fit() -> TimeModel:
        return fit_time_model(load_timed_answers(db, annotator) or load_timed_answers(db, ""))

    key = (annotator, answer_times.get_newest_own_decision_id(db, annotator), speed_tests.count_tests(db, annotator))
    if not any(key[1:]):
        key = (annotator, answer_times.get_newest_own_decision_id(db, ""), speed_tests.count_tests(db, ""))
    return db.caches.get("time_model", key, fit, MAX_CACHED_MODELS)


def load_timed_answers(db: Database, annotator: str) -> list[TimedAnswer]:
    """Return the newest timed answers and speed test tasks, of all annotators for ""."""
    return [
        *answer_times.load_newest_answers(db, annotator, MAX_DECISIONS_READ, MAX_ANSWERS, find_preset_threshold(db)),
        *speed_tests.load_newest_tests(db, annotator, MAX_TESTS),
    ]


def fit_time_model(answers: Sequence[TimedAnswer]) -> TimeModel:
    return TimeModel(*estimate_times(answers).middle.tolist())


def estimate_times(answers: Sequence[TimedAnswer], *, draws: bool = False) -> PartTimes:
    """Estimate the seconds of each of TIME_PARTS, with random draws for intervals if `draws`."""
    counts = np.array([count_parts(answer.kind, answer.cells, answer.changes) for answer in answers])
    seconds = np.array([answer.seconds for answer in answers])
    groups = np.array([ANSWER_KINDS.index(answer.kind) for answer in answers], np.int64)
    return fit_times(counts.reshape(-1, len(TIME_PARTS)), seconds, groups, _PRIOR_SECONDS, draws=draws)


def count_parts(kind: str, cells: int, changes: float) -> np.ndarray:
    """Return how often each of TIME_PARTS occurs in one answer of this kind, as (parts,)."""
    counts = {
        "grid": {"begin": 1, "submit": 1, "tile": cells, "change": changes},
        "image": {"look": 1, "submit": 1, "check": cells, "change": changes},
        "click": {"click": 1},
    }[kind]
    return np.array([counts.get(part, 0.0) for part in TIME_PARTS], float)
