"""How often automatic acceptance breaks its promise: made-up projects of which the truth is known.

Each goes through what the app goes through: cells are drawn and answered a part at a time, people answer likely ones in
between, and after every part the promise is looked at anew by the same code (models/statistics/sequential_bound.py). A
promise counts as
broken when at any look more of what is filled in is wrong than was promised.
"""

import time
from dataclasses import dataclass

import numpy as np

from models.statistics.sequential_bound import CANDIDATES, Sample, lowest_threshold, sample_size

PROJECTS = 1000
IMAGES, PRECISION, LOOKS = 20_000, 0.99, 4


@dataclass(frozen=True)
class Condition:
    """One kind of class.

    share     of the images that show it
    model     how far the scores of present cells lie above those of absent ones, in standard deviations; negative for a
              model that is worse than chance
    state     what is filled in: 1 present, -1 absent
    work      share of the likely cells that people answer between two looks
    border    None, or the share of wrong ones in whatever the model calls likely: just too many to be allowed
    """

    share: float
    model: float
    state: int = 1
    work: float = 0.05
    border: float | None = None


CONDITIONS = {
    "rare, good model": Condition(0.01, 6.0),
    "rare, bad model": Condition(0.01, 1.0),
    "common, good model": Condition(0.3, 6.0),
    "common, bad model": Condition(0.3, 1.0),
    "common, much work in between": Condition(0.3, 4.0, work=0.3),
    "worse than chance": Condition(0.3, -1.5),
    "absent, rare, good model": Condition(0.01, 4.0, -1),
    "absent, rare, bad model": Condition(0.01, 0.5, -1),
    "absent, common, good model": Condition(0.3, 4.0, -1),
    "border, no work in between": Condition(0.3, 0.0, work=0.0, border=0.012),
    "border, much work in between": Condition(0.3, 0.0, work=0.2, border=0.012),
}


def measure(projects: int = PROJECTS, seed: int = 0) -> dict:
    """Of each condition the share of projects with a broken promise (broken), with any cell filled in (used), and the
    share of the open cells that were (filled), in classes of IMAGES images."""
    started = time.perf_counter()
    rows = {name: broken(one, projects, seed) for name, one in CONDITIONS.items()}
    return {
        "bench": "acceptance",
        "figures": {f"{name}: {kind}": value for name, row in rows.items() for kind, value in row.items()}
        | {"projects": projects, "seconds": round(time.perf_counter() - started, 1)},
        "ratios": {"broken_at_most": max(row["broken"] for row in rows.values())},
    }


def broken(condition: Condition, projects: int, seed: int = 0) -> dict:
    """One row of `measure`."""
    found = np.array([simulate_acceptance(np.random.default_rng([seed, n]), condition) for n in range(projects)])
    return {
        "broken": round(float(found[:, 0].mean()), 4),
        "used": round(float((found[:, 1] > 0).mean()), 4),
        "filled": round(float(found[:, 1].mean()), 4),
    }


def simulate_acceptance(rng: np.random.Generator, condition: Condition) -> tuple[bool, float]:
    """One class of one project: whether its promise was broken at any look, and the share of the open cells that were
    filled in at the last one."""
    wrong, scores = _cells(rng, condition)
    zone = np.flatnonzero(scores >= CANDIDATES[0])
    if not len(zone):
        return False, 0.0
    wrong, scores = wrong[zone], scores[zone]
    drawn = rng.permutation(len(zone))[: sample_size(len(zone), PRECISION)]
    answered, failed, filled = np.zeros(len(zone), bool), False, 0.0
    newer = scores + rng.normal(size=len(zone)) * 0.02 - 0.02 * wrong  # what a later model thinks, by which people work
    for look in range(1, LOOKS + 1):
        rows = drawn[: round(len(drawn) * look / LOOKS)]
        answered[rows] = True
        sample = Sample(scores, np.zeros(len(zone), int), rows, wrong[rows])
        passed = lowest_threshold(sample, ~answered, answered & wrong, PRECISION, np.array(CANDIDATES))
        if passed.threshold is not None:
            chosen = ~answered & (scores >= passed.threshold)
            failed |= bool(wrong[chosen].mean() > 1 - PRECISION + 1e-9)
        filled = 0.0 if passed.threshold is None else float(chosen.sum() / max((~answered).sum(), 1))
        open_ = np.flatnonzero(~answered)
        answered[open_[np.argsort(-newer[open_])][: round(condition.work * len(open_))]] = True
    return failed, filled


def _cells(rng: np.random.Generator, condition: Condition) -> tuple[np.ndarray, np.ndarray]:
    """Which cells would be filled in wrongly, (N,) bool, and the probability that they would not, as a model says."""
    if condition.border is not None:
        return rng.random(IMAGES) < condition.border, rng.uniform(0.5, 1, IMAGES)
    present = rng.random(IMAGES) < condition.share
    seen = rng.normal(size=IMAGES) + condition.model * present
    seen = seen if condition.model > 0 else -seen
    prior = np.log(condition.share / (1 - condition.share))
    logits = np.abs(condition.model) * seen - condition.model**2 / 2 + prior
    chance = 1 / (1 + np.exp(-logits))
    return (~present, chance) if condition.state == 1 else (present, 1 - chance)
