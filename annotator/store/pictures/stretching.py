"""Scaling of values above 8 bits, from the darkest to the brightest over all channels.

High bytes alone would be black, as few files use all 16 bits. Non-finite, no-data and transparent values do not count.
No data and NaN become black.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

STRIP_PIXELS = 1_000_000  # pixels that are stretched at a time: whole arrays of floats would take 30 bytes a pixel
MIDDLE_GRAY = 128  # grey of an image of one value


@dataclass(frozen=True)
class Stretch:
    """The value range that was scaled to 8 bits, and the original `bits` per value."""

    bits: int
    low: float
    high: float


def stretch_values(
    values: np.ndarray, nodata: float | None = None, counts: np.ndarray | None = None
) -> tuple[np.ndarray, Stretch]:
    """Scale numbers (H, W, C) to uint8 and return the stretch. Constant images become medium gray.

    Args:
        values: (H, W, C), any numeric dtype.
        nodata: No-data value, or None.
        counts: (H, W) bool, pixels that define the range, or None for all.
    """
    missing = _to_dtype_value(nodata, values.dtype)
    low, high = np.inf, -np.inf
    for rows in _iterate_strips(values):
        strip = values[rows]
        known = _get_known_mask(strip, missing)
        if counts is not None:
            known &= counts[rows][..., None]
        # The usual case, without a copy.
        some = strip if known.all() else strip[known]
        if some.size:
            low, high = min(low, float(some.min())), max(high, float(some.max()))
    bits = 8 * values.dtype.itemsize
    if high <= low or not np.isfinite([low, high, high - low]).all():
        return np.full(values.shape, MIDDLE_GRAY, np.uint8), Stretch(
            bits, *((low, high) if high == low else (0.0, 0.0))
        )
    table = scale_to_uint8(np.arange(65536), low, high) if values.dtype == np.uint16 else None
    gray = np.empty(values.shape, np.uint8)
    for rows in _iterate_strips(values):
        strip = values[rows]
        gray[rows] = scale_to_uint8(strip, low, high) if table is None else table[strip]
        if missing is not None:
            gray[rows][strip == missing] = 0
    return gray, Stretch(bits, low, high)


def scale_to_uint8(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Scale [low, high] to uint8 with clipping. NaN becomes 0."""
    values = np.nan_to_num(values.astype(np.float64), nan=low, posinf=high, neginf=low)
    return np.round((values.clip(low, high) - low) / (high - low) * 255).astype(np.uint8)


def _iterate_strips(values: np.ndarray) -> Iterator[slice]:
    rows = max(1, STRIP_PIXELS // max(1, values.shape[1]))
    for top in range(0, len(values), rows):
        yield slice(top, top + rows)


def _get_known_mask(values: np.ndarray, missing: np.generic | None) -> np.ndarray:
    known = np.isfinite(values) if values.dtype.kind == "f" else np.ones(values.shape, bool)
    return known if missing is None else known & (values != missing)


def _to_dtype_value(nodata: float | None, dtype: np.dtype) -> np.generic | None:
    if nodata is None or np.isnan(nodata):  # nan is never finite
        return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return dtype.type(nodata)
    bounds = np.iinfo(dtype)
    return dtype.type(int(nodata)) if nodata == int(nodata) and bounds.min <= nodata <= bounds.max else None
