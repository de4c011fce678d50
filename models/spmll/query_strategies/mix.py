"""Several strategies in turn, with every fifth image random."""

from collections.abc import Sequence

import numpy as np

from spmll.query_strategies.base import Strategy
from spmll.query_strategies.class_balance import CLASS_BALANCE
from spmll.query_strategies.diversity import DIVERSITY
from spmll.query_strategies.expected_missing import EXPECTED_MISSING
from spmll.query_strategies.random import RANDOM
from spmll.query_strategies.uncertainty import UNCERTAINTY

MIXED_STRATEGIES = (RANDOM, UNCERTAINTY, CLASS_BALANCE, EXPECTED_MISSING, DIVERSITY)  # a fifth of the turns each


def rank_in_turns(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Rank by MIXED_STRATEGIES in turn, skipping images already ranked and unavailable strategies.

    The random fifth limits the harm of a bad strategy and is a random sample of the remaining images.
    """
    available = {"model": probabilities is not None, "features": features is not None, "": True}
    arrays = (features, probabilities, labels, candidates, rng)
    return interleave([strategy.rank(*arrays) for strategy in MIXED_STRATEGIES if available[strategy.needs]])


def interleave(orders: Sequence[np.ndarray]) -> np.ndarray:
    """Merge orders of the same rows by taking from each in turn, skipping rows that were taken."""
    rows = np.sort(orders[0])
    first = np.full(len(rows), np.iinfo(np.int64).max)
    for number, order in enumerate(orders):
        places = np.searchsorted(rows, order)
        first[places] = np.minimum(first[places], np.arange(len(rows)) * len(orders) + number)
    return rows[np.argsort(first)]


MIX = Strategy(
    "mix",
    "Mixed",
    "All of these in turn. Every fifth image is random, so estimates stay unbiased.",
    "This project's own, built on Baram et al., Online Choice of Active Learning Algorithms, JMLR 2004",
    "https://www.jmlr.org/papers/v5/baram04a.html",
    "",
    rank_in_turns,
)
