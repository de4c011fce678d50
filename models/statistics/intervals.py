"""Exact intervals for counts: what a few checked cells say about all the cells they were drawn from.

"Exact" means that the distribution of the count itself is inverted, no normal curve: the chance that an interval misses
the truth is at most what was promised, for any truth and however small the counts are. numpy and scipy only.
"""

from itertools import pairwise

import numpy as np
from scipy import stats
from scipy.special import betaincinv

Interval = tuple[np.ndarray, np.ndarray]


def binomial(successes: np.ndarray, trials: np.ndarray, confidence: float = 0.95) -> Interval:
    """The share of successes in a population much larger than the sample, two-sided.

    successes, trials    integers that broadcast; 0 trials give (0, 1)
    confidence           each side is missed with a chance of at most (1 - confidence) / 2
    returns              low and high, float64 in [0, 1], of the broadcast shape

    Raises ValueError when there are more successes than trials, or the confidence is not between 0 and 1.
    Source: Clopper & Pearson 1934, "The use of confidence or fiducial limits illustrated in the case of the binomial".
    """
    successes, trials = _checked(confidence, successes, trials)
    return _lower(successes, trials, (1 - confidence) / 2), 1 - _lower(trials - successes, trials, (1 - confidence) / 2)


def at_least(successes: np.ndarray, trials: np.ndarray, confidence: float = 0.95) -> np.ndarray:
    """The share of successes that is reached at least: the one-sided lower bound of Clopper and Pearson.

    Arguments and errors as in `binomial`; the whole chance of 1 - confidence is spent on this side.
    """
    successes, trials = _checked(confidence, successes, trials)
    return _lower(successes, trials, 1 - confidence)


def hypergeometric(
    successes: np.ndarray, drawn: np.ndarray, population: np.ndarray, confidence: float = 0.95
) -> Interval:
    """How many successes a finite population holds, from a sample without replacement, two-sided.

    successes, drawn, population    integers that broadcast; 0 drawn give (0, population)
    confidence                      each side is missed with a chance of at most (1 - confidence) / 2
    returns                         low and high, int64 of the broadcast shape; both the truth when all were drawn

    Raises ValueError when there are more successes than drawn, more drawn than there are, or for a wrong confidence.
    Source: Buonaccorsi 1987, "A note on confidence intervals for proportions in finite populations": the tests of
    every possible number of successes, inverted.
    """
    successes, drawn, population = _checked(confidence, successes, drawn, population)
    miss = (1 - confidence) / 2
    low = _fewest(successes, drawn, population, miss)
    return low, population - _fewest(drawn - successes, drawn, population, miss)


def _lower(successes: np.ndarray, trials: np.ndarray, miss: float) -> np.ndarray:
    some = np.maximum(successes, 1)
    return np.where(successes == 0, 0.0, betaincinv(some, np.maximum(trials - some, 0) + 1.0, miss))


def _fewest(successes: np.ndarray, drawn: np.ndarray, population: np.ndarray, miss: float) -> np.ndarray:
    """The smallest number of successes in the population that makes this many or more no rarer than `miss`."""
    low, high = successes.copy(), population - (drawn - successes)
    while (still := low < high).any():
        middle = (low + high) // 2
        # Asked for where the answer is still open only: each is a sum of many terms.
        enough = np.zeros(low.shape, bool)
        enough[still] = stats.hypergeom.sf(successes[still] - 1, population[still], middle[still], drawn[still]) > miss
        high, low = np.where(still & enough, middle, high), np.where(still & ~enough, middle + 1, low)
    return low


def _checked(confidence: float, *counts: np.ndarray) -> list[np.ndarray]:
    if not 0 < confidence < 1:
        raise ValueError(f"The confidence is {confidence}; it must lie between 0 and 1, such as 0.95.")
    counts = [one.astype(np.int64) for one in np.broadcast_arrays(*counts)]
    for few, many in pairwise(counts):
        if (few < 0).any() or (few > many).any():
            raise ValueError(
                f"Counts must not be negative, nor larger than what they were counted among: {few} of {many}."
            )
    return counts
