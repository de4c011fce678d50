"""Estimates with 95% intervals from quantiles of draws, for one look or for several."""

from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Bounds:
    """Estimates with 95% intervals for each of C classes, then for all classes together, (C + 1,) each."""

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray


def draw_beta(rng: np.random.Generator, a: np.ndarray | int, b: np.ndarray | int, shape: tuple[int, ...]) -> np.ndarray:
    """Draw random numbers from Beta(a, b), also if a or b is 0."""
    # numpy refuses zeros; with 1e-9 all draws are 0 or 1, as they should be.
    return rng.beta(np.maximum(a, 1e-9), np.maximum(b, 1e-9), shape)


def divide(part: np.ndarray, whole: np.ndarray, default: float) -> np.ndarray:
    """Return part / whole elementwise, or `default` where the whole is 0."""
    empty = whole <= 0
    return np.where(empty, default, part / np.where(empty, 1, whole))


def compute_tail(looks: np.ndarray | int) -> np.ndarray:
    """Return the error probability at each end of an interval, 0.025 / 2^k at look k, or 0.025 for a single look (0).

    The sum over all looks k = 1, 2, ... is 0.025, so all intervals hold together with 95% confidence.
    """
    return (1 - CONFIDENCE) / 2 * 0.5 ** np.asarray(looks, np.float64)


def compute_lower_end(drawn: np.ndarray, looks: np.ndarray | int = 0) -> np.ndarray:
    """Return the lower interval end of draws (n, C), (C,). `looks` (C,) are those of `compute_tail`."""
    ordered = np.sort(drawn, axis=0)
    place = np.broadcast_to(compute_tail(looks) * (len(ordered) - 1), ordered.shape[1:])
    below = np.floor(place).astype(np.int64)
    low, high = (
        np.take_along_axis(ordered, rows[None], 0)[0] for rows in (below, np.minimum(below + 1, len(ordered) - 1))
    )
    return low + (place - below) * (high - low)


def compute_upper_end(drawn: np.ndarray, looks: np.ndarray | int = 0) -> np.ndarray:
    """Return the upper interval end of draws (n, C), (C,). `looks` (C,) are those of `compute_tail`."""
    return -compute_lower_end(-drawn, looks)
