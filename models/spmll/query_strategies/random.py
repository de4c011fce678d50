"""Random order: the baseline of every other strategy."""

import numpy as np

from spmll.query_strategies.base import Strategy


def rank_at_random(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Return a uniformly random order: every prefix is a random sample of the candidates."""
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
