"""Simulated annotators who know the truth: their answers, mistakes, first named classes and times.

Perfect ones are always right. Noisy ones miss small things, press wrong keys, and name salient classes first.
"""

from dataclasses import dataclass

import numpy as np

from annotator.benchmark.first_named_class import draw_class_salience
from annotator.queues.speed_test_tasks import TASK_PLAN
from annotator.snapshot.time_model import DEFAULT_TIMES, TIME_PARTS, TimeModel
from annotator.store.labels.answer_times import MAX_ANSWER_MILLISECONDS, TimedAnswer
from spmll.statistics.time_regression import prior_covariance

SMALL_SHARE = 0.15  # share of the positives that are small; drawn at random, as no truth says how large things are
MISSED_SHARE = 0.25  # share of the small positives that are missed when looked at
ERROR_SHARE = 0.02  # share of the needed presses that are left out; as many of those made add a wrong one
SALIENCE_SPREAD = 1.0  # spread of the log of how much more some classes are noticed than others (first_named_class.py)
GRID_SIZES = (12, 24, 48, 96)
CHANGED_SHARES = (0.02, 0.1, 0.3)  # shares of a grid that are changed
CHANGED_CLASS_SHARE = 0.15  # share of the classes of an image that are changed
MEAN_PAUSE_SECONDS = 60.0  # mean seconds of a pause


@dataclass(frozen=True, eq=False)
class Person:
    """A simulated annotator who answers by the truth (N, C) bool, with errors if `noisy`.

    Overlooked small objects may be seen at the next call.
    """

    truth: np.ndarray
    noisy: bool
    chance: np.random.Generator
    small: np.ndarray
    salience: np.ndarray

    @classmethod
    def build(cls, truth: np.ndarray, *, noisy: bool, seed: int) -> "Person":
        """Create an annotator. The seed selects which objects are small and which classes salient."""
        chance = np.random.default_rng([seed, 1])
        small = truth & (chance.random(truth.shape) < SMALL_SHARE)
        return cls(truth, noisy, chance, small, draw_class_salience(truth.shape[1], SALIENCE_SPREAD, chance))

    def answer(self, rows: np.ndarray, columns: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the answers (n,) bool to cells shown together, and the number of key presses without Enter.

        `rows`, `columns` and the initial answers `start` are (n,).
        """
        seen = self.truth[rows, columns]
        if not self.noisy:
            return seen, int((seen != start).sum())
        overlooked = self.small[rows, columns] & (self.chance.random(len(rows)) < MISSED_SHARE)
        wanted = seen & ~overlooked
        pressed = (wanted != start) & (self.chance.random(len(rows)) >= ERROR_SHARE)
        wrong = int(self.chance.binomial(int(pressed.sum()), ERROR_SHARE))
        if wrong:
            pressed[self.chance.integers(0, len(rows), wrong)] ^= True
        return start ^ pressed, int(pressed.sum())

    def name_one(self, row: int, open_: np.ndarray) -> int | None:
        """Return the column of the class that is named first among `open_`, or None if the person sees none."""
        seen = np.flatnonzero(self.truth[row] & open_)
        if self.noisy:
            seen = seen[~(self.small[row, seen] & (self.chance.random(len(seen)) < MISSED_SHARE))]
        if not len(seen):
            return None
        if not self.noisy:
            return int(self.chance.choice(seen))
        if self.chance.random() < ERROR_SHARE and open_.any():
            return int(self.chance.choice(np.flatnonzero(open_)))
        weights = self.salience[seen]
        return int(self.chance.choice(seen, p=weights / weights.sum()))


def draw_person_times(rng: np.random.Generator) -> TimeModel:
    """Draw a person's answer times from the prior distribution around the default times."""
    factors = np.exp(rng.multivariate_normal(np.zeros(len(TIME_PARTS)), prior_covariance(len(TIME_PARTS))))
    return TimeModel(
        *(getattr(DEFAULT_TIMES, part) * factor for part, factor in zip(TIME_PARTS, factors.tolist(), strict=True))
    )


def draw_answer_log(
    rng: np.random.Generator,
    times: TimeModel,
    answers: int,
    *,
    classes: int = 12,
    spread: float = 0.5,
    paused: float = 0.03,
) -> list[TimedAnswer]:
    """Draw timed answers of a person with these times: grids, whole images and clicks, a third each.

    Args:
        spread: Standard deviation of log seconds.
        paused: Share of answers with a pause.
    """
    result = []
    for _ in range(answers):
        kind = ("grid", "image", "click")[rng.integers(3)]
        cells, changed = {
            "grid": (int(rng.choice(GRID_SIZES)), rng.choice(CHANGED_SHARES)),
            "image": (classes if rng.random() < 0.5 else int(rng.integers(2, classes + 1)), CHANGED_CLASS_SHARE),
            "click": (1, 0.0),
        }[kind]
        result.append(_draw_answer(rng, times, kind, cells, int(rng.binomial(cells, changed)), spread, paused))
    return result


def draw_speed_test(
    rng: np.random.Generator, times: TimeModel, *, classes: int = 12, spread: float = 0.5, paused: float = 0.03
) -> list[TimedAnswer]:
    """Draw one speed test of a person with these times."""
    asked = [(kind, min(size, classes) if kind == "image" else size, changes) for kind, size, changes in TASK_PLAN]
    return [
        _draw_answer(
            rng,
            times,
            kind,
            size,
            int(rng.binomial(size, CHANGED_CLASS_SHARE)) if kind == "image" else changes,
            spread,
            paused,
        )
        for kind, size, changes in asked
    ]


def _draw_answer(
    rng: np.random.Generator, times: TimeModel, kind: str, cells: int, changes: int, spread: float, paused: float
) -> TimedAnswer:
    mean = {
        "grid": times.estimate_grid_seconds(cells, changes),
        "image": times.estimate_image_seconds(cells, changes),
        "click": times.click,
    }[kind]
    return TimedAnswer(kind, cells, changes, draw_seconds(rng, mean, spread, paused))


def draw_seconds(rng: np.random.Generator, mean: float, spread: float = 0.5, paused: float = 0.03) -> float:
    """Draw the seconds of one answer around `mean`, with pauses in the share `paused`.

    `spread` is the standard deviation of log seconds.
    """
    seconds = mean * rng.lognormal(-(spread**2) / 2, spread)
    seconds += rng.exponential(MEAN_PAUSE_SECONDS) if rng.random() < paused else 0.0
    return min(max(seconds, 0.001), MAX_ANSWER_MILLISECONDS / 1000)
