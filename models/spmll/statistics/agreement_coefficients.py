"""Agreement on a class: raw agreement, Cohen's kappa and Krippendorff's alpha, with intervals.

A pattern (present, absent) counts the answers of a cell. 95% intervals come from the posterior of pattern frequencies
with Jeffreys' prior (Brown, Cai and DasGupta, Statistical Science 2001).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

POSTERIOR_DRAWS = 2000
INTERVAL_QUANTILES = (0.025, 0.975)
PRIOR_CELLS = 0.5  # cells of each possible pattern


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95% interval. Undetermined numbers are nan."""

    value: float
    low: float
    high: float


def raw_agreement(patterns: Mapping[tuple[int, int], int]) -> Estimate:
    """Return the probability that two annotators of a cell agree.

    Args:
        patterns: (number of present answers, of absent answers) to a cell -> number of such cells.
    """
    return _estimate_figure(patterns, _compute_raw_agreement)


def krippendorff_alpha(patterns: Mapping[tuple[int, int], int]) -> Estimate:
    """Return Krippendorff's alpha for nominal data: 1 for full, 0 for chance agreement.

    nan if all answers are equal. Krippendorff 2011, section C.

    Args:
        patterns: (number of present answers, of absent answers) to a cell -> number of such cells.
    """
    return _estimate_figure(patterns, _compute_alpha)


def pooled_krippendorff_alpha(groups: Collection[Mapping[tuple[int, int], int]]) -> Estimate:
    """Return Krippendorff's alpha of several classes: 1 - sum of observed / sum of chance disagreement.

    Chance is per class, so rare or common classes do not raise it.

    Args:
        groups: Answer patterns per class, as in `raw_agreement`. They share Jeffreys' prior.
    """
    rng, value, drawn = np.random.default_rng(0), np.zeros((1, 2)), np.zeros((POSTERIOR_DRAWS, 2))
    for group in groups:
        counts, answers = _tabulate_patterns(group)
        if len(counts):
            value += _compute_disagreement(counts[None], answers)
            cells = rng.dirichlet(counts + PRIOR_CELLS / len(groups), POSTERIOR_DRAWS) * counts.sum()
            drawn += _compute_disagreement(cells, answers)
    if not value[0, 1] > 0:
        return Estimate(np.nan, np.nan, np.nan)
    alpha = 1 - value[0, 0] / value[0, 1]
    low, high = np.nanquantile(1 - drawn[:, 0] / drawn[:, 1], INTERVAL_QUANTILES)
    return Estimate(float(alpha), float(min(low, alpha)), float(max(high, alpha)))


def cohen_kappa(table: np.ndarray) -> Estimate:
    """Return Cohen's kappa (1960) of a (2, 2) table of cell counts, nan if both annotators gave one answer only."""
    counts = np.asarray(table, float)
    if counts.shape != (2, 2):
        raise ValueError(f"Kappa compares two people and two answers: a (2, 2) table, not {counts.shape}.")
    return _estimate_interval(counts.ravel(), _compute_kappa)


def _estimate_figure(patterns: Mapping[tuple[int, int], int], figure: Callable[..., np.ndarray]) -> Estimate:
    counts, answers = _tabulate_patterns(patterns)
    return _estimate_interval(counts, lambda cells: figure(cells, answers))


def _tabulate_patterns(patterns: Mapping[tuple[int, int], int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of cells (p,) of every possible pattern, and the patterns (p, 2)."""
    seen = {pattern: cells for pattern, cells in patterns.items() if sum(pattern) > 1 and cells}
    possible = [(present, people - present) for people in sorted({*map(sum, seen)}) for present in range(people + 1)]
    counts = np.array([seen.get(pattern, 0) for pattern in possible], float)
    return counts, np.array(possible, float).reshape(-1, 2)


def _estimate_interval(counts: np.ndarray, figure: Callable[[np.ndarray], np.ndarray]) -> Estimate:
    total = counts.sum()
    value = float(figure(counts[None])[0]) if total else np.nan
    if np.isnan(value):
        return Estimate(np.nan, np.nan, np.nan)
    drawn = np.random.default_rng(0).dirichlet(counts + PRIOR_CELLS, POSTERIOR_DRAWS) * total
    low, high = np.nanquantile(figure(drawn), INTERVAL_QUANTILES)
    # The prior pulls inwards: without any disagreement the value itself would lie outside.
    return Estimate(value, float(min(low, value)), float(max(high, value)))


def _compute_raw_agreement(cells: np.ndarray, answers: np.ndarray) -> np.ndarray:
    people = answers.sum(1)
    pairs = people * (people - 1) / 2
    same = (answers * (answers - 1) / 2).sum(1)
    return (cells @ same) / (cells @ pairs)


def _compute_alpha(cells: np.ndarray, answers: np.ndarray) -> np.ndarray:
    observed, expected = _compute_disagreement(cells, answers).T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected > 0, 1 - observed / expected, np.nan)


def _compute_disagreement(cells: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return observed and chance disagreement, (draws, 2), from draws of the cell counts."""
    people = answers.sum(1)
    observed = cells @ (answers.prod(1) / (people - 1))
    return np.stack([observed, (cells @ answers).prod(1) / (cells @ people - 1)], 1)


def _compute_kappa(cells: np.ndarray) -> np.ndarray:
    shares = (cells / cells.sum(1, keepdims=True)).reshape(-1, 2, 2)
    observed = shares[:, 0, 0] + shares[:, 1, 1]
    expected = (shares.sum(1) * shares.sum(2)).sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
