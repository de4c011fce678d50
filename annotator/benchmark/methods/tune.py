"""Tuning with an equal budget of trials per method, on validation mAP.

Random search over learning rate, epochs, batch size and tunable constants, after the method's defaults. The first three
are equal for all methods. Larger budgets extend smaller ones. --protocol cole uses its grid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from annotator.benchmark.methods import cole
from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.task import Choice
from spmll.methods import METHODS

LR_FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
EPOCH_FACTORS = (0.5, 1.0, 2.0, 4.0)
BATCH_SIZES = (None, 8, 16)  # None: the method's own; 8 and 16 are the grid of Cole et al.
TUNING_SEED = 20211106


def draw_trials(name: str, budget: int, fixed: Mapping[str, Any] | None = None) -> list[Choice]:
    """Return `budget` settings to try for a method, its defaults first, all with the `fixed` constants.

    Raises ValueError for a budget below 1.
    """
    if budget < 1:
        raise ValueError(f"The budget is {budget} trials; there must be at least one, the method's own defaults.")
    # Two streams: how many constants a method has must not change which learning rates it is given.
    shared, own = np.random.default_rng(TUNING_SEED), np.random.default_rng(TUNING_SEED + 1)
    drawn = [Choice()] + [_draw_choice(METHODS[name].tunable, shared, own) for _ in range(budget - 1)]
    return [replace(choice, parameters=choice.parameters | dict(fixed or {})) for choice in drawn]


def choose_best(choices: Sequence[Choice], scores: Sequence[float]) -> tuple[Choice, list[float]]:
    """Return the first of the settings with the highest score, and the scores."""
    return choices[int(np.argmax(scores))], list(scores)


def list_candidates(name: str, options: Options) -> list[Choice]:
    """Return the settings to try for a method on validation images, [] if it is not tuned."""
    if options.protocol == "cole":
        return cole.make_grid(options.parameters.get(name))
    if options.trials < 2 or METHODS[name].skips_validation:
        return []
    return draw_trials(name, options.trials, options.parameters.get(name))


def describe_space(options: Options) -> dict[str, list]:
    """Return the values to try for the settings that all methods share, by name."""
    if options.protocol == "cole":
        return {"lr": list(cole.LEARNING_RATES), "batches": list(cole.BATCH_SIZES)}
    if options.trials < 2:
        return {}
    return {"lr_factors": list(LR_FACTORS), "epoch_factors": list(EPOCH_FACTORS), "batches": list(BATCH_SIZES)}


def _draw_choice(tunable: dict[str, tuple], shared: np.random.Generator, own: np.random.Generator) -> Choice:
    def pick_value(values: tuple, chance: np.random.Generator) -> Any:
        return values[int(chance.integers(len(values)))]

    lr, epochs, batch = (pick_value(values, shared) for values in (LR_FACTORS, EPOCH_FACTORS, BATCH_SIZES))
    return Choice(lr, epochs, batch, {key: pick_value(values, own) for key, values in sorted(tunable.items())})
