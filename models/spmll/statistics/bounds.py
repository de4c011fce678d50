"""Estimates with 95 % intervals whose ends are quantiles of draws, and helpers for making such draws."""

from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Bounds:
    """One quantity for each class, then for all classes, (C + 1,) float64 each: estimate (nan: unknown), low, high."""

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray


def draw_beta(rng: np.random.Generator, a: np.ndarray | int, b: np.ndarray | int, shape: tuple[int, ...]) -> np.ndarray:
    """Return draws of Beta(a, b), also of its limits, where a or b is 0."""
    # numpy refuses zeros; with 1e-9 all draws are 0 or 1, as they should be.
    return rng.beta(np.maximum(a, 1e-9), np.maximum(b, 1e-9), shape)


def divide(part: np.ndarray, whole: np.ndarray, default: float) -> np.ndarray:
    """Return part / whole, and `otherwise` where the whole is 0."""
    empty = whole <= 0
    return np.where(empty, default, part / np.where(empty, 1, whole))


def compute_lower_end(drawn: np.ndarray) -> np.ndarray:
    """Return the lower end of the interval: (draws, ...) -> (...)."""
    return np.quantile(drawn, (1 - CONFIDENCE) / 2, axis=0)


def compute_upper_end(drawn: np.ndarray) -> np.ndarray:
    """Return the upper end of the interval: (draws, ...) -> (...)."""
    return np.quantile(drawn, (1 + CONFIDENCE) / 2, axis=0)
