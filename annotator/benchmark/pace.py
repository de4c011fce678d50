"""Measurement of how often the intervals of the time model hold the truth, for made-up people with known times.

A whole task, a grid of 24 with 3 changes, is measured as well. It is known better than its parts, which answers cannot
always tell apart.
"""

import time
from typing import Any

import numpy as np

from annotator.queues.speed_test import PLAN
from annotator.snapshot.time_model import DEFAULTS, PARTS, TimeModel, counts_of, estimated
from annotator.store.labels.answer_times import LONGEST, Answer
from models.statistics.time_regression import INTERVAL, prior_covariance

SIZES = (12, 24, 48, 96)
CHANGED = (0.02, 0.1, 0.3)  # shares of a grid that are changed
NAMED = 0.15  # share of the classes of an image that are changed
PAUSE = 60.0  # mean seconds of a pause
ANSWERS = {"no answers": 0, "the speed test": None, "15 answers": 15, "60 answers": 60, "300 answers": 300}
KINDS: dict[str, dict[str, Any]] = {
    "drawn from the prior": {},
    "as the defaults": {"factors": {}},
    "three times slower at looking": {"factors": {"tile": 3.0, "look": 3.0, "check": 3.0}},
    "three times slower at pressing": {"factors": {"change": 3.0, "submit": 3.0, "click": 3.0}},
    "three times quicker at all": {"factors": dict.fromkeys(PARTS, 1 / 3)},
    "often interrupted": {"paused": 0.15},
    "uneven": {"spread": 0.8},
    "even": {"spread": 0.25},
}


def measure(people: int = 100, seed: int = 0) -> dict[str, Any]:
    """Measure the share of the 95 % intervals that hold the truth, by kind of person and number of timed answers.

    Args:
        people: The number of people of each kind and number of answers.
        seed: Decides all that is random.
    """
    started, figures, held = time.perf_counter(), {}, []
    for kind, about in KINDS.items():
        for number, (name, answers) in enumerate(ANSWERS.items()):
            rows = [_held(np.random.default_rng([seed, number, one]), answers, **about) for one in range(people)]
            parts, grid, width = (float(np.mean(values)) for values in zip(*rows, strict=True))
            row = {"parts": round(parts, 4), "grid of 24": round(grid, 4), "width of the grid": round(width, 2)}
            figures |= {f"{kind}, {name}: {what}": value for what, value in row.items()}
            held += [parts, grid]
    figures |= {"people": people, "seconds": round(time.perf_counter() - started, 1)}
    return {"bench": "pace", "figures": figures, "ratios": {"held_at_least": round(min(held), 4)}}


def _held(
    rng: np.random.Generator, answers: int | None, factors: dict[str, float] | None = None, **more: Any
) -> tuple[float, bool, float]:
    """Simulate one person and check the intervals of their times.

    Args:
        rng: Decides all that is random.
        answers: The number of answers in the log; None: the speed test instead.
        factors: Part of the time model -> factor on its default; other parts keep theirs. None: the person is drawn.
        **more: Further arguments of `log`, or of `tested`.

    Returns:
        The share of the parts whose interval holds the truth, whether the interval of a grid does, and the ratio of the
        latter's ends.
    """
    truth = person(rng)
    if factors is not None:
        truth = TimeModel(**{part: getattr(DEFAULTS, part) * factors.get(part, 1) for part in PARTS})
    logged = tested(rng, truth, **more) if answers is None else log(rng, truth, answers, **more)
    times = estimated(logged, draws=True)
    true = np.array([getattr(truth, part) for part in PARTS])
    low, high = np.quantile(times.draws, INTERVAL, axis=0)
    _, lowest, highest = times.task(counts_of("grid", 24, 3))
    return float(((low <= true) & (true <= high)).mean()), lowest <= truth.grid(24, 3) <= highest, highest / lowest


def person(rng: np.random.Generator) -> TimeModel:
    """Draw a person's times from the prior around the defaults."""
    factors = np.exp(rng.multivariate_normal(np.zeros(len(PARTS)), prior_covariance(len(PARTS))))
    return TimeModel(*(getattr(DEFAULTS, part) * factor for part, factor in zip(PARTS, factors.tolist(), strict=True)))


def log(
    rng: np.random.Generator,
    times: TimeModel,
    answers: int,
    *,
    classes: int = 12,
    spread: float = 0.5,
    paused: float = 0.03,
) -> list[Answer]:
    """Draw `answers` timed answers of this person: grids, whole images and clicks, a third each.

    Args:
        rng: Decides all that is random.
        times: The person's seconds.
        answers: The number of answers.
        classes: The number of classes of the project; half of the images have fewer open.
        spread: The standard deviation of the log seconds of equal tasks.
        paused: The share of the answers during which the person pauses, for PAUSE seconds on average.
    """
    result = []
    for _ in range(answers):
        kind = ("grid", "image", "click")[rng.integers(3)]
        cells, changed = {
            "grid": (int(rng.choice(SIZES)), rng.choice(CHANGED)),
            "image": (classes if rng.random() < 0.5 else int(rng.integers(2, classes + 1)), NAMED),
            "click": (1, 0.0),
        }[kind]
        result.append(_answer(rng, times, kind, cells, int(rng.binomial(cells, changed)), spread, paused))
    return result


def tested(
    rng: np.random.Generator, times: TimeModel, *, classes: int = 12, spread: float = 0.5, paused: float = 0.03
) -> list[Answer]:
    """Draw one speed test of this person; arguments as of `log`."""
    asked = [(kind, min(size, classes) if kind == "image" else size, changes) for kind, size, changes in PLAN]
    return [
        _answer(rng, times, kind, size, int(rng.binomial(size, NAMED)) if kind == "image" else changes, spread, paused)
        for kind, size, changes in asked
    ]


def _answer(
    rng: np.random.Generator, times: TimeModel, kind: str, cells: int, changes: int, spread: float, paused: float
) -> Answer:
    mean = {"grid": times.grid(cells, changes), "image": times.image(cells, changes), "click": times.click}[kind]
    return Answer(kind, cells, changes, taken(rng, mean, spread, paused))


def taken(rng: np.random.Generator, mean: float, spread: float = 0.5, paused: float = 0.03) -> float:
    """Draw the seconds of one answer.

    Args:
        rng: Decides them.
        mean: The seconds it takes on average, pauses aside.
        spread: The standard deviation of the log seconds of equal tasks.
        paused: The probability that the person pauses, for PAUSE seconds on average.
    """
    seconds = mean * rng.lognormal(-(spread**2) / 2, spread)
    seconds += rng.exponential(PAUSE) if rng.random() < paused else 0.0
    return min(max(seconds, 0.001), LONGEST / 1000)
