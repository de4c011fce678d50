"""The parts that every query strategy has: the signature of its function, its entry in the table, and shared steps.

A strategy is a function of numpy arrays:

    rank(features, probabilities, labels, candidates, rng) -> (n,) int64, the candidates, best first

    features         (N, D) float16 or float32, one row per image, which may lie on the disk (spmll/rows.py); None
                     without features
    probabilities    (N, C) float in [0, 1], calibrated, read by rows; nan where a class has no model yet (such cells
                     are left out); None before the first model
    labels           (N, C) int8, 1 present, -1 absent, 0 unanswered; read by rows
    candidates       (n,) rows that may be chosen, in any order
    rng              breaks ties and draws random numbers; the order of the candidates plays no part

Strategies never read the disk and know nothing of leases: which images are open is the queue's concern.
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
    """One way to order images.

    Attributes:
        name: Its name in the table STRATEGIES, in commands and in the database.
        title: Its name for people.
        about: One sentence for the person who chooses it.
        paper: Its source; "None: ..." for a baseline; for one of our own, what it is built on.
        url: The address of the paper, "" for none.
        needs: "model", "features" or "": without it the order is random.
        rank: The function, as the module describes it.
    """

    name: str
    title: str
    about: str
    paper: str
    url: str
    needs: str
    rank: RankFunction


def slice_rows(rows: np.ndarray, size: int = ROWS_PER_BLOCK) -> list[slice]:
    """Return slices of at most `size` rows that cover all of `rows`."""
    return slice_range(len(rows), size)


def slice_range(count: int, size: int = ROWS_PER_BLOCK) -> list[slice]:
    """Return slices of at most `size` rows that cover `count` rows."""
    return [slice(start, start + size) for start in range(0, count, size)]


def read_open_probabilities(probabilities: Rows, labels: Rows, rows: np.ndarray) -> np.ndarray:
    """Return the probabilities of the open cells of some rows.

    Args:
        probabilities: (N, C) float.
        labels: (N, C) int8.
        rows: (n,) the rows.

    Returns:
        (n, C) float32, nan in answered cells and where there is no model.
    """
    chances = probabilities[rows].astype(np.float32)
    chances[labels[rows] != UNSEEN] = np.nan
    return chances


def find_answered_rows(labels: Rows, candidates: np.ndarray, max_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows of images that have an answer and are no candidates.

    Args:
        labels: (N, C) int8.
        candidates: (n,) rows to leave out.
        max_rows: The largest number of rows to return.
        rng: Draws the rows where there are more.

    Returns:
        (m,) int64, m at most `most`.
    """
    has_answer = [(labels[places] != UNSEEN).any(1) for places in slice_range(len(labels))]
    answered = np.flatnonzero(np.concatenate([np.zeros(0, bool), *has_answer]))
    answered = answered[~np.isin(answered, candidates)]
    return rng.choice(answered, max_rows, replace=False) if len(answered) > max_rows else answered


def order_by_falling_value(values: np.ndarray, candidates: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the candidates by falling value, those of equal value in random order.

    Args:
        values: (n,) float, the value of each candidate.
        candidates: (n,) int64.
        rng: Orders those of equal value.

    Returns:
        (n,) int64.
    """
    return candidates[np.lexsort((rng.random(len(candidates)), -values))]
