"""Random order, the baseline of strategies."""

import numpy as np

from spmll.query_strategies.base import Strategy


def rank_at_random(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Return a random order, whose prefixes are random samples."""
    return rng.permutation(candidates)


RANDOM = Strategy(
    "random",
    "Random",
    "Random order. What you see stands for all images.",
    "None: the baseline that every other one is measured against",
    "",
    "",
    rank_at_random,
)
