"""Common parts of query strategies: function signature, table entry and shared steps.

rank(features, probabilities, labels, candidates, rng) -> (n,) int64, best first

features         (N, D), maybe on disk (spmll/rows.py), or None
probabilities    (N, C), calibrated, nan without a model, or None
labels           (N, C) int8, 1 present, -1 absent, 0 unanswered
candidates       (n,) rows, in any order
rng              for ties
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spmll.labels import UNSEEN
from spmll.rows import Rows

RankFunction = Callable[
    [Rows | None, Rows | None, Rows, np.ndarray, np.random.Generator],
    np.ndarray,
]

ROWS_PER_BLOCK = 4096  # rows converted to float32 at once


@dataclass(frozen=True)
class Strategy:
    """A table entry of a query strategy, which orders images for annotation.

    Attributes:
        name: Name in STRATEGIES, commands and database.
        title: Displayed name.
        about: One sentence for users.
        paper: Its source, "None: ..." for a baseline.
        url: URL of the paper, or "".
        needs: "model", "features" or "".
        rank: Function that orders candidates.
    """

    name: str
    title: str
    about: str
    paper: str
    url: str
    needs: str
    rank: RankFunction


def slice_rows(rows: np.ndarray, size: int = ROWS_PER_BLOCK) -> list[slice]:
    """Return slices of at most `size` that cover `rows`."""
    return slice_range(len(rows), size)


def slice_range(count: int, size: int = ROWS_PER_BLOCK) -> list[slice]:
    """Return slices of at most `size` that cover `count` rows."""
    return [slice(start, start + size) for start in range(0, count, size)]


def read_open_probabilities(probabilities: Rows, labels: Rows, rows: np.ndarray) -> np.ndarray:
    """Return the probabilities of unanswered cells.

    Args:
        probabilities: (N, C).
        labels: (N, C).
        rows: (n,).

    Returns:
        (n, C) float32, nan for answered cells.
    """
    chances = probabilities[rows].astype(np.float32)
    chances[labels[rows] != UNSEEN] = np.nan
    return chances


def find_answered_rows(labels: Rows, candidates: np.ndarray, max_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Return images with an answer that are not candidates.

    Args:
        labels: (N, C).
        candidates: (n,).
        max_rows: Maximum number.
        rng: Samples if needed.

    Returns:
        (m,) int64.
    """
    has_answer = [(labels[places] != UNSEEN).any(1) for places in slice_range(len(labels))]
    answered = np.flatnonzero(np.concatenate([np.zeros(0, bool), *has_answer]))
    answered = answered[~np.isin(answered, candidates)]
    return rng.choice(answered, max_rows, replace=False) if len(answered) > max_rows else answered


def order_by_falling_value(values: np.ndarray, candidates: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return candidates by falling value, ties in random order.

    Args:
        values: (n,).
        candidates: (n,).
        rng: Orders ties.

    Returns:
        (n,) int64.
    """
    return candidates[np.lexsort((rng.random(len(candidates)), -values))]
