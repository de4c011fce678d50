"""The common parts of query strategies: the signature of the function, the entry in the table, and shared steps.

A strategy is a function of numpy arrays:

    rank(features, probabilities, labels, candidates, rng) -> (n,) int64, the candidates, best first

    features         (N, D) float16 or float32, one row per image, which may lie on the disk (models/rows.py); None
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

from models.labels import UNSEEN
from models.rows import Rows

Rank = Callable[
    [Rows | None, Rows | None, Rows, np.ndarray, np.random.Generator],
    np.ndarray,
]

BLOCK = 4096  # rows converted to float32 at once


@dataclass(frozen=True)
class Strategy:
    """One way to order images.

    Attributes:
        about: One sentence for the person who chooses a strategy.
        paper: The source; "None: ..." for a baseline; for a strategy of this project, the paper it is built on.
        needs: The input without which the order is random: "model", "features", or "" for none.
    """

    name: str
    title: str
    about: str
    paper: str
    url: str
    needs: str
    rank: Rank


def blocks(rows: np.ndarray, size: int = BLOCK) -> list[slice]:
    """Return slices of at most `size` rows that together cover `rows`."""
    return slices(len(rows), size)


def slices(count: int, size: int = BLOCK) -> list[slice]:
    """Return slices of at most `size` rows that together cover `count` rows."""
    return [slice(start, start + size) for start in range(0, count, size)]


def open_probabilities(probabilities: Rows, labels: Rows, rows: np.ndarray) -> np.ndarray:
    """Return (n, C) float32 probabilities of these rows, nan in answered cells and where a class has no model."""
    chances = probabilities[rows].astype(np.float32)
    chances[labels[rows] != UNSEEN] = np.nan
    return chances


def answered_rows(labels: Rows, candidates: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows of images that have an answer and are not candidates; at most `most`, drawn at random."""
    has_answer = [(labels[places] != UNSEEN).any(1) for places in slices(len(labels))]
    answered = np.flatnonzero(np.concatenate([np.zeros(0, bool), *has_answer]))
    answered = answered[~np.isin(answered, candidates)]
    return rng.choice(answered, most, replace=False) if len(answered) > most else answered


def by_falling(values: np.ndarray, candidates: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the candidates by descending value (n,), equal ones in random order."""
    return candidates[np.lexsort((rng.random(len(candidates)), -values))]
