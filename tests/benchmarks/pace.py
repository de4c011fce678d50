"""Measurement of how often the intervals of the time model hold the truth, for made-up people with known times.

A whole task, a grid of 24 with 3 changes, is measured as well. It is known better than its parts, which answers cannot
always tell apart.
"""

import time
from typing import Any

import numpy as np

from annotator.benchmark.simulated_people import draw_answer_log, draw_person_times, draw_speed_test
from annotator.snapshot.time_model import DEFAULT_TIMES, TIME_PARTS, TimeModel, count_parts, estimate_times
from spmll.statistics.time_regression import INTERVAL_QUANTILES

ANSWER_COUNTS = {"no answers": 0, "the speed test": None, "15 answers": 15, "60 answers": 60, "300 answers": 300}
PERSON_KINDS: dict[str, dict[str, Any]] = {
    "drawn from the prior": {},
    "as the defaults": {"factors": {}},
    "three times slower at looking": {"factors": {"tile": 3.0, "look": 3.0, "check": 3.0}},
    "three times slower at pressing": {"factors": {"change": 3.0, "submit": 3.0, "click": 3.0}},
    "three times quicker at all": {"factors": dict.fromkeys(TIME_PARTS, 1 / 3)},
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
    for kind, about in PERSON_KINDS.items():
        for number, (name, answers) in enumerate(ANSWER_COUNTS.items()):
            rows = [
                _check_person(np.random.default_rng([seed, number, one]), answers, **about) for one in range(people)
            ]
            parts, grid, width = (float(np.mean(values)) for values in zip(*rows, strict=True))
            row = {"parts": round(parts, 4), "grid of 24": round(grid, 4), "width of the grid": round(width, 2)}
            figures |= {f"{kind}, {name}: {what}": value for what, value in row.items()}
            held += [parts, grid]
    figures |= {"people": people, "seconds": round(time.perf_counter() - started, 1)}
    return {"bench": "pace", "figures": figures, "ratios": {"held_at_least": round(min(held), 4)}}


def _check_person(
    rng: np.random.Generator, answers: int | None, factors: dict[str, float] | None = None, **log_options: Any
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
    truth = draw_person_times(rng)
    if factors is not None:
        truth = TimeModel(**{part: getattr(DEFAULT_TIMES, part) * factors.get(part, 1) for part in TIME_PARTS})
    logged = (
        draw_speed_test(rng, truth, **log_options)
        if answers is None
        else draw_answer_log(rng, truth, answers, **log_options)
    )
    times = estimate_times(logged, draws=True)
    true = np.array([getattr(truth, part) for part in TIME_PARTS])
    low, high = np.quantile(times.draws, INTERVAL_QUANTILES, axis=0)
    _, lowest, highest = times.estimate_task(count_parts("grid", 24, 3))
    return (
        float(((low <= true) & (true <= high)).mean()),
        lowest <= truth.estimate_grid_seconds(24, 3) <= highest,
        highest / lowest,
    )
