"""Measurement of how often auto-accept breaks its precision guarantee, in simulated projects whose truth is known.

Each project goes through the steps of a real one: an audit is drawn and answered part by part, people answer likely
cells in between, and after every part the app's code checks the guarantee (spmll/statistics/sequential_bound.py). A
guarantee counts as broken when at any check more of the accepted cells are wrong than it allows.
"""

import time
from dataclasses import dataclass

import numpy as np

from spmll.statistics.sequential_bound import (
    CANDIDATE_THRESHOLDS,
    StratifiedSample,
    compute_sample_size,
    find_lowest_threshold,
)

SIMULATED_PROJECTS = 1000
IMAGES_PER_PROJECT, PROMISED_PRECISION, CHECKS_PER_PROJECT = 20_000, 0.99, 4


@dataclass(frozen=True)
class Condition:
    """The properties of one kind of simulated class.

    Attributes:
        share: The share of the images that show the class.
        model: How far the scores of present cells lie above those of absent ones, in standard deviations; negative for
            a model that is worse than chance.
        state: The state that cells are accepted as: 1 present, -1 absent.
        work: The share of the likely cells that people answer between two checks.
        border: None, or the share of wrong cells among those that the model calls likely: just above what is allowed.
    """

    share: float
    model: float
    state: int = 1
    work: float = 0.05
    border: float | None = None


ACCEPTANCE_CONDITIONS = {
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


def measure(projects: int = SIMULATED_PROJECTS, seed: int = 0) -> dict:
    """Measure for each condition how often a guarantee is broken, and how much is accepted.

    Returns:
        {"bench", "figures", "ratios"}; figures of each condition: the share of projects with a broken guarantee
        (broken) and with any accepted cell (used), and the share of the open cells that were accepted (filled), in
        classes of IMAGES_PER_PROJECT images.
    """
    started = time.perf_counter()
    rows = {name: measure_condition(condition, projects, seed) for name, condition in ACCEPTANCE_CONDITIONS.items()}
    return {
        "bench": "acceptance",
        "figures": {f"{name}: {kind}": value for name, row in rows.items() for kind, value in row.items()}
        | {"projects": projects, "seconds": round(time.perf_counter() - started, 1)},
        "ratios": {"broken_at_most": max(row["broken"] for row in rows.values())},
    }


def measure_condition(condition: Condition, projects: int, seed: int = 0) -> dict:
    """Simulate projects under one condition and return its row of `measure`: broken, used, filled."""
    runs = np.array([simulate_acceptance(np.random.default_rng([seed, n]), condition) for n in range(projects)])
    return {
        "broken": round(float(runs[:, 0].mean()), 4),
        "used": round(float((runs[:, 1] > 0).mean()), 4),
        "filled": round(float(runs[:, 1].mean()), 4),
    }


def simulate_acceptance(rng: np.random.Generator, condition: Condition) -> tuple[bool, float]:
    """Simulate one class of one project.

    Returns:
        Whether the guarantee was broken at any check, and the share of the open cells accepted at the last check.
    """
    wrong, scores = _draw_cells(rng, condition)
    zone = np.flatnonzero(scores >= CANDIDATE_THRESHOLDS[0])
    if not len(zone):
        return False, 0.0
    wrong, scores = wrong[zone], scores[zone]
    drawn = rng.permutation(len(zone))[: compute_sample_size(len(zone), PROMISED_PRECISION)]
    answered, failed, filled = np.zeros(len(zone), bool), False, 0.0
    newer = scores + rng.normal(size=len(zone)) * 0.02 - 0.02 * wrong  # scores of a later model, by which people work
    for check in range(1, CHECKS_PER_PROJECT + 1):
        rows = drawn[: round(len(drawn) * check / CHECKS_PER_PROJECT)]
        answered[rows] = True
        sample = StratifiedSample(scores, np.zeros(len(zone), int), rows, wrong[rows])
        verdict = find_lowest_threshold(
            sample, ~answered, answered & wrong, PROMISED_PRECISION, np.array(CANDIDATE_THRESHOLDS)
        )
        if verdict.threshold is not None:
            chosen = ~answered & (scores >= verdict.threshold)
            failed |= bool(wrong[chosen].mean() > 1 - PROMISED_PRECISION + 1e-9)
        filled = 0.0 if verdict.threshold is None else float(chosen.sum() / max((~answered).sum(), 1))
        open_ = np.flatnonzero(~answered)
        answered[open_[np.argsort(-newer[open_])][: round(condition.work * len(open_))]] = True
    return failed, filled


def _draw_cells(rng: np.random.Generator, condition: Condition) -> tuple[np.ndarray, np.ndarray]:
    """Draw the cells of a class: (N,) bool, accepting is wrong, and (N,) the model's probability that it is right."""
    if condition.border is not None:
        return rng.random(IMAGES_PER_PROJECT) < condition.border, rng.uniform(0.5, 1, IMAGES_PER_PROJECT)
    present = rng.random(IMAGES_PER_PROJECT) < condition.share
    seen = rng.normal(size=IMAGES_PER_PROJECT) + condition.model * present
    seen = seen if condition.model > 0 else -seen
    prior = np.log(condition.share / (1 - condition.share))
    logits = np.abs(condition.model) * seen - condition.model**2 / 2 + prior
    chance = 1 / (1 + np.exp(-logits))
    return (~present, chance) if condition.state == 1 else (present, 1 - chance)
