"""Estimates with 95% intervals from quantiles of draws."""

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


def compute_lower_end(drawn: np.ndarray) -> np.ndarray:
    """Return the lower end of the 95% interval of draws."""
    return np.quantile(drawn, (1 - CONFIDENCE) / 2, axis=0)


def compute_upper_end(drawn: np.ndarray) -> np.ndarray:
    """Return the upper end of the 95% interval of draws."""
    return np.quantile(drawn, (1 + CONFIDENCE) / 2, axis=0)
