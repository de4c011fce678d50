"""Random order: the baseline of every other strategy."""

import numpy as np

from models.query_strategies.base import Strategy


def random(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Every order is as likely as any other: whatever is counted on the first of them holds for all of them."""
    return rng.permutation(candidates)


RANDOM = Strategy(
    "random",
    "Random",
    "In an order that has nothing to do with what is on the images: what you see stands for all of them.",
    "None: the baseline that every other one is measured against",
    "",
    "",
    random,
)
