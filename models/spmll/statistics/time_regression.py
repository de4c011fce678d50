"""Seconds of task parts, from one person's task times, with intervals.

A task with counts x takes x . theta seconds on average. theta is the maximum a posteriori of log seconds,
with a log-normal prior and a share of interrupted tasks. Intervals come from importance resampling (Gelman et
al., 3rd ed., sec. 10.4).
"""

from dataclasses import dataclass

import numpy as np

PRIOR_STD = 0.8
"""Standard deviation of the prior, in log seconds: 95 % of it lies between a fifth and five times the middle. That is
the widest spread published for one part of a task: 0.1 to 1.7 s an image, Krishna et al., CHI 2016."""
COMMON_VARIANCE_SHARE = 0.25
"""Share of the prior's variance that all parts have in common: who is quick at one is often quick at all. With a half,
and a width of 0.7, somebody quick at images and slow at tiles was asked for nine grids before they were believed."""
# prior of how much times of equal tasks differ, in log seconds; and of its logarithm
SPREAD_PRIOR, SPREAD_PRIOR_STD = (0.5, 0.5)
# prior share of interrupted tasks, and the standard deviation of its logit
PAUSE_SHARE_PRIOR, PAUSE_SHARE_PRIOR_STD = (0.03, 1.0)
# Where the maximum is looked for: factors on the prior, spreads, and shares of interrupted tasks. Equal times, as a
# program's are, have no spread at all, and without a least one their likelihood has no maximum.
FACTOR_BOUNDS, SPREAD_BOUNDS, SHARE_BOUNDS = (0.01, 100.0), (0.05, 5.0), (1e-4, 0.9)
# times of interrupted tasks: up to a factor of 90 longer, and a share is as much shorter
PAUSE_LOG_RANGE, SLIP_SHARE = (4.5, 0.1)
# draws that are kept, those they are taken from, and the t's degrees of freedom
POSTERIOR_DRAWS, PROPOSAL_DRAWS, DEGREES_OF_FREEDOM = (1000, 8000, 4)
VALUES_PER_CHUNK = 200_000  # values in memory while draws are weighed
INTERVAL_QUANTILES = (0.025, 0.975)


@dataclass(frozen=True, eq=False)
class PartTimes:
    """The estimated seconds of P task parts.

    Attributes:
        middle: (P,), estimates.
        draws: (POSTERIOR_DRAWS, P), posterior draws, maybe empty.
    """

    middle: np.ndarray
    draws: np.ndarray

    def estimate_task(self, counts: np.ndarray) -> tuple[float, float, float]:
        """Return a task's mean seconds and 95% interval, for counts (P,)."""
        low, high = np.quantile(self.draws @ counts, INTERVAL_QUANTILES)
        return float(counts @ self.middle), float(low), float(high)


def fit_times(
    counts: np.ndarray, seconds: np.ndarray, groups: np.ndarray, prior: np.ndarray, *, draws: bool = False
) -> PartTimes:
    """Estimate the seconds of each part from one person's tasks. Without tasks, return the prior.

    Args:
        counts: (N, P), parts per task.
        seconds: (N,).
        groups: (N,) from 0, with a common spread each.
        prior: (P,) seconds.
        draws: Also draw for intervals, much slower.

    Raises:
        ValueError: An argument is invalid.
    """
    _check_arguments(counts, seconds, groups, prior)
    rng, parts = np.random.default_rng(0), len(prior)
    if not len(seconds):
        logs = rng.multivariate_normal(np.zeros(parts), prior_covariance(parts), POSTERIOR_DRAWS if draws else 0)
        return PartTimes(prior.astype(float), prior * np.exp(logs))
    from scipy.optimize import approx_fprime, minimize  # here: pages that need no estimate start without it

    posterior = _Posterior(counts, np.log(seconds), groups, prior, int(groups.max()) + 1)
    found = minimize(
        posterior.evaluate, posterior.find_start(), jac=True, method="L-BFGS-B", bounds=posterior.bounds()
    ).x
    middle = prior * np.exp(found[:parts])
    if not draws:
        return PartTimes(middle, np.zeros((0, parts)))
    curvature = np.asarray(approx_fprime(found, lambda at: posterior.evaluate(at)[1], 1e-5))
    return PartTimes(middle, prior * np.exp(_draw_posterior(posterior, found, curvature, rng)[:, :parts]))


def prior_covariance(parts: int) -> np.ndarray:
    """Return the prior's covariance matrix of log seconds, (parts, parts)."""
    return PRIOR_STD**2 * (COMMON_VARIANCE_SHARE + (1 - COMMON_VARIANCE_SHARE) * np.eye(parts))


def _interruption_density(rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the density of interrupted tasks at these log residuals, and its slope."""
    longer = 1 / (1 + np.exp(-np.clip(5 * rest, -50, 50)))
    most = (1 - 2 * SLIP_SHARE) / PAUSE_LOG_RANGE
    return SLIP_SHARE / PAUSE_LOG_RANGE + most * longer, 5 * most * longer * (1 - longer)


def _draw_posterior(
    posterior: "_Posterior", found: np.ndarray, curvature: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw posterior samples (POSTERIOR_DRAWS, P + G + 1), by proposals in log seconds and in seconds."""
    parts, values, vectors = posterior.parts, *np.linalg.eigh((curvature + curvature.T) / 2)
    least = 1 / np.linalg.eigvalsh(prior_covariance(parts))[-1]
    roots = np.sqrt(np.maximum(values, least))  # no direction is less certain than the widest of the prior
    half = PROPOSAL_DRAWS // 2
    steps = rng.normal(size=(PROPOSAL_DRAWS, len(found))) * np.sqrt(
        DEGREES_OF_FREEDOM / rng.chisquare(DEGREES_OF_FREEDOM, (PROPOSAL_DRAWS, 1))
    )
    steps = steps / roots @ vectors.T
    tried = found + steps
    tried[half:, :parts] = found[:parts] + np.log(np.maximum(1 + steps[half:, :parts], 1e-9))
    growth = np.exp(np.minimum(tried[:, :parts] - found[:parts], 50.0))
    linear = np.c_[growth - 1, tried[:, parts:] - found[parts:]]

    def density(away: np.ndarray) -> np.ndarray:
        return (
            -(DEGREES_OF_FREEDOM + len(found))
            / 2
            * np.log1p(((away @ vectors * roots) ** 2).sum(1) / DEGREES_OF_FREEDOM)
        )

    proposed = np.logaddexp(density(tried - found), density(linear) + np.log(growth).sum(1))
    weights = -posterior.evaluate_many(tried) - proposed
    weights = np.exp(weights - weights.max())
    return tried[rng.choice(PROPOSAL_DRAWS, POSTERIOR_DRAWS, p=weights / weights.sum())]


class _Posterior:
    """The function to minimize: minus the log posterior of log factors, log spreads and the share of pauses."""

    def __init__(self, counts: np.ndarray, logs: np.ndarray, groups: np.ndarray, prior: np.ndarray, spreads: int):
        self.costs, self.logs, self.groups, self.spreads = counts * prior, logs, groups, spreads
        self.parts = len(prior)
        usual = np.log(PAUSE_SHARE_PRIOR / (1 - PAUSE_SHARE_PRIOR))
        self.centre = np.r_[np.zeros(self.parts), np.full(spreads, np.log(SPREAD_PRIOR)), usual]
        self.precision = np.diag(
            np.r_[np.zeros(self.parts), np.full(spreads, SPREAD_PRIOR_STD), PAUSE_SHARE_PRIOR_STD] ** 2.0
        )
        self.precision[: self.parts, : self.parts] = prior_covariance(self.parts)
        self.precision = np.linalg.inv(self.precision)

    def find_start(self) -> np.ndarray:
        """Return a starting point at each part's own slowness, because slow people would otherwise seem to pause."""
        slower = self.logs - np.log(self.costs.sum(1))
        medians = {int(group): float(np.median(slower[self.groups == group])) for group in np.unique(self.groups)}
        at = self.centre.copy()
        for part in range(self.parts):
            with_it = [medians[int(group)] for group in np.unique(self.groups[self.costs[:, part] > 0])]
            at[part] = np.mean(with_it) if with_it else 0.0
        return at

    def bounds(self) -> list[tuple[float, float]]:
        factors, spreads = (tuple(np.log(ends).tolist()) for ends in (FACTOR_BOUNDS, SPREAD_BOUNDS))
        shares = tuple(np.log(np.divide(SHARE_BOUNDS, np.subtract(1, SHARE_BOUNDS))).tolist())
        return [factors] * self.parts + [spreads] * self.spreads + [shares]

    def evaluate(self, at: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value and its gradient at one point."""
        factors, spread = np.exp(at[: self.parts]), np.exp(at[self.parts : -1])[self.groups]
        paused = 1 / (1 + np.exp(-at[-1]))
        each = self.costs * factors
        expected = each.sum(1)
        # The mean of a log-normal is exp(mu + spread^2 / 2): theta adds up to mean seconds, which sums of tasks need.
        rest = self.logs - np.log(expected) + spread**2 / 2
        regular = (1 - paused) * np.exp(-((rest / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi))
        interrupted, slope = _interruption_density(rest)
        mixed = regular + paused * interrupted
        weight = regular / mixed  # the probability that the task was not interrupted
        by_rest = weight * rest / spread**2 - paused * slope / mixed
        by_spread = np.bincount(self.groups, weight * ((rest / spread) ** 2 - 1) - by_rest * spread**2, self.spreads)
        away = at - self.centre
        gradient = self.precision @ away
        gradient[: self.parts] -= by_rest @ (each / expected[:, None])
        gradient[self.parts : -1] -= by_spread
        gradient[-1] -= float((1 - weight - paused).sum())
        return float(away @ self.precision @ away / 2 - np.log(mixed).sum()), gradient

    def evaluate_many(self, tried: np.ndarray) -> np.ndarray:
        """Return the values (K,) at the points `tried`, in chunks."""
        result = np.zeros(len(tried))
        step = max(1, VALUES_PER_CHUNK // len(self.logs))
        for start in range(0, len(tried), step):
            at = tried[start : start + step]
            spread, paused = np.exp(at[:, self.parts : -1])[:, self.groups], 1 / (1 + np.exp(-at[:, -1:]))
            rest = self.logs - np.log(np.exp(at[:, : self.parts]) @ self.costs.T) + spread**2 / 2
            regular = (1 - paused) * np.exp(-((rest / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi))
            away, mixed = at - self.centre, regular + paused * _interruption_density(rest)[0]
            result[start : start + step] = ((away @ self.precision) * away).sum(1) / 2 - np.log(mixed).sum(1)
        return result


def _check_arguments(counts: np.ndarray, seconds: np.ndarray, groups: np.ndarray, prior: np.ndarray) -> None:
    if counts.shape != (len(seconds), len(prior)) or groups.shape != seconds.shape:
        raise ValueError(
            f"Counts are {counts.shape}, seconds {seconds.shape}, groups {groups.shape} and the prior {prior.shape}; "
            f"they must be (tasks, parts), (tasks,), (tasks,) and (parts,)."
        )
    if not (seconds > 0).all() or not (prior > 0).all() or not (counts.sum(1) > 0).all() or (counts < 0).any():
        raise ValueError("Seconds and the prior must be above 0, counts 0 or more, and no task without any count.")
