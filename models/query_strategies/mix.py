"""Several strategies in turn: none of them can lead astray for long, and every fifth image is random."""

from collections.abc import Sequence

import numpy as np

from models.query_strategies.base import Strategy
from models.query_strategies.class_balance import CLASS_BALANCE
from models.query_strategies.diversity import DIVERSITY
from models.query_strategies.expected_missing import EXPECTED_MISSING
from models.query_strategies.random import RANDOM
from models.query_strategies.uncertainty import UNCERTAINTY

MIXED = (RANDOM, UNCERTAINTY, CLASS_BALANCE, EXPECTED_MISSING, DIVERSITY)  # a fifth of the turns each


def mix(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Each of MIXED in turn gives its best image: no one of them can lead astray for long, and every fifth is random.

    Estimates of the whole set may rest on the random ones: they are a random sample of all that the others had not
    chosen before. A strategy that lacks what it needs is passed over. Baram et al. 2004 found no strategy best
    everywhere and let a bandit choose; turns need no reward, which early on is mostly noise.
    """
    there = {"model": probabilities is not None, "features": features is not None, "": True}
    arrays = (features, probabilities, labels, candidates, rng)
    return taking_turns([strategy.rank(*arrays) for strategy in MIXED if there[strategy.needs]])


def taking_turns(orders: Sequence[np.ndarray]) -> np.ndarray:
    """Orders of the same rows, each (n,), as one: each in turn gives its next row; one given before is passed over."""
    rows = np.sort(orders[0])
    first = np.full(len(rows), np.iinfo(np.int64).max)
    for number, one in enumerate(orders):
        places = np.searchsorted(rows, one)
        first[places] = np.minimum(first[places], np.arange(len(rows)) * len(orders) + number)
    return rows[np.argsort(first)]


MIX = Strategy(
    "mix",
    "Mixed",
    "All of these in turn; every fifth image is random, so that nothing is missed and the estimates stay honest.",
    "This project's own, built on Baram et al., Online Choice of Active Learning Algorithms, JMLR 2004",
    "https://www.jmlr.org/papers/v5/baram04a.html",
    "",
    mix,
)
