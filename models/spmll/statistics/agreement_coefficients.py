"""How well people agree on one class: raw agreement, Cohen's kappa and Krippendorff's alpha, with intervals.

Only counts of answers are used: a pattern (present, absent) is the number of people who gave either answer to a cell,
and all figures follow from how often each pattern occurs. An interval holds the middle 95 % of the figure over draws of
these frequencies from their posterior with Jeffreys' prior (half a cell for each possible pattern; for a proportion it
is the interval that Brown, Cai and DasGupta recommend, Statistical Science 2001). So three cells without a disagreement
are not taken as proof that there is none.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

POSTERIOR_DRAWS = 2000
INTERVAL_QUANTILES = (0.025, 0.975)
PRIOR_CELLS = 0.5  # cells of each possible pattern


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; nan where the answers do not determine it."""

    value: float
    low: float
    high: float


def raw_agreement(patterns: Mapping[tuple[int, int], int]) -> Estimate:
    """Return the probability that two people who answered the same cell gave the same answer.

    Args:
        patterns: (present, absent) -> number of cells with this many answers; cells with fewer than two answers are
            ignored.
    """
    return _estimate_figure(patterns, _compute_raw_agreement)


def krippendorff_alpha(patterns: Mapping[tuple[int, int], int]) -> Estimate:
    """Return Krippendorff's alpha for nominal data: 1 where all agree, 0 where they agree as chance would.

    Cells may have different numbers of people. Alpha is undefined (nan) where all answers are the same. With many cells
    of the same number of people it is Fleiss' kappa. `patterns` is as in `raw_agreement`.

    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011, section C.
    """
    return _estimate_figure(patterns, _compute_alpha)


def pooled_krippendorff_alpha(groups: Collection[Mapping[tuple[int, int], int]]) -> Estimate:
    """Return Krippendorff's alpha of several classes together.

    Alpha is one minus the sum of observed disagreement over the sum of disagreement by chance within each class. So
    classes that are rare or common for everybody do not raise it.

    Args:
        groups: Patterns of each class, as in `krippendorff_alpha`, which this equals for one class. Jeffreys' prior is
            shared among the classes, so that many classes with few cells each are not mostly prior.
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
    """Return Cohen's kappa of two people (Cohen, Educational and Psychological Measurement, 1960).

    nan where both only ever gave the same answer.

    Args:
        table: (2, 2) numbers of cells, by the answers of the first and of the second person.

    Raises:
        ValueError: The table has another shape.
    """
    counts = np.asarray(table, float)
    if counts.shape != (2, 2):
        raise ValueError(f"Kappa compares two people and two answers: a (2, 2) table, not {counts.shape}.")
    return _estimate_interval(counts.ravel(), _compute_kappa)


def _estimate_figure(patterns: Mapping[tuple[int, int], int], figure: Callable[..., np.ndarray]) -> Estimate:
    counts, answers = _tabulate_patterns(patterns)
    return _estimate_interval(counts, lambda cells: figure(cells, answers))


def _tabulate_patterns(patterns: Mapping[tuple[int, int], int]) -> tuple[np.ndarray, np.ndarray]:
    """Return every possible pattern for the numbers of people that occur: its cells (p,), and the patterns (p, 2)."""
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
    """Return the raw agreement (draws,) for cells (draws, patterns) and answers (patterns, 2)."""
    people = answers.sum(1)
    pairs = people * (people - 1) / 2
    same = (answers * (answers - 1) / 2).sum(1)
    return (cells @ same) / (cells @ pairs)


def _compute_alpha(cells: np.ndarray, answers: np.ndarray) -> np.ndarray:
    observed, expected = _compute_disagreement(cells, answers).T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected > 0, 1 - observed / expected, np.nan)


def _compute_disagreement(cells: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return (draws, 2): the observed disagreement, and the disagreement by chance."""
    people = answers.sum(1)
    observed = cells @ (answers.prod(1) / (people - 1))
    return np.stack([observed, (cells @ answers).prod(1) / (cells @ people - 1)], 1)


def _compute_kappa(cells: np.ndarray) -> np.ndarray:
    shares = (cells / cells.sum(1, keepdims=True)).reshape(-1, 2, 2)
    observed = shares[:, 0, 0] + shares[:, 1, 1]
    expected = (shares.sum(1) * shares.sum(2)).sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
