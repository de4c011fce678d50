"""95% intervals without draws, of a share and a median."""

import math
from collections.abc import Sequence

import numpy as np

from spmll.statistics.agreement_coefficients import Estimate
from spmll.statistics.bounds import CONFIDENCE

Z_95 = 1.96  # standard deviations on both sides that hold 95 %


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95% interval of a share (Wilson 1927, eq. 4), for `trials` >= 1."""
    share = successes / trials
    middle = (share + Z_95**2 / (2 * trials)) / (1 + Z_95**2 / trials)
    half = Z_95 / (1 + Z_95**2 / trials) * math.sqrt(share * (1 - share) / trials + Z_95**2 / (4 * trials**2))
    # Exact ends for 0 and all: rounding must not make 0 of 26 "<1 % to 12 %".
    return 0.0 if not successes else middle - half, 1.0 if successes == trials else middle + half


def exact_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the exact 95% interval of a share (Clopper & Pearson 1934), for `trials` >= 1."""
    from scipy.special import betaincinv  # pages start sooner without SciPy

    tail = (1 - CONFIDENCE) / 2
    return (
        float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0,
        float(betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0,
    )


def estimate_share(successes: int, trials: int) -> Estimate:
    """Return a share with its Wilson interval, nan without trials."""
    return (
        Estimate(successes / trials, *wilson_interval(successes, trials))
        if trials
        else Estimate(np.nan, np.nan, np.nan)
    )


def estimate_median(values: Sequence[float]) -> Estimate:
    """Return the median with a 95% interval of order statistics, for any distribution.

    David & Nagaraja 2003, sec. 7.1. The ends are nan below six values.
    """
    from scipy.special import bdtr

    ordered = np.sort(np.asarray(values, float))
    count = len(ordered)
    k = int(np.searchsorted(bdtr(np.arange(count), count, 0.5), 0.025, side="right"))
    value = float(np.median(ordered)) if count else np.nan
    return Estimate(value, float(ordered[k - 1]), float(ordered[-k])) if k else Estimate(value, np.nan, np.nan)
