"""Several strategies in turn, one of them random: every fifth image is random."""

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
    """Rank by the strategies of MIXED_STRATEGIES in turn; each turn gives the next image of its strategy's own order.

    An image given before is skipped, and so is a strategy without its inputs. Every fifth image is random, which limits
    the harm of a bad strategy. The random images are a random sample of those that the other strategies had not chosen
    before, so estimates of the whole set may use them. Baram et al. 2004 found no strategy best everywhere and chose
    with a bandit; turns need no reward, which is mostly noise early on.
    """
    available = {"model": probabilities is not None, "features": features is not None, "": True}
    arrays = (features, probabilities, labels, candidates, rng)
    return interleave([strategy.rank(*arrays) for strategy in MIXED_STRATEGIES if available[strategy.needs]])


def interleave(orders: Sequence[np.ndarray]) -> np.ndarray:
    """Merge orders (n,) of the same rows: each order in turn gives its next row; rows given before are skipped."""
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
