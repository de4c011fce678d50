"""Extrapolation from measured sizes to a size that was not measured."""

from collections.abc import Sequence

import numpy as np

MAX_LINEAR_EXPONENT = 1.15  # an exponent up to which a step is taken to grow in proportion


def extrapolate_growth(sizes: Sequence[int], values: Sequence[float], wanted: int) -> dict[str, float]:
    """Fit and extrapolate the growth of a figure with the number of images.

    Args:
        sizes: Numbers of images, ascending, at least two.
        values: The figure at each of these sizes, such as seconds.
        wanted: The number of images to extrapolate to.

    Returns:
        Exponent: e of values ~ sizes^e between the two largest sizes; a_million: the slope of a line a + b * size,
        fitted to relative errors, with a and b >= 0, for a million images; predicted: at the size wanted, by that line,
        or where the exponent is above MAX_LINEAR_EXPONENT, by the exponent from the largest size on.
    """
    x, y = np.asarray(sizes, float), np.maximum(np.asarray(values, float), 1e-9)
    exponent = float(np.log(y[-1] / y[-2]) / np.log(x[-1] / x[-2]))
    fixed, slope = _fit_line(x, y)
    by_line = fixed + slope * wanted
    by_exponent = float(y[-1] * (wanted / x[-1]) ** exponent)
    return {
        "exponent": exponent,
        "a_million": slope * 1e6,
        "predicted": max(by_line, by_exponent) if exponent > MAX_LINEAR_EXPONENT else by_line,
    }


def _fit_line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    weights = 1 / y
    (fixed, slope), *_ = np.linalg.lstsq(np.stack([weights, x * weights], 1), np.ones(len(x)), rcond=None)
    if slope < 0:
        return float(weights.sum() / (weights**2).sum()), 0.0
    if fixed < 0:
        return 0.0, float((x * weights).sum() / ((x * weights) ** 2).sum())
    return float(fixed), float(slope)
